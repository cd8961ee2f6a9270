"""What commands print and accept: tables, series, charts, copies of logs, options, programs, and errors."""

from __future__ import annotations

import errno
import io
import json
import os
import pty
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from paddlejob.api.program import Overrides
from paddlejob.api.types import Status
from paddlejob.cli import main as main_module
from paddlejob.cli import program as programs
from paddlejob.cli.doctor import machine
from paddlejob.cli.doctor.check import Check, Verdict
from paddlejob.cli.main import VERBS, _describe
from paddlejob.cli.output.pieces import copied
from paddlejob.cli.output.series import as_table, csv_line, json_line
from paddlejob.cli.output.tables import columns, job_page, job_table, pod_table, run_data, run_table
from paddlejob.cli.run.attach import detach, look_again, watch_jobs
from paddlejob.cli.run.charts import bar, sparkline
from paddlejob.cli.run.keyboard import Keyboard
from paddlejob.cli.run.live import LiveScreen, render
from paddlejob.cli.run.news import News
from paddlejob.cli.run.output import LastingOutput
from paddlejob.cli.run.plain import PlainScreen
from paddlejob.cli.run.signals import Signals
from paddlejob.cli.run.summary import summarize
from paddlejob.cli.run.watch import _finish, _stop, is_shared, open_screen
from paddlejob.cli.verbs.data import _plain_lines
from paddlejob.cli.verbs.doctor import _page
from paddlejob.client.describe.humanize import age
from paddlejob.client.files import check_image
from paddlejob.client.runs import Run
from paddlejob.client.series import Row
from paddlejob.client.targets.target import EventView, JobView, LastOutput, LogLine, PodView
from paddlejob.client.watch.machine import MachineObserver
from paddlejob.client.watch.observation import Observation
from paddlejob.client.watch.usage import Usage
from paddlejob.errors import BadInput, JobFailed, Unreachable
from paddlejob.local.machine.gpus import Gpu
from paddlejob.local.machine.resources import Machine
from paddlejob.local.options import RunOptions
from paddlejob.local.state.store import Store
from paddlejob.progress import Sample
from tests.support.builders import NOON, document, job
from tests.support.called_pdj import pdj

ENDED = {"completionTime": "2027-01-15T08:01:30Z", "startTime": "2027-01-15T08:00:00Z"}


def view(phase: str = "Running", *, pods: Any = (), flags: str = "", note: str = "", spec: Any = None, **status: Any):
    made = job(status={"phase": phase, "attempt": 1, **status}, **spec or {})
    return JobView(made, {}, phase, note, list(pods), flags=flags)


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
        Row(LogLine(1, "x", NOON), Sample(step=1, total_steps=2, metrics={"loss": 0.1234567})),
        Row(LogLine(1, "x", NOON), Sample(step=2, non_finite={"loss": "nan"})),
    ]
    names = ["time", "step", "total_steps", "epoch", "loss"]
    assert as_table(rows, names).splitlines() == [
        "TIME                   STEP   LOSS", "2027-01-15T08:00:00Z   1/2    0.123457",
        "2027-01-15T08:00:00Z   2      nan",
    ]  # fmt: skip
    assert csv_line([None, 1, "a,b"]) == ',1,"a,b"\n'
    assert json.loads(json_line(rows[1], names)) == {"time": "2027-01-15T08:00:00Z", "step": 2, "loss": "nan"}


def test_a_copy_of_logs_has_a_file_for_each_replica_and_overwrites_nothing(tmp_path: Path):
    pieces = [b"[worker-0] a\n[ps", b"-1] b\nplain\n"]
    assert list(copied(pieces, str(tmp_path / "new"), "j")) == [b"[worker-0] a\n", b"[ps-1] b\n", b"plain\n"]
    assert {path.name: path.read_bytes() for path in (tmp_path / "new").iterdir()} == {
        "j-worker-0.log": b"a\n", "j-ps-1.log": b"b\n", "j.log": b"plain\n"
    }  # fmt: skip
    assert list(copied([b"x\n"], str(tmp_path / "new"), "other")) == [b"x\n"]
    (tmp_path / "file").touch()
    for directory, name in (("new", "j"), ("file", "k")):
        with pytest.raises(BadInput, match="is not a directory, or has logs"):
            copied([], str(tmp_path / directory), name)


def test_charts_fill_their_width():
    assert bar(0.5, 4) == ("━━", "━━")
    assert bar(0.375, 4) == ("━╸", "━━")
    assert (bar(-1, 2), bar(9, 2)) == (("", "━━"), ("━━", ""))
    assert sparkline([0.0, 7.0], 9) == "▁█"
    assert sparkline([0, 0, 4, 4, 7, 7], 3) == "▁▅█"
    assert sparkline([1.0, 2.0, 3.0], 2) == "▁█"


def drawn(*views: JobView, seen: Observation | None = None, height: int = 24) -> str:
    console = Console(width=100, file=io.StringIO(), record=True)
    for one in views:
        console.print(render(one, seen or Observation(), height))
    return console.export_text()


def test_the_live_view_shows_replicas_that_do_not_run_first_and_counts_the_rest():
    pods = [PodView(f"w{index}", "worker", index, "Running") for index in range(30)]
    pods[27] = PodView("w27", "worker", 27, "Failed", exit_code=3)
    text = drawn(view(pods=pods, restarts=1, message="fine"), height=12)
    shown = [line.split()[0] for line in text.splitlines() if line.startswith("worker-")]
    assert shown[-1] == "worker-27" and shown[0] == "worker-0"
    assert f"and {30 - len(shown)} more" in text
    assert ", 1 restart" in text.splitlines()[0] and text.splitlines()[1] == "fine"


def test_the_live_view_shows_the_end_of_a_log_and_one_loss_is_no_course():
    text = drawn(view(), seen=Observation("worker-1", ("one", "two"), (1.0,)))
    assert "log of worker-1:\n  one\n  two" in text
    assert "loss" not in text
    assert "loss ▁█ 1 → 2" in drawn(view(), seen=Observation(losses=(1.0, 2.0)))


def test_the_use_of_replicas_has_columns_where_it_is_known():
    pods = [PodView("a", "worker", 0, "Running"), PodView("b", "worker", 1, "Running")]
    text = drawn(view(pods=pods), seen=Observation(usage={"a": Usage(1.25, 3 << 20), "b": Usage(None, None)}))
    assert [line.split() for line in text.splitlines() if line.startswith(("REPLICA", "worker"))] == [
        ["REPLICA", "STATE", "CPU", "MEMORY", "ADDRESS", "EXIT"],
        ["worker-0", "Running", "1.2", "3.0Mi"],
        ["worker-1", "Running"],
    ]
    gpus = drawn(view(pods=pods), seen=Observation(usage={"a": Usage(gpu=40.0, gpu_memory=2 << 30)}))
    assert "GPU MEMORY" in gpus and "40%" in gpus and "2.0Gi" in gpus
    assert "CPU" not in drawn(view(pods=pods))


class Observer:
    def observe(self, seen: JobView, lines: int) -> Observation:
        return Observation("worker-0", (f"{lines} lines",))


def test_a_live_screen_prints_events_says_messages_and_shows_its_footer():
    console = Console(width=80, height=20, file=io.StringIO(), force_terminal=True)
    screen = LiveScreen(Observer(), "press q", console)
    seen = view()
    seen.events.append(EventView("t", "Restarted", "again\nmore"))
    screen.show([seen])
    screen.say("hello")
    screen.close()
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "mnist: Restarted: again" in text and "more" not in text
    assert "press q" in text and "hello" in text and "19 lines" in text


def test_news_are_events_that_neither_a_screen_nor_the_status_showed():
    news = News()
    seen = view(message="worker 1 failed")
    seen.events.extend(EventView("t", "Old", f"event {number}") for number in range(5))
    assert news.of(seen) == ["Old: event 2", "Old: event 3", "Old: event 4"]
    assert news.of(seen) == []
    seen.events.append(EventView("t", "Failed", "worker 1 failed\noutput"))
    seen.events.append(EventView("t", "Restarted", "again"))
    assert news.of(seen) == ["Restarted: again"]


def test_lines_for_pipes_tell_each_change_once(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    screen = PlainScreen()
    (tmp_path / "log").write_text("hello\nworld\n")
    pods = [
        PodView("s", "ps", 0, "Running", log="/none"),
        PodView("w", "worker", 0, "Running", log=str(tmp_path / "log")),
    ]
    seen = view(pods=pods, message="fine")
    screen.show([seen])
    screen.show([seen])
    screen.say("stop")
    screen.close()
    lines = [line.partition("s ")[2] or line for line in capsys.readouterr().out.splitlines()]
    assert lines == ["mnist: Running: fine", "mnist worker-0: world", "stop"]


def test_the_end_of_a_job_is_summarized(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    (tmp_path / "log").write_text("saved to /out\nstep 4/4 loss=1\n")
    pods = [PodView("w", "worker", 0, "Succeeded", log=str(tmp_path / "log"))]
    done = view("Completed", pods=pods, progress={"step": 4, "totalSteps": 4}, restarts=1, **ENDED)
    assert summarize(done) == ""
    assert (
        capsys.readouterr().out == f"mnist completed in 90s, 1 restart; logs: {tmp_path}\n  step 4/4\n  saved to /out\n"
    )
    assert summarize(view("Completed", flags=" -n t", **ENDED)) == ""
    assert capsys.readouterr().out == "mnist completed in 90s; logs: `pdj logs mnist -n t`\n"
    failed = view("Failed", flags=" -n t", reason="R", message="m", progress={"step": 4, "totalSteps": 9}, **ENDED)
    assert summarize(failed) == "mnist failed: R: m"
    assert capsys.readouterr().out == "mnist failed after 90s at step 4/9; for details run `pdj why mnist -n t`\n"
    assert summarize(view("Suspended", flags=" -n t")) == "mnist is suspended; run `pdj resume mnist -n t` to continue"
    assert summarize(view("Running", note="killed")) == "mnist: killed"
    assert summarize(JobView(job(status={"phase": "Running"}), {}, "Interrupted")) == "mnist: Interrupted"


class Runner:
    def __init__(self) -> None:
        self.got: list[str] = []

    def interrupt(self) -> None:
        self.got.append("interrupt")

    def kill(self) -> None:
        self.got.append("kill")


class Said:
    def __init__(self) -> None:
        self.said: list[str] = []
        self.closed = 0

    def show(self, views: list[JobView]) -> None:
        pass

    def say(self, message: str) -> None:
        self.said.append(message)

    def close(self) -> None:
        self.closed += 1


def test_the_first_signal_stops_and_the_second_kills():
    runner, screen = Runner(), Said()
    _stop(runner, screen, 1)  # type: ignore[arg-type]
    _stop(runner, screen, 2)  # type: ignore[arg-type]
    assert runner.got == ["interrupt", "kill"]
    assert screen.said == ["Stopping; press Ctrl-C again to kill now."]


def test_signals_are_counted_and_put_back_and_ignored_ones_stay_ignored():
    before = signal.getsignal(signal.SIGTERM)
    hangup = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Signals() as signals:
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGHUP)
            assert (signals.count, signals.exit_code) == (1, 128 + signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGINT)
            assert (signals.count, signals.exit_code) == (2, 130)
        assert signal.getsignal(signal.SIGTERM) is before
    finally:
        signal.signal(signal.SIGHUP, hangup)


def test_the_exit_status_of_a_run_follows_from_its_jobs(capsys: pytest.CaptureFixture[str]):
    signals = Signals()
    done = view("Completed", **ENDED)
    assert _finish([done], [("default", "mnist")], signals) == 0
    with pytest.raises(JobFailed) as raised:
        _finish([], [("a", "x"), ("b", "x"), ("c", "y")], signals)
    assert str(raised.value).splitlines() == [f"{name} was deleted while it ran" for name in ("a/x", "b/x", "y")]
    signals.count, signals.last = 1, signal.SIGINT
    assert _finish([view("Suspended")], [("default", "mnist")], signals) == 130
    assert "pdj: mnist is suspended; run `pdj resume mnist`" in capsys.readouterr().err
    assert is_shared(("a", "x"), [("a", "x"), ("b", "x")]) and not is_shared(("a", "x"), [("a", "x"), ("b", "y")])


def test_a_screen_is_live_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch):
    observer: Any = Observer()
    assert isinstance(open_screen(observer), PlainScreen)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(open_screen(observer), PlainScreen)


class Target:
    """A target with one job, which a test changes."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    def job(self, namespace: str, name: str) -> JobView:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]


def test_watching_goes_on_while_a_cluster_does_not_answer_and_ends_when_a_job_is_deleted():
    target: Any = Target(Unreachable("no route"))
    screen = Said()
    seen = look_again(target, [view()], screen)
    assert (seen[0].note, screen.said) == ("no route; trying again", ["pdj: no route; trying again"])
    look_again(target, seen, screen)
    assert len(screen.said) == 1, "said once"
    gone: Any = Target(BadInput("not found"))
    with pytest.raises(JobFailed, match="mnist was deleted"):
        look_again(gone, [view()], screen)


def test_who_stops_watching_learns_how_to_go_on(capsys: pytest.CaptureFixture[str]):
    screen = Said()
    assert detach(screen, [view(flags=" -n t"), view("Completed")], 7) == 7
    assert screen.closed == 1
    assert capsys.readouterr().out == "mnist keeps training; watch it again with `pdj watch mnist -n t`\n"


def test_jobs_are_watched_until_all_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("paddlejob.cli.run.attach.observer", lambda _: MachineObserver(Store(tmp_path)))
    monkeypatch.setattr("paddlejob.cli.run.attach.PAUSE", 0.0)
    target: Any = Target(view(), view(), view("Completed", **ENDED))
    assert watch_jobs(target, [("default", "mnist")]) == 0
    assert "mnist completed in 90s" in capsys.readouterr().out
    failing: Any = Target(view("Failed", reason="R", message="m", **ENDED))
    with pytest.raises(JobFailed, match="mnist failed: R: m"):
        watch_jobs(failing, [("default", "mnist")])


def test_keys_are_read_from_a_terminal_and_none_elsewhere(monkeypatch: pytest.MonkeyPatch):
    with Keyboard() as keyboard:
        assert keyboard.wait(0.0) == ""
    leader, follower = pty.openpty()
    keyboard = Keyboard()
    keyboard._descriptor = follower
    os.write(leader, b"q\n")
    assert keyboard.wait(5.0) == "q"
    os.close(leader)
    os.close(follower)


class Broken:
    """A stream whose reader has gone away."""

    def __init__(self, error: OSError) -> None:
        self.error = error
        self.broken = True

    def write(self, text: str) -> int:
        raise self.error

    def flush(self) -> None:
        if self.broken:
            self.broken = False
            raise self.error


@pytest.mark.parametrize(
    ("error", "what"),
    [(BrokenPipeError(errno.EPIPE, "gone"), "was closed"), (OSError(errno.ENOSPC, "full"), "cannot be written (full)")],
)
def test_output_that_goes_away_is_reported_and_the_jobs_go_on(
    error: OSError, what: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    closed: list[int] = []
    monkeypatch.setattr("paddlejob.cli.run.output._close", closed.append)
    stream: Any = Broken(error)
    output = LastingOutput(stream)
    assert output.write("hello") == 5
    assert f"pdj: standard output {what}; the jobs keep running." in capsys.readouterr().err
    output.flush()
    assert 1 in closed


def test_programs_and_files_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    (tmp_path / "dir.py").mkdir()
    none = Overrides()

    def problem(files: list[str], module: str = "", after: tuple[str, ...] = ()) -> str:
        with pytest.raises(BadInput) as raised:
            programs.given(files, module, after, none)
        return str(raised.value)

    assert problem(["train.py", "job.yaml"]) == "train.py, job.yaml: name one program, or job files, in one command"
    assert problem(["job.yaml"], "mod").startswith("job.yaml, mod: name one program")
    assert problem(["absent.py"]) == "absent.py: no such file"
    assert problem(["dir.py"]) == "dir.py: is a directory; name the program in it"
    assert problem(["job.yaml"], after=("a",)).startswith("-- a: only a program takes arguments")
    assert problem([]).startswith("name a job file or a program, such as `pdj run job.yaml`")
    given = programs.given(["train.py"], "", ("--x",), Overrides(claims={"c": "/c"}), ["data", "/host"], lambda: "i:1")
    (made,) = given.load("")
    container = made["spec"]["worker"]["template"]["spec"]["containers"][0]
    assert (given.names, container["image"], container["command"]) == (
        ["train.py"],
        "i:1",
        ["python", "train.py", "--x"],
    )
    assert [one["mountPath"] for one in container["volumeMounts"]] == ["/mnt/data", "/c"]
    assert programs.given([], "pkg.mod", (), none).names == ["pkg.mod"]
    assert programs.given([], "", ("echo", "a", "b"), none).names == ["echo a"]
    assert (
        programs.given([], "pkg.mod", (), Overrides(image="own")).load("")[0]["spec"]["worker"]["template"]["spec"][
            "containers"
        ][0]["image"]
        == "own"
    )


def test_options_change_the_jobs_of_a_file(tmp_path: Path):
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump_all([document(), {"kind": "Secret", "apiVersion": "v1"}]))
    made, secret = programs.given([str(path)], "", (), Overrides(workers=7)).load(str(path))
    assert (made["spec"]["worker"]["replicas"], secret["kind"]) == (7, "Secret")
    with pytest.raises(BadInput, match=r"--ps: the job has no parameter servers; add spec\.ps to its file"):
        programs.given([str(path)], "", (), Overrides(servers=1)).load(str(path))


def test_variables_claims_and_images_are_checked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HERE", "x")
    assert programs.environment(["A=1=2", "HERE", "B="]) == {"A": "1=2", "HERE": "x", "B": ""}
    for value in ("1A=x", "=x", "A B=x"):
        with pytest.raises(BadInput, match="must have the form NAME=VALUE"):
            programs.environment([value])
    monkeypatch.delenv("ABSENT", raising=False)
    with pytest.raises(BadInput, match="--env ABSENT: is not set here; give it a value with --env ABSENT=VALUE"):
        programs.environment(["ABSENT"])
    assert programs.claims(["a", "b=/x"]) == {"a": "", "b": "/x"}
    for value in ("a=x", "A", "a/b"):
        with pytest.raises(BadInput, match="must have the form CLAIM or CLAIM=/PATH"):
            programs.claims([value])
    assert check_image("--image", "a/b:1") == "a/b:1" and check_image("--image", "") == ""
    with pytest.raises(BadInput, match="is not the name of an image"):
        check_image("--image", "a b")


def test_a_dry_run_prints_and_save_keeps_the_job(tmp_path: Path):
    (tmp_path / "train.py").touch()
    done = pdj("run", "train.py", "--workers", "2", "--dry-run", "--save", "kept.yaml", folder=tmp_path)
    assert yaml.safe_load(done.stdout) == yaml.safe_load((tmp_path / "kept.yaml").read_text())
    assert "wrote kept.yaml; run it with `pdj run kept.yaml`" in done.stderr
    assert json.loads(pdj("run", "train.py", "--dry-run", "-o", "json", folder=tmp_path).stdout)["kind"] == "PaddleJob"
    again = pdj("run", "train.py", "--dry-run", "--save", "kept.yaml", folder=tmp_path)
    assert "kept.yaml: already exists" in again.stderr


def test_the_target_is_shown_chosen_and_checked(tmp_path: Path):
    own = {"XDG_CONFIG_HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "none")}
    assert pdj("target", **own).stdout == "this machine\n"
    assert pdj("target", "local", "-n", "team", **own).stdout == "commands now use this machine, namespace team\n"
    assert pdj("target", **own).stdout == "this machine, namespace team\n"
    assert "name the target as well" in pdj("target", "-n", "x", **own).stderr
    assert "this machine has no context" in pdj("target", "local", "--context", "x", **own).stderr
    assert pdj("target", "cluster", **own).returncode != 0
    assert pdj("target", **own).stdout == "this machine, namespace team\n", "a cluster that is not there is not kept"


def test_former_runs_are_cleaned(tmp_path: Path):
    store = Store(tmp_path)
    for _ in range(3):
        store.begin(document(), RunOptions(), NOON)[1].release()
    own = {"PADDLEJOB_STATE": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "c")}
    assert pdj("clean", "--keep", "1", **own).stdout.startswith("removed 1 former run, ")
    assert pdj("clean", "mnist", **own).stdout.startswith("removed 1 former run, ")
    assert pdj("clean", **own).stdout == "No former runs to remove.\n"
    assert "has no former runs" in pdj("clean", "absent", **own).stderr
    assert pdj("clean", "../x", **own).returncode == 2


def test_jobs_of_this_machine_are_listed_changed_and_deleted(tmp_path: Path):
    store = Store(tmp_path)
    own = {"PADDLEJOB_STATE": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "c")}
    assert "No jobs found; start one with `pdj run FILE`." in pdj("list", **own).stderr
    assert "No runs found; start one with `pdj run FILE`." in pdj("list", "--history", **own).stderr
    folder, lock = store.begin(document(elastic=1), RunOptions(), NOON)
    folder.write_status(Status.model_validate({"phase": "Failed", "attempt": 1, "message": "m", **ENDED}))
    lock.release()
    assert pdj("list", **own).stdout.splitlines()[1].split()[:2] == ["mnist", "Failed"]
    assert json.loads(pdj("list", "--history", "-o", "json", **own).stdout)[0]["run"] == 1
    assert "has ended (Failed) and cannot be changed" in pdj("scale", "mnist", "3", **own).stderr
    (folder.path / "job.json").write_text("{")
    damaged = pdj("list", **own)
    assert "note: mnist: " in damaged.stderr and "Damaged" in damaged.stdout
    assert pdj("delete", "mnist", **own).stdout == "mnist deleted\n"


def test_an_error_of_the_system_says_what_to_do():
    full = _describe(OSError(errno.ENOSPC, "No space left on device", "/state"))
    assert full.startswith("/state: No space left on device; free some space (`pdj clean`")
    assert full.endswith("set PADDLEJOB_STATE to another disk")
    assert _describe(OSError(errno.EDQUOT, "quota", "/x")).startswith("/x: quota; free")
    for code in (errno.EROFS, errno.EACCES):
        assert _describe(OSError(code, "no", "/x")) == "/x: no; set PADDLEJOB_STATE to a writable directory"
    assert _describe(OSError(errno.EIO, "broken")) == "broken"
    assert _describe(OSError("text")) == "text"


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (BadInput("wrong"), 2, "pdj: wrong\n"),
        (JobFailed("lost"), 1, "pdj: lost\n"),
        (KeyboardInterrupt(), 130, ""),
        (OSError(errno.EIO, "broken"), 1, "pdj: broken\n"),
        (ZeroDivisionError("x"), 70, "pdj: this is a bug in pdj (ZeroDivisionError: x); set PADDLEJOB_DEBUG=1 for a "),
    ],
)
def test_every_error_is_one_message_and_an_exit_status(
    error: BaseException, code: int, message: str, monkeypatch: pytest.MonkeyPatch
):
    def broken(**_: Any) -> None:
        raise error

    monkeypatch.delenv("PADDLEJOB_DEBUG", raising=False)
    monkeypatch.setattr(main_module, "app", broken)
    done = pdj()
    assert (done.returncode, done.stderr.startswith(message), bool(done.stderr)) == (code, True, bool(message))
    if code == 70:
        with pytest.raises(ZeroDivisionError):
            pdj(PADDLEJOB_DEBUG="1")


def test_each_verb_is_in_the_help_and_has_its_own():
    text = pdj("--help").stdout
    assert [line.split()[0] for line in text.partition("Commands:")[2].splitlines() if line.startswith("  ")] == [
        *VERBS
    ]
    for verb in ("run", "get", "delete"):
        own = pdj(verb, "--help").stdout
        assert own.startswith(f"Usage: pdj {verb} ") and "Options:" in own and "{" not in own.splitlines()[0]
    assert "Arguments:\n  JOB" in pdj("get", "--help").stdout
    assert pdj("--version").stdout.startswith("pdj ")
    assert "did you mean `pdj list`?" in pdj("lst").stderr


def test_a_page_of_the_doctor_ends_with_what_to_change():
    checks = [
        Check("a", Verdict.GOOD, "fine"),
        Check("b", Verdict.NOTE, "so", "know this"),
        Check("c", Verdict.NOTE, "x"),
    ]
    page = _page(checks)
    assert page.splitlines()[1].split() == ["a", "good", "fine"]
    assert page.endswith("Notes:\n  b: know this\n\nNo changes needed.")
    changed = _page([*checks, Check("d", Verdict.CHANGE, "bad", "do that")])
    assert "Changes needed:\n  d: do that\n\nNotes:" in changed and "No changes needed." not in changed


def test_the_doctor_judges_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    assert machine.check_paddle({"paddle": "2.6.2", "cuda": True}).found == "2.6.2, GPU build"
    assert machine.check_paddle({"paddle": "2.6.2", "cuda": False}).found == "2.6.2, CPU build"
    assert machine.check_parameter_server({"ps": True}).verdict is Verdict.GOOD
    assert machine.check_parameter_server({}).found == "unknown without paddle"
    assert machine.check_python("/p", {"error": "no"}).found == "/p cannot be run: no"
    assert machine.check_python("/p", {"python": "3.11"}).found == "3.11 (/p)"
    monkeypatch.setattr(machine, "_available_memory", lambda: 2 * machine.GIB - 1)
    assert machine.check_memory().verdict is Verdict.CHANGE
    monkeypatch.setattr(machine, "_available_memory", lambda: 2 * machine.GIB)
    assert machine.check_memory().verdict is Verdict.GOOD
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setenv("PADDLEJOB_STATE", str(tmp_path / "a" / "b"))
    for free, disk, shared in (
        (machine.GIB, "good", "good"),
        (machine.GIB - 1, "change", "good"),
        (1000, "change", "note"),
    ):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: usage._replace(free=free))
        assert (str(machine.check_disk().verdict), str(machine.check_shared_memory().verdict)) == (disk, shared)
    monkeypatch.setattr(machine.platform, "system", lambda: "Darwin")
    (only,) = machine.check_machine()
    assert (only.verdict, "use Linux for `pdj run`" in only.advice) == (Verdict.CHANGE, True)


@pytest.mark.parametrize(
    ("gpus", "note", "facts", "verdict", "found"),
    [
        (0, "", {}, "note", "none"),
        (0, "driver too old; update it", {}, "change", "none: driver too old"),
        (2, "", {"paddle": "2", "cuda": False}, "change", "2, but paddle is a CPU build"),
        (2, "one is lost; reset it", {"paddle": "2", "cuda": True}, "note", "2; one is lost"),
        (2, "", {}, "good", "2"),
    ],
)
def test_the_doctor_judges_gpus(
    gpus: int, note: str, facts: dict[str, Any], verdict: str, found: str, monkeypatch: pytest.MonkeyPatch
):
    made = Machine("m", 1.0, 1, tuple(Gpu(f"u{index}", str(index)) for index in range(gpus)), note)
    monkeypatch.setattr("paddlejob.local.machine.resources.this_machine", lambda: made)
    check = machine.check_gpus(facts)
    assert (str(check.verdict), check.found) == (verdict, found)
    if note:
        assert check.advice == note.partition("; ")[2]


def test_progress_of_data_is_a_line_once_in_a_while(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    now = [100.0]
    monkeypatch.setattr("paddlejob.cli.verbs.data.monotonic", lambda: now[0])
    report: Any = _plain_lines()
    report("copy", 1 << 20, 9 << 20)
    now[0] += 5
    report("copy", 2 << 20, 9 << 20)
    now[0] += 1
    report("copy", 3 << 20, None)
    report("copy", 9 << 20, 9 << 20)
    report("empty", 0, 0)
    assert capsys.readouterr().err.splitlines() == ["copy: 2 of 9 MiB", "copy: 9 of 9 MiB"]
