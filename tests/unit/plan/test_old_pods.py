"""Pods that were deleted and do not go away."""

from __future__ import annotations

from typing import Any

from paddlejob.plan import Delete, Plan, World, plan
from paddlejob.plan.diagnosis.overdue import FORCE_AFTER
from paddlejob.plan.policies.startup.stale_pods import FINALIZER_PATIENCE
from paddlejob.plan.world import NODE_LOST, NodeState
from tests.support.builders import NOON, having, job, pod, running

OVERDUE = NOON - FORCE_AFTER - 1


def decide(*, healthy: tuple[str, ...] = (), now: float = NOON, workers: int = 1, **changes: Any) -> Plan:
    """The second attempt waits for a pod of the first, which should be gone."""
    nodes = changes.pop("nodes", dict.fromkeys(healthy, NodeState.READY))
    made = running(job(workers=workers))
    old = pod(made, "worker", 0, **{"deletion_due": OVERDUE, "lingers": True, **changes})
    made = having(made, made.status.model_copy(update={"attempt": 2, "reason": "ProgramFailed"}))
    return plan(made, World(pods=(old,), nodes=nodes), now)


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


GIVEN_UP = {"disrupted": True, "reason": NODE_LOST, "deletion_due": NOON + 30, "workers": 2}
"""Kubernetes deleted the pod because its node does not respond; its grace period has just begun."""


def test_a_member_of_a_distributed_job_that_kubernetes_gave_up_with_its_node_is_deleted_by_force_at_once():
    assert forced(decide(**GIVEN_UP, nodes={"node-1": NodeState.UNREACHABLE}))
    for state in (NodeState.READY, NodeState.NOT_READY):
        assert not forced(decide(**GIVEN_UP, nodes={"node-1": state})), "its kubelet can end it"
    assert not forced(decide(**GIVEN_UP, nodes={})), "the operator may not read nodes"


def test_a_trainer_without_peers_may_train_on_where_nobody_hears_it_so_the_clock_decides():
    alone = {**GIVEN_UP, "workers": 1, "nodes": {"node-1": NodeState.UNREACHABLE}}
    assert not forced(decide(**alone))
    assert not forced(decide(**alone, now=NOON + 30 + FORCE_AFTER - 1))
    assert forced(decide(**alone, now=NOON + 30 + FORCE_AFTER))


def test_nothing_runs_on_a_node_that_is_gone_or_out_of_service():
    assert forced(decide(**{**GIVEN_UP, "workers": 1}, nodes={"node-1": NodeState.GONE}))


def test_a_pod_that_the_job_deleted_itself_has_its_grace_period_on_a_lost_node_too():
    lost = {"workers": 2, "deletion_due": NOON, "nodes": {"node-1": NodeState.UNREACHABLE}}
    early = decide(**lost, now=NOON - 5)
    assert not forced(early)
    assert early.wake_at == NOON, "then the state of its node decides"
    assert forced(decide(**lost, now=NOON))
    waits = decide(**{**lost, "nodes": {"node-1": NodeState.READY}}, now=NOON + 1)
    assert not forced(waits)
    assert waits.wake_at is not None and waits.wake_at <= NOON + 10, "the node may have died a moment ago"


def test_a_pod_whose_containers_have_ended_goes_at_once_and_a_finalizer_causes_no_loop():
    assert forced(decide(deletion_due=NOON + 2, containers_ended=True))
    assert not forced(decide(deletion_due=NOON + 2))
    assert not forced(decide(deletion_due=NOON, containers_ended=True)), "it was deleted by force and is still there"
