"""What the start barrier makes of a job whose status was lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paddlejob.api.types import Phase
from paddlejob.plan import PodPhase, plan
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
