"""What the pages get of a job: its row, its attempts, its commands, its file and its plan."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from paddlejob.client.targets.cluster import ClusterTarget
from paddlejob.client.watch.usage import Usage
from paddlejob.web.actions import arguments
from paddlejob.web.sources.cluster.source import ClusterSource
from paddlejob.web.sources.local.source import LocalSource
from paddlejob.web.views.attempts import attempts_of
from paddlejob.web.views.commands import commands
from paddlejob.web.views.detail import detail_of
from paddlejob.web.views.plan import SHOWN, plan_of
from paddlejob.web.views.row import fraction_of, queue_of, row_of
from tests.support.web_jobs import view

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: staging
clusters:
- {name: c, cluster: {server: "http://127.0.0.1:1"}}
contexts:
- {name: staging, context: {cluster: c}}
"""
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


def test_the_queue_of_a_job_is_that_of_its_scheduler():
    assert queue_of(view().job) == ""
    assert queue_of(view(schedulingPolicy={"queue": "night"}).job) == "volcano/night"
    assert queue_of(view(schedulingPolicy={}).job) == "volcano/default"
    labelled = view().job.model_copy(deep=True)
    labelled.metadata.labels["kueue.x-k8s.io/queue-name"] = "team"
    assert queue_of(labelled) == "kueue/default/team"


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


def test_an_action_becomes_a_command_line_that_no_name_can_change():
    assert arguments("delete", "--all", [], None) == ["delete", "--no-wait", "--", "--all"]
    assert arguments("scale", "mnist", ["--cluster", "-n", "team"], 3) == [
        "scale",
        "--cluster",
        "-n",
        "team",
        "--",
        "mnist",
        "3",
    ]


def test_an_action_reaches_the_target_of_its_page_whatever_is_remembered_or_current_by_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    monkeypatch.setenv("PADDLEJOB_STATE", str(tmp_path))
    assert LocalSource().flags("default") == ["--local", "-n", "default"]
    assert ClusterSource(ClusterTarget()).flags("team") == ["--context", "staging", "-n", "team"]


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
