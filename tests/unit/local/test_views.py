"""How pdj prints jobs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from paddlejob.api.types import PaddleJob
from paddlejob.cli.options import Output, machine_readable
from paddlejob.cli.output.tables import job_page, job_table
from paddlejob.cli.run.live import render
from paddlejob.client.describe.explain import explain
from paddlejob.client.describe.formats import as_list
from paddlejob.client.describe.humanize import duration
from paddlejob.client.targets.target import EventView, JobView, PodView
from paddlejob.client.watch.machine import MachineObserver
from paddlejob.local.state.store import Store
from tests.support.builders import document


def view(phase: str, pods: list[PodView] | None = None, note: str = "", **status: Any) -> JobView:
    made = document("mnist", ps=2, workers=2)
    made["metadata"]["creationTimestamp"] = "2027-01-15T08:00:00Z"
    made["status"] = {"phase": phase, "mode": "PS", **status}
    job = PaddleJob.model_validate(made)
    events = [EventView("2027-01-15T08:00:01Z", "ProgramFailed", "mnist-worker-1 failed; restart 1 of 3", True)]
    return JobView(job, made, phase, note, pods or [], events)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (9.9, "9s"),
        (119, "119s"),
        (244, "4m4s"),
        (3000, "50m"),
        (3 * 3600 + 720, "3h12m"),
        (5 * 86400, "5d"),
        (-3, "0s"),
    ],
)
def test_durations_are_written_as_kubectl_does(seconds: float, text: str):
    assert duration(seconds) == text


def test_the_list_has_the_columns_of_the_documents_and_progress():
    seen = view("Completed", ps={"ready": "2/2"}, worker={"ready": "0/2"})
    header, row = job_table([seen]).splitlines()
    assert header.split() == ["NAME", "STATUS", "MODE", "PS", "WORKER", "PROGRESS", "AGE"]
    assert row.split()[:5] == ["mnist", "Completed", "PS", "2/2", "0/2"]


def test_a_page_shows_replicas_servers_first():
    pods = [PodView("mnist-worker-0", "worker", 0, "Running"), PodView("mnist-ps-0", "ps", 0, "Running")]
    page = job_page(view("Running", pods)).splitlines()
    assert [line.split()[0] for line in page[-2:]] == ["ps-0", "worker-0"]


def test_a_page_shows_the_actual_and_the_wanted_size_of_an_elastic_job():
    made = document("mnist", workers=4, elastic=1, worker_={"requests": 2, "limits": 8})
    made["status"] = {"phase": "Running", "worker": {"replicas": 3, "ready": "3/4", "members": "0-2"}}
    page = job_page(JobView(PaddleJob.model_validate(made), made, "Running", "", [], []))
    assert "workers: 3 of 4 wanted (requests 2, limits 8)" in page
    assert "workers:" not in job_page(view("Running"))
    made["status"] = {"phase": "Suspended", "worker": {"replicas": 4, "ready": "0/4"}}
    page = job_page(JobView(PaddleJob.model_validate(made), made, "Suspended", "", [], []))
    assert "workers: 0 of 4 wanted (requests 2, limits 8)" in page


def test_json_and_yaml_hold_the_whole_object():
    seen = view("Running")
    assert json.loads(machine_readable(seen.document, Output.json) or "") == seen.document
    printed = machine_readable(as_list([seen.document]), Output.yaml) or ""
    assert printed.startswith("apiVersion: v1\nkind: List")


def test_why_explains_a_failure_with_the_last_lines_of_the_log_and_a_hint(tmp_path: Path):
    log = tmp_path / "worker.log"
    log.write_text("ModuleNotFoundError: No module named 'paddle'\n")
    failed = PodView("mnist-worker-1", "worker", 1, "Failed", exit_code=1, log=str(log))
    text = str(explain(view("Failed", [failed], reason="BackoffLimitExceeded", message="failed 4 times", restarts=3)))
    assert "BackoffLimitExceeded: failed 4 times" in text
    assert "ProgramFailed: mnist-worker-1 failed" in text
    assert "No module named 'paddle'" in text
    assert "pip install 'paddlejob[paddle]'" in text
    assert "pdj logs mnist --role worker --index 1" in text


def test_a_completed_job_needs_no_advice_except_how_to_remove_it():
    text = str(explain(view("Completed", reason="Completed", message="all 2 workers succeeded", restarts=1)))
    assert "all 2 workers succeeded" in text
    assert "1 restart" in text
    assert text.endswith("Next: remove the job with `pdj delete mnist`.")


def test_the_live_view_shows_phase_replicas_and_the_last_lines(tmp_path: Path):
    log = tmp_path / "worker.log"
    log.write_text("epoch 1 loss=0.5\n")
    pods = [PodView(f"mnist-worker-{n}", "worker", n, "Running", log=str(log)) for n in range(40)]
    console = Console(record=True, width=100, file=(tmp_path / "screen").open("w"))
    shown = view("Running", pods, message="all pods train", restarts=2)
    console.print(render(shown, MachineObserver(Store(tmp_path)).observe(shown, 30), height=30))
    screen = console.export_text()
    assert "Running" in screen
    assert "2 restarts" in screen
    assert "and 28 more" in screen
    assert "epoch 1 loss=0.5" in screen


def test_why_shows_the_replica_that_failed_and_not_one_that_was_stopped_with_it(tmp_path: Path):
    pods = []
    for index in (0, 1):
        log = tmp_path / str(index)
        log.write_text(f"output of {index}\n")
        pods.append(PodView(f"mnist-worker-{index}", "worker", index, "Failed", exit_code=1, log=str(log)))
    seen = view("Failed", pods, reason="BackoffLimitExceeded", message="mnist-worker-1 failed with status 1")
    text = str(explain(seen))
    assert "output of 1" in text
    assert "output of 0" not in text
    assert "--role worker --index 1" in text


@pytest.mark.parametrize(("reason", "advice"), [("DeadlineExceeded", "change the job"), ("ProgramFailed", "pdj logs")])
def test_advice_fits_the_reason(reason: str, advice: str):
    assert advice in explain(view("Failed", reason=reason, message="it ended")).next


def test_the_page_of_a_job_says_which_failures_count_and_which_nodes_are_avoided():
    assert "restarts 2 of 3" in job_page(view("Running", restarts=2))
    page = job_page(
        view(
            "Running",
            restarts=12,
            failuresWithoutProgress=1,
            progress={"highestStep": 4000},
            avoidedNodes=["node-7", "node-9"],
        )
    )
    assert "restarts 12 (1 of 3 since step 4000)" in page
    assert "Avoids node-7, node-9" in page


def test_the_page_of_a_job_with_a_topology_shows_the_ranks_and_the_domains_that_are_avoided():
    assert "ranks" not in job_page(view("Running"))
    page = job_page(view("Running", worker={"ranks": "0,2,1"}, avoidedDomains=["east", "west"]))
    assert "Workers in the order of their ranks: 0,2,1" in page
    assert "Avoids east, west, where not all pods fitted." in page
