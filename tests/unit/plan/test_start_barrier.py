"""What the start barrier makes of pods with init containers, and of a job whose status was lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from paddlejob.api.types import Phase
from paddlejob.plan import Create, Kind, Pod, PodPhase, RecordEvent, Wake, names, plan, times
from paddlejob.plan.world import Rejection
from tests.support.builders import NOON, all_pods, having, job, running, world


@pytest.mark.parametrize(("second", "phase"), [(PodPhase.RUNNING, Phase.RUNNING), (PodPhase.WAITING, Phase.STARTING)])
def test_pods_that_run_with_their_environment_are_running_although_nothing_records_it(second: PodPhase, phase: Phase):
    made = job()
    first, other = all_pods(made)
    seen = world(first, replace(other, phase=second), environments={1: "uid"})
    decided = plan(made, seen, NOON)
    assert (decided.status.phase, decided.status.publishedAttempt) == (phase, 1)
    again = plan(having(made, decided.status), seen, NOON)
    assert (again.status.phase, again.status.attempt) == (phase, 1)


@pytest.mark.parametrize("seen", [{"initialized": True}, {"unsure": True}])
def test_a_kubelet_is_asked_once_what_a_pod_waits_for_and_woken_at_once_when_the_barrier_opens(seen: dict[str, bool]):
    made = job()
    first, other = all_pods(made, phase=PodPhase.PENDING)
    done = replace(first, **seen)  # type: ignore[arg-type]

    def wakes(*pods: Pod) -> list[tuple[str, int]]:
        return [(one.pod.name, one.times) for one in plan(made, world(*pods), NOON).actions if isinstance(one, Wake)]

    assert wakes(done, other) == [("mnist-worker-0", 0)]
    asked = replace(done, woken_at=NOON - 1)
    assert wakes(asked, other) == []
    assert wakes(replace(asked, phase=PodPhase.WAITING), replace(other, phase=PodPhase.WAITING)) == [
        ("mnist-worker-0", 1), ("mnist-worker-1", 1)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "about", [{"disrupted": True}, {"deletion_due": NOON + 30}, {"address": ""}, {"phase": PodPhase.PENDING}]
)
def test_training_does_not_begin_with_a_pod_that_is_about_to_go_or_not_there_yet(about: dict[str, Any]):
    made = job(status={"phase": "Starting", "attempt": 1, "startTime": times.format(NOON - 5)})
    first, second = all_pods(made, PodPhase.WAITING)

    def published(*pods: Any) -> bool:
        decided = plan(made, world(*pods), NOON)
        return any(isinstance(one, Create) and one.kind is Kind.ENVIRONMENT for one in decided.actions)

    assert published(first, second)
    assert not published(first, replace(second, **about))


@pytest.mark.parametrize(("address", "warned"), [("fd00::1", True), ("10.0.0.1", False)])
def test_addresses_that_paddle_may_not_parse_are_an_event(address: str, warned: bool):
    made = job(status={"phase": "Starting", "attempt": 1, "startTime": times.format(NOON - 5)})
    pods = all_pods(made, PodPhase.WAITING, address=address)
    events = [one for one in plan(made, world(*pods), NOON).actions if isinstance(one, RecordEvent)]
    assert ("IPv6Addresses" in [one.reason for one in events]) is warned
    assert all(one.warning for one in events if one.reason == "IPv6Addresses")


def test_only_pods_that_wait_are_woken_when_a_lost_environment_is_published_again():
    published = {"phase": "Starting", "attempt": 1, "publishedAttempt": 1, "startTime": times.format(NOON - 5)}
    made = job(status=published)
    first, second = all_pods(made)
    decided = plan(made, world(first, replace(second, phase=PodPhase.WAITING)), NOON)
    assert [one.pod.name for one in decided.actions if isinstance(one, Wake)] == ["mnist-worker-1"]


@pytest.mark.parametrize(("phase", "matters"), [(PodPhase.WAITING, True), (PodPhase.RUNNING, False)])
def test_a_lost_environment_that_cannot_be_restored_matters_to_pods_that_wait_for_it(phase: PodPhase, matters: bool):
    made = running(job())
    first, second = all_pods(made)
    rejection = Rejection(names.environment(made, 1), "Forbidden", "no more ConfigMaps", NOON - 1)
    status = plan(made, world(first, replace(second, phase=phase), rejections=(rejection,)), NOON).status
    assert (status.phase, "no more ConfigMaps" in status.message) == (Phase.RUNNING, matters)
