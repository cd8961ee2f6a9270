"""What the pages get of a job: its row, its attempts, its commands, its file and its plan."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from paddlejob.targets.views import EventView, JobView, PodView, Usage
from paddlejob.web.views.attempts import attempts_of
from paddlejob.web.views.commands import commands
from paddlejob.web.views.detail import EVENTS, Replica, detail_of
from paddlejob.web.views.plan import SHOWN, plan_of
from paddlejob.web.views.row import MESSAGE_LIMIT, Row, fraction_of, moment, row_of
from tests.support.web_jobs import view

BEGAN, ENDED, AGAIN = "2027-01-15T08:00:00Z", "2027-01-15T08:10:00Z", "2027-01-15T08:30:00Z"
PAST = {
    "attempt": 1, "startTime": BEGAN, "endTime": ENDED, "reason": "ProgramFailed", "message": "pod x failed",
    "failed": True, "workers": 4,
}  # fmt: skip


def test_a_row_shows_progress_and_no_message_while_the_job_runs():
    progress = {"step": 30, "totalSteps": 120, "metrics": {"loss": 0.5}, "eta": AGAIN}
    row = row_of("local", view(status={"phase": "Running", "message": "all pods are running", "progress": progress}))
    assert (row.phase, row.message, row.fraction, row.loss) == ("Running", "", 0.25, 0.5)
    assert row.eta and row.ready == {"worker": ""}


def test_a_loss_that_is_no_number_is_shown_as_such():
    made = view(status={"phase": "Running", "progress": {"metrics": {"loss": 0.5}, "nonFinite": {"loss": "nan"}}})
    assert row_of("local", made).loss == "nan"


@pytest.mark.parametrize(
    ("progress", "phase", "fraction"),
    [
        ({"step": 5, "totalSteps": 4}, "Running", 1.0),
        ({"epoch": 1, "totalEpochs": 4}, "Running", 0.25),
        ({"step": 5}, "Running", None),
        ({"step": 1, "totalSteps": 4}, "Completed", 1.0),
        (None, "Pending", None),
    ],
)
def test_how_much_is_done_is_known_only_with_a_total(progress: dict[str, int] | None, phase: str, fraction: float):
    assert fraction_of(view(status={"phase": phase, "progress": progress}).job) == fraction


def test_attempts_are_those_of_the_status_and_the_current_one():
    status = {"phase": "Running", "attempt": 2, "startTime": BEGAN, "reason": "Running", "pastAttempts": [PAST]}
    first, second = attempts_of(view(status={**status, "worker": {"replicas": 2}}))
    assert (first.number, first.reason, first.failed, first.workers) == (1, "ProgramFailed", True, 4)
    assert first.end is not None and first.start is not None and first.end - first.start == 600
    assert (second.number, second.start, second.end, second.workers) == (2, first.end, None, 2)


def test_attempts_of_a_job_that_ended_end_with_it_and_a_suspended_job_has_no_current_one():
    ended = view(status={"phase": "Failed", "attempt": 1, "startTime": BEGAN, "completionTime": ENDED})
    (only,) = attempts_of(ended)
    assert (only.reason, only.failed, only.end and only.start and only.end - only.start) == ("Failed", True, 600)
    assert [
        one.number for one in attempts_of(view(status={"phase": "Suspended", "attempt": 2, "pastAttempts": [PAST]}))
    ] == [1]
    assert attempts_of(view()) == []


def test_attempts_before_the_record_began_are_not_invented():
    (current,) = attempts_of(view(status={"phase": "Running", "attempt": 7, "startTime": BEGAN}))
    assert current.number == 7


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        ("Running", ["suspend", "scale", "delete"]),
        ("Suspended", ["resume", "scale", "delete"]),
        ("Completed", ["rerun", "delete"]),
        ("Failed", ["rerun", "delete"]),
    ],
)
def test_a_page_offers_what_makes_sense_in_a_phase(phase: str, expected: list[str]):
    made = view(status={"phase": phase}, flags=" -n team", suspend=phase == "Suspended")
    found = commands(made, resizable=True, read_only=False)
    assert [one.action for one in found] == expected
    assert all(" -n team" in one.text and "mnist" in one.text for one in found)
    assert commands(made, resizable=True, read_only=True) == []


def test_the_page_of_a_job_has_its_file_without_the_status_and_its_usage():
    made = view(status={"phase": "Running", "message": "fine"})
    detail = detail_of("local", made, {"mnist-worker-0": Usage(0.5, 100)}, read_only=False)
    assert yaml.safe_load(detail.file)["spec"]["worker"]["replicas"] == 2
    assert "status" not in yaml.safe_load(detail.file)
    assert detail.workers == 2 and detail.replicas == []


def test_the_plan_of_a_large_job_is_cut():
    small = plan_of("local", view(workers=2, status={"phase": "Running", "attempt": 3}))
    kinds = [one["kind"] for one in yaml.safe_load_all(small.text)]
    assert sorted(kinds) == ["ConfigMap", "Pod", "Pod"] and small.shown == small.objects == 3
    large = plan_of("cluster", view(workers=100))
    assert (large.shown, large.objects) == (SHOWN, 101)
    assert next(yaml.safe_load_all(large.text))["kind"] == "ConfigMap", "what differs comes first"


def test_a_row_has_everything_that_the_list_shows():
    status = {
        "phase": "Failed", "message": "x" * 400 + "\nmore", "restarts": 2, "disruptions": 1, "startTime": BEGAN,
        "completionTime": ENDED, "worker": {"ready": "1/2"}, "ps": {"ready": "0/1"},
        "progress": {"step": 3, "totalSteps": 4, "eta": ENDED},
    }  # fmt: skip
    row = row_of("cluster", view(status=status, ps=1), spark=(1.0,))
    assert row == Row(
        target="cluster", namespace="default", name="mnist", phase="Failed", mode="PS", message="x" * MESSAGE_LIMIT,
        ready={"ps": "0/1", "worker": "1/2"}, progress="3/4", fraction=0.75, eta=None, loss=None, restarts=2,
        disruptions=1, created=1800000000.0, started=1800000000.0, ended=1800000600.0, spark=(1.0,), queue="",
    )  # fmt: skip


def test_a_job_whose_engine_was_killed_shows_its_note_although_its_status_says_running():
    made = view(status={"phase": "Running", "message": "all pods are running", "progress": {"eta": ENDED}})
    killed = JobView(made.job, {}, "Interrupted", note="the engine was killed")
    row = row_of("local", killed)
    assert (row.phase, row.message, row.eta) == ("Interrupted", "the engine was killed", None)
    assert row_of("local", made).eta == 1800000600.0


def test_times_that_cannot_be_read_are_unknown():
    assert (moment(BEGAN), moment(""), moment(None), moment("yesterday")) == (1800000000.0, None, None, None)


def test_the_page_of_a_job_has_its_replicas_events_and_figures():
    progress = {
        "step": 9, "checkpointStep": 5, "metrics": {"loss": 1.0, "acc": 0.5}, "nonFinite": {"loss": "nan"},
        "lastOutputTime": BEGAN,
    }  # fmt: skip
    status = {"phase": "Failed", "reason": "R", "message": "mnist-worker-1 failed\nmore", "attempt": 2, "goodput": 80}
    made = view(status=status | {"progress": progress, "completionTime": ENDED}, flags=" -n team")
    made.document["metadata"]["managedFields"] = [{}]
    made.pods.extend(
        [
            PodView("mnist-worker-0", "worker", 0, "Failed", 2, "10.0.0.1", 3, note="n", pid=7),
            PodView("mnist-worker-1", "worker", 1, "Failed", 2, node="node-1", pid=8),
            PodView("mnist-worker-2", "worker", 2, "Pending"),
        ]
    )
    made.events.extend(EventView(str(number), "r", "m") for number in range(EVENTS + 1))
    found = detail_of("cluster", made, {"mnist-worker-1": Usage(1.0)}, read_only=False)
    assert (found.reason, found.message, found.attempt, found.goodput) == ("R", "mnist-worker-1 failed\nmore", 2, 80)
    assert (found.checkpoint, found.last_output) == (5, 1800000000.0)
    assert found.metrics == {"loss": "nan", "acc": 0.5}
    assert found.next.startswith("read `pdj logs mnist --role worker --index 1 -n team`")
    assert found.replicas[0] == Replica(
        "worker-0", "worker", 0, "Failed", 2, "pid 7", "10.0.0.1", 3, "n", None
    )  # fmt: skip
    assert [(one.where, one.usage) for one in found.replicas[1:]] == [("node-1", Usage(1.0)), ("", None)]
    assert (len(found.events), found.events[0].time) == (EVENTS, "1")
    assert "managedFields" not in found.file and "kind: PaddleJob" in found.file
    assert [one.action for one in found.commands] == ["rerun", "delete"]
    noted = JobView(made.job, made.document, "Failed", note="a note")
    assert detail_of("local", noted, {}, read_only=False).message == "a note"
    bare = detail_of("local", view(), {}, read_only=False)
    assert (bare.checkpoint, bare.metrics, bare.last_output) == (None, {}, None)


def test_workers_can_be_scaled_where_that_is_possible_now():
    def actions(**options: Any) -> list[str]:
        return [one.action for one in detail_of("local", view(**options), {}, read_only=False).commands]

    assert actions(status={"phase": "Running"}) == ["suspend", "delete"]
    assert actions(status={"phase": "Running"}, elastic=1, worker_={"requests": 1}) == ["suspend", "scale", "delete"]
    assert actions(status={"phase": "Suspended"}, suspend=True) == ["resume", "scale", "delete"]
    assert actions(status={"phase": "Suspended"}) == ["suspend", "scale", "delete"], "it waits for quota"


def test_what_a_page_offers_depends_on_what_only_the_target_knows():
    made = view(status={"phase": "Running"})
    for phase, damaged, expected in (
        ("Interrupted", False, ["resume", "delete"]),
        ("Deleting", False, []),
        ("Damaged", True, ["delete"]),
    ):
        seen = JobView(made.job, {}, phase, damaged=damaged)
        assert [one.action for one in commands(seen, resizable=False, read_only=False)] == expected
    ended = JobView(view(status={"phase": "Failed", "completionTime": ENDED}).job, {}, "Damaged", damaged=True)
    assert [one.action for one in commands(ended, resizable=True, read_only=False)] == ["delete"]
    scale = commands(view(status={"phase": "Running"}, flags=" -n team"), resizable=True, read_only=False)[1]
    assert scale.text == "pdj scale mnist WORKERS -n team"


def test_the_current_attempt_of_a_job():
    created = attempts_of(view(status={"phase": "Pending", "attempt": 1, "reason": "Unschedulable", "message": "a\nb"}))
    (one,) = created
    assert (one.start, one.end, one.reason, one.message, one.failed) == (
        1800000000.0,
        None,
        "Unschedulable",
        "a",
        False,
    )
    made = view(status={"phase": "Running", "attempt": 1, "reason": "Running"})
    (killed,) = attempts_of(JobView(made.job, {}, "Interrupted", note="killed"))
    assert (killed.reason, killed.message, killed.failed) == ("Running", "killed", True)


def test_a_job_that_cannot_be_planned_says_why():
    too_large = plan_of("local", view(workers=10_000))
    assert (too_large.objects, too_large.shown, "job mnist: " in too_large.text) == (0, 0, True)
    assert "127.1.0.2" in plan_of("local", view()).text
    assert "10.0.0.1" in plan_of("cluster", view()).text
