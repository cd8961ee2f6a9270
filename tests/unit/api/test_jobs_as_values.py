"""What follows from the fields of a job: defaults, roles, modes, and progress in short."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.api.program import Overrides, job_of_program, python_file
from paddlejob.api.types import CleanPodPolicy, Phase, Progress, Role, deletes_pods
from tests.support.builders import job


@pytest.mark.parametrize(
    ("fields", "summary", "furthest"),
    [
        ({}, "", ""),
        ({"step": 0, "totalSteps": 4}, "0/4", ""),
        ({"step": 3, "totalSteps": 4, "epoch": 1, "totalEpochs": 2}, "3/4", ""),
        ({"step": 3, "epoch": 1, "totalEpochs": 2}, "epoch 1/2", ""),
        ({"step": 3, "epoch": 1}, "step 3", ""),
        ({"epoch": 0}, "epoch 0", ""),
        ({"highestStep": 9, "highestEpoch": 2}, "", "step 9"),
        ({"highestEpoch": 0}, "", "epoch 0"),
    ],
)
def test_progress_in_short_has_the_total_where_it_is_known(fields: dict[str, int], summary: str, furthest: str):
    progress = Progress(**fields)
    assert (progress.summary, progress.furthest) == (summary, furthest)


def test_a_job_has_defaults_for_what_it_does_not_say():
    spec = job().spec
    assert (spec.backoff_limit, spec.schedule_timeout, spec.growth_interval, spec.startup_deadline) == (3, 60, 300, 600)
    assert (spec.clean, spec.is_ours) == ("OnCompletion", True)
    chosen = {"backoffLimit": 0, "scheduleTimeoutSeconds": 1, "growthIntervalSeconds": 2, "startupDeadlineSeconds": 4}
    spec = job(**chosen, cleanPodPolicy="Never", managedBy="x.io/y").spec
    assert (spec.backoff_limit, spec.schedule_timeout, spec.growth_interval, spec.startup_deadline) == (0, 1, 2, 4)
    assert (spec.clean, spec.is_ours) == ("Never", False)


def test_replicas_are_numbered_servers_first():
    spec = job(ps=1, workers=2, heter=1).spec
    assert spec.slots == [(Role.PS, 0), (Role.WORKER, 0), (Role.WORKER, 1), (Role.HETER, 0)]
    assert [spec.position(slot) for slot in spec.slots] == [0, 1, 2, 3]
    assert spec.pods_wanted == 4


@pytest.mark.parametrize(
    ("options", "live"),
    [
        ({"ps": 1, "withGloo": 0, "elastic": 1}, True),
        ({"ps": 1, "withGloo": 1, "elastic": 1}, False),
        ({"ps": 1, "withGloo": 0}, False),
        ({"withGloo": 0, "elastic": 1}, False),
    ],
)
def test_single_workers_are_replaced_only_where_the_others_can_train_on(options: dict[str, Any], live: bool):
    assert job(**options).spec.live_workers is live


def test_the_file_of_a_program_says_how_many_replicas_it_has():
    made = job_of_program(python_file("train.py"), Overrides())
    assert (made["spec"]["worker"]["replicas"], "ps" in made["spec"]) == (1, False)


@pytest.mark.parametrize(
    ("policy", "phases"),
    [
        (CleanPodPolicy.ALWAYS, {Phase.COMPLETED, Phase.FAILED}),
        (CleanPodPolicy.ON_COMPLETION, {Phase.COMPLETED}),
        (CleanPodPolicy.ON_FAILURE, {Phase.FAILED}),
        (CleanPodPolicy.NEVER, set()),
    ],
)
def test_when_pods_are_deleted_follows_from_the_policy(policy: CleanPodPolicy, phases: set[Phase]):
    assert {phase for phase in Phase if deletes_pods(policy, phase)} == phases
