"""What the start barrier makes of pods with init containers, and of a job whose status was lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paddlejob.api.types import Phase
from paddlejob.plan import PodPhase, Wake, plan
from paddlejob.plan.world import Pod
from tests.support.builders import NOON, all_pods, having, job, world


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
