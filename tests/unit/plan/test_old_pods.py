"""Pods that were deleted and do not go away."""

from __future__ import annotations

from typing import Any

from paddlejob.plan import Delete, Plan, World, plan
from paddlejob.plan.diagnosis.overdue import FORCE_AFTER
from paddlejob.plan.policies.startup.stale_pods import FINALIZER_PATIENCE
from tests.support.builders import NOON, having, job, pod, running

OVERDUE = NOON - FORCE_AFTER - 1


def decide(*, healthy: tuple[str, ...] = (), now: float = NOON, **changes: Any) -> Plan:
    """The second attempt waits for a pod of the first, which should be gone."""
    made = running(job(workers=1))
    old = pod(made, "worker", 0, **{"deletion_due": OVERDUE, "lingers": True, **changes})
    made = having(made, made.status.model_copy(update={"attempt": 2, "reason": "ProgramFailed"}))
    return plan(made, World(pods=(old,), healthy_nodes=frozenset(healthy)), now)


def forced(decided: Plan) -> bool:
    return any(isinstance(one, Delete) and one.force for one in decided.actions)


def test_a_pod_on_a_node_that_does_not_respond_is_deleted_by_force():
    assert forced(decide())
    assert forced(decide(healthy=("node-2",)))
    assert not forced(decide(deletion_due=NOON - FORCE_AFTER + 1)), "not before its time"


def test_a_pod_that_hangs_on_a_healthy_node_is_not_replaced_while_it_may_still_write():
    decided = decide(healthy=("node-1",))
    assert not forced(decided)
    assert decided.status.reason == "OldPodRemains"
    assert "node-1 responds" in decided.status.message and "--force" in decided.status.message
    assert decided.wake_at is not None and NOON < decided.wake_at <= NOON + 30, "the node may be lost later"


def test_a_pod_whose_programs_have_ended_is_deleted_by_force_on_any_node():
    assert forced(decide(healthy=("node-1",), lingers=False))


def test_a_pod_that_a_finalizer_keeps_is_reported_although_nothing_happens_to_it():
    first = decide(deletion_due=NOON - FORCE_AFTER - 1)
    assert first.status.reason == "ProgramFailed"
    assert first.wake_at == OVERDUE + FINALIZER_PATIENCE, "nothing else would cause another look"
    later = decide(now=first.wake_at)
    assert later.status.reason == "OldPodRemains"
    assert "finalizers" in later.status.message
