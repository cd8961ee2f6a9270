"""What commands print about jobs, runs and replicas: tables, pages, series, and copies of logs."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from paddlejob.cli.output.logs import copied, print_logs
from paddlejob.cli.output.series import as_table, csv_line, json_line
from paddlejob.cli.output.tables import columns, job_page, job_table, pod_table, run_data, run_table
from paddlejob.client.describe.humanize import age
from paddlejob.client.runs import Run
from paddlejob.errors import BadInput
from paddlejob.logs.line import LogLine
from paddlejob.logs.series import LoggedSample
from paddlejob.progress import Sample
from paddlejob.targets.log_views import LastOutput
from paddlejob.targets.views import JobView, PodView
from tests.support.builders import NOON, job
from tests.support.job_views import ENDED, view


def test_columns_are_three_spaces_apart_and_end_without_spaces():
    assert columns(["A", "LONG"], [["wide", ""], ["x", "y"]]) == "A      LONG\nwide\nx      y"


def test_the_list_of_jobs_has_servers_and_workers_and_a_reason_if_wide():
    made = view(ps={"ready": "1/1"}, worker={"ready": "2/2"}, spec={"ps": 1}, message="fine\nmore",
                progress={"step": 1, "totalSteps": 4})  # fmt: skip
    header, row = job_table([made], wide=True).splitlines()
    assert header.split() == ["NAME", "STATUS", "MODE", "PS", "WORKER", "PROGRESS", "AGE", "REASON"]
    assert row.split() == ["mnist", "Running", "PS", "1/1", "2/2", "1/4", age(made.job), "fine"]
    other = job("other")
    apart = other.model_copy(update={"metadata": other.metadata.model_copy(update={"namespace": "team"})})
    both = job_table([made, JobView(apart, {}, "Created")], expected="default")
    assert [line.split()[0] for line in both.splitlines()] == ["NAMESPACE", "default", "team"]


def test_runs_are_listed_with_their_numbers_and_sizes():
    done = job(status={"phase": "Completed", "progress": {"step": 4, "totalSteps": 4}, **ENDED})
    runs = [Run(("default", "mnist"), 1, "Completed", done, 2048), Run(("default", "mnist"), 2, "Damaged", None, 5)]
    lines = run_table(runs).splitlines()
    assert lines[0].split() == ["NAME", "RUN", "STATUS", "PROGRESS", "STARTED", "DURATION", "SIZE"]
    assert lines[1].split() == ["mnist", "1", "Completed", "4/4", "2027-01-15T08:00:00Z", "90s", "2.0Ki"]
    assert lines[2].split() == ["mnist", "2", "Damaged", "5"]
    elsewhere = Run(("team", "mnist"), 1, "Running", job(), 0)
    assert run_table([elsewhere]).splitlines()[0].startswith("NAMESPACE")
    assert run_data(runs[0])["status"]["phase"] == "Completed"
    assert run_data(runs[1]) == {
        "namespace": "default", "name": "mnist", "run": 2, "phase": "Damaged", "bytes": 5, "status": {}
    }  # fmt: skip


def test_replicas_are_listed_servers_first_and_with_processes_where_there_are_any():
    pods = [
        PodView("w10", "worker", 10, "Running", 1, "10.0.0.2", log="/log", pid=7), PodView("w2", "worker", 2, "Failed",
        1, exit_code=3), PodView("h", "heter", 0, "Pending"), PodView("p", "ps", 0, "Running", 1),
    ]  # fmt: skip
    lines = pod_table(pods).splitlines()
    assert lines[0].split() == ["REPLICA", "STATE", "PID", "ATTEMPT", "ADDRESS", "EXIT", "LOG"]
    assert [line.split()[0] for line in lines[1:]] == ["ps-0", "heter-0", "worker-2", "worker-10"]
    assert lines[4].split() == ["worker-10", "Running", "7", "1", "10.0.0.2", "/log"]
    assert "PID" not in pod_table(pods[1:])
    assert pod_table(pods[1:2]).splitlines()[1].split() == ["worker-2", "Failed", "1", "3"]


def test_the_page_of_a_job_has_its_figures_notes_and_replicas():
    status = {
        "reason": "Running", "message": "all pods are running", "restarts": 2, "disruptions": 1, "ignoredFailures": 3,
        "failuresWithoutProgress": 1, "avoidedNodes": ["n1", "n2"], "worker": {"replicas": 3}, "goodput": 90,
        "progress": {"step": 4, "highestStep": 9}, **ENDED,
    }  # fmt: skip
    pods = [PodView("mnist-worker-0", "worker", 0, "Running", note="sidecar x failed")]
    elastic = {"elastic": 1, "worker_": {"requests": 2, "limits": 8, "replicas": 4}}
    lines = job_page(view(pods=pods, spec=elastic, **status), LastOutput("worker-0", time.time() - 7200)).splitlines()
    assert lines[:7] == [
        "mnist: Running (Collective), 90s, attempt 1, restarts 2 (1 of 3 since step 9), disruptions 1, ignored "
        "failures 3",
        "workers: 3 of 4 wanted (requests 2, limits 8)",
        "Running: all pods are running",
        "step 4",
        "last output 2h0m ago, goodput 90%",
        "Avoids n1, n2, where this job failed repeatedly.",
        "sidecar x failed",
    ]
    assert lines[7] == "" and lines[8].startswith("REPLICA")
    plain = job_page(view(note="a note", restarts=1, spec={"backoffLimit": 5})).splitlines()
    assert plain == ["mnist: Running (Collective), " + plain[0].split(", ")[1] + ", attempt 1, restarts 1 of 5, "
                     "disruptions 0", "a note"]  # fmt: skip
    suspended = view("Suspended", spec={"elastic": 1, "worker_": {"requests": 2}}, worker={"replicas": 2})
    assert "workers: 0 of 2 wanted (requests 2)" in job_page(suspended)


def test_a_series_is_a_table_without_empty_columns_csv_or_json():
    rows = [
        LoggedSample(1, NOON, Sample(step=1, total_steps=2, metrics={"loss": 0.1234567})),
        LoggedSample(1, NOON, Sample(step=2, non_finite={"loss": "nan"})),
    ]
    names = ["time", "step", "total_steps", "epoch", "loss"]
    assert as_table(rows, names).splitlines() == [
        "TIME                   STEP   LOSS", "2027-01-15T08:00:00Z   1/2    0.123457",
        "2027-01-15T08:00:00Z   2      nan",
    ]  # fmt: skip
    assert csv_line([None, 1, "a,b"]) == ',1,"a,b"\n'
    assert json.loads(json_line(rows[1], names)) == {"time": "2027-01-15T08:00:00Z", "step": 2, "loss": "nan"}


def line(text: str, replica: str = "worker-0", end: bytes = b"\n") -> LogLine:
    return LogLine(replica, 1, None, text.encode(), end)


@pytest.mark.parametrize(("several", "text"), [(True, "[worker-0] [ps-1] a\n[ps-1] b\n"), (False, "[ps-1] a\nb\n")])
def test_lines_are_printed_with_names_where_there_are_several_replicas(
    several: bool, text: str, capsysbinary: pytest.CaptureFixture[bytes]
):
    print_logs(several, [[line("[ps-1] a")], [], [line("b", "ps-1")]])
    assert capsysbinary.readouterr().out.decode() == text


def test_a_copy_of_logs_has_a_file_for_each_replica_and_overwrites_nothing(tmp_path: Path):
    batches = [[line("a"), line("[worker-0] b", "ps-1")], [line("c", end=b"")]]
    assert list(copied(True, batches, str(tmp_path / "new"), "j")) == batches
    assert list(copied(False, batches, str(tmp_path / "new"), "other")) == batches
    assert {path.name: path.read_bytes() for path in (tmp_path / "new").iterdir()} == {
        "j-worker-0.log": b"a\nc", "j-ps-1.log": b"[worker-0] b\n", "other.log": b"a\n[worker-0] b\nc"
    }  # fmt: skip
    (tmp_path / "file").touch()
    for directory, name in (("new", "j"), ("file", "k")):
        with pytest.raises(BadInput, match="is not a directory, or has logs"):
            copied(True, [], str(tmp_path / directory), name)


def test_the_page_names_avoided_domains_and_the_order_of_ranks():
    made = view(avoidedDomains=["rack-1", "rack-2"], worker={"ranks": "2,0,1"})
    assert job_page(made).splitlines()[-2:] == [
        "Avoids rack-1, rack-2, where not all pods fitted.",
        "Workers in the order of their ranks: 2,0,1",
    ]


def test_failures_since_the_last_progress_are_those_of_this_attempt_where_workers_are_replaced_alone():
    counts = {"restarts": 4, "failuresWithoutProgress": 1, "progress": {"step": 4, "highestStep": 9}}
    live = {"ps": 1, "withGloo": 0, "elastic": 1}
    assert "restarts 4 (1 of 3 since step 9), " in job_page(view(**counts))
    assert "restarts 4 (1 of 3 in this attempt), " in job_page(view(spec=live, **counts))
    assert "restarts 4 of 3, " in job_page(view(**counts | {"failuresWithoutProgress": 4}))


def test_an_expected_namespace_is_not_a_column_unless_another_one_is_listed():
    assert job_table([view()], expected="default").splitlines()[0].startswith("NAME ")
    assert job_table([view()]).splitlines()[0].startswith("NAME ")
    assert job_table([view()], expected="team").splitlines()[0].startswith("NAMESPACE")


def test_the_page_says_why_a_job_does_not_restart_in_place():
    said = {"type": "RestartsInPlace", "status": "False", "message": "the job restarts with new pods, because so"}
    assert job_page(view(conditions=[said])).splitlines()[-1] == f"Note: {said['message']}."
    assert "Note:" not in job_page(view(conditions=[said | {"status": "True"}]))
