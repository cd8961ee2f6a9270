"""Pods that were deleted and do not go away: the state of their node decides when force is used."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.plan import Delete, Plan, World, plan
from paddlejob.plan.world import NODE_LOST, NodeState
from tests.support.builders import NOON, having, job, pod, running, template

LOST = {"disrupted": True, "reason": NODE_LOST}
"""Kubernetes deleted the pod because its node does not respond."""
READY, NOT_READY, UNREACHABLE, GONE = NodeState.READY, NodeState.NOT_READY, NodeState.UNREACHABLE, NodeState.GONE


CLAIM = {"persistentVolumeClaim": {"claimName": "output"}}


def decide(
    state: NodeState | None, due: float, workers: int = 2, volume: dict[str, Any] | None = None, **changes: Any
) -> Plan:
    """The second attempt waits for a pod of the first, which is due to be gone in so many seconds."""
    described = template(volumeMounts=[{"name": "data", "mountPath": "/data"}])
    described["spec"]["volumes"] = [{"name": "data", **(volume or {"emptyDir": {}})}]
    made = running(job(workers=workers, worker_={"template": described}))
    old = pod(made, "worker", 0, **{"deletion_due": NOON + due, "lingers": True, **changes})
    made = having(made, made.status.model_copy(update={"attempt": 2, "reason": "ProgramFailed"}))
    return plan(made, World(pods=(old,), nodes={"node-1": state} if state else {"node-2": READY}), NOON)


@pytest.mark.parametrize(
    ("state", "due", "about", "forced"),
    [
        (READY, -30, {}, False),
        (READY, -30, {"lingers": False}, True),
        (READY, -29, {"lingers": False}, False),
        (NOT_READY, -30, {}, True),
        (None, -30, {}, True),
        (None, -29, {}, False),
        (UNREACHABLE, 0, {}, True),
        (UNREACHABLE, 1, {}, False),
        (UNREACHABLE, -29, {"workers": 1}, False),
        (UNREACHABLE, -30, {"workers": 1}, True),
        (GONE, 0, {"workers": 1}, True),
        (UNREACHABLE, 30, LOST, True),
        (READY, 30, LOST, False),
        (NOT_READY, 30, LOST, False),
        (None, 30, LOST, False),
        (UNREACHABLE, 30, {**LOST, "workers": 1}, False),
        (GONE, 30, {**LOST, "workers": 1}, True),
        (None, 2, {"containers_ended": True}, True),
        (None, 2, {}, False),
        (None, 0, {"containers_ended": True}, False),
        (None, 2, {"containers_ended": True, "volume": CLAIM}, False),
        (READY, -30, {"lingers": False, "volume": CLAIM}, False),
        (NOT_READY, -30, {"lingers": False, "volume": CLAIM}, True),
        (READY, -30, {"lingers": False, "volume": {"emptyDir": {}}}, True),
    ],
)
def test_force_is_used_where_nothing_can_be_written_any_more(
    state: NodeState | None, due: float, about: dict[str, Any], forced: bool
):
    decided = decide(state, due, **about)
    assert [one.force for one in decided.actions if isinstance(one, Delete)] == [True] * forced


@pytest.mark.parametrize(
    ("state", "due", "wake_at"), [(READY, 20, 20), (READY, 0, 5), (READY, -70, 5), (UNREACHABLE, 5, 5), (None, -31, 29)]
)
def test_the_next_look_is_when_the_pod_should_be_gone_and_soon_after_at_its_node(
    state: NodeState | None, due: float, wake_at: float
):
    assert decide(state, due).wake_at == NOON + wake_at


def test_a_pod_that_hangs_on_a_node_that_responds_is_not_replaced_while_it_may_still_write():
    status = decide(READY, -30).status
    assert status.reason == "OldPodRemains"
    assert "although its node node-1 responds" in status.message
    assert "kubectl delete pod mnist-worker-0 --grace-period=0 --force" in status.message


def test_neither_is_one_whose_volumes_are_not_unmounted():
    message = decide(READY, -30, lingers=False, volume=CLAIM).status.message
    assert "a volume may still write, so it is not replaced" in message
    assert "check the volumes of that node" in message


@pytest.mark.parametrize(("due", "reason"), [(-59, "ProgramFailed"), (-60, "OldPodRemains")])
def test_a_pod_that_even_force_does_not_remove_has_a_finalizer(due: float, reason: str):
    status = decide(None, due).status
    assert status.reason == reason
    assert ("check its finalizers" in status.message) is (reason == "OldPodRemains")
