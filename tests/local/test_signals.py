"""However `pdj run` ends, no process of the job outlives it, and the next command shows what happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from paddlejob.local.sandbox.proc import parents
from tests.support.pdj import Pdj, wait

ESCAPES = ["bash", "-c", "setsid sleep 300 & (setsid setsid sleep 300 &) ; sleep 300"]
"""A program whose children leave its process group and its session, as those of Paddle's launcher do."""


@pytest.fixture(params=["namespaces", "plain"])
def isolation(request: pytest.FixtureRequest, pdj: Pdj) -> str:
    """With namespaces, and as on a machine where they are not permitted."""
    if request.param == "plain":
        pdj.environment["PADDLEJOB_NAMESPACES"] = "0"
    return str(request.param)


def test_ctrl_c_while_the_command_still_starts_is_no_traceback(tmp_path: Path):
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")
    done = subprocess.run(
        [sys.executable, "-m", "paddlejob", "list"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (130, "")


def begin(pdj: Pdj) -> subprocess.Popen[str]:
    running = pdj.start("run", pdj.write(command=ESCAPES, ps=1, workers=2))
    pdj.until("job", phase="Running")
    return running


def engine_of(running: subprocess.Popen[str]) -> int:
    return next(pid for pid, parent in parents().items() if parent == running.pid)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_suspends_the_job_and_leaves_nothing(pdj: Pdj, number: signal.Signals):
    running = begin(pdj)
    assert len(pdj.processes()) >= 10
    running.send_signal(number)
    output, _ = running.communicate(timeout=30)
    assert running.returncode == 128 + number, output
    assert pdj.processes() == []
    assert pdj.status("job").phase == "Suspended"
    assert "pdj resume job" in output
    assert "Interrupted" in pdj("why", "job").stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_was_ignored_from_the_start_stays_ignored(pdj: Pdj, number: signal.Signals):
    """As under `nohup`, or in the background of a shell script."""
    running = pdj.start("run", pdj.write(command=["sleep", "2"]), ignoring=[number])
    pdj.until("job", phase="Running")
    for pid in (running.pid, engine_of(running)):
        os.kill(pid, number)
    output, _ = running.communicate(timeout=30)
    assert running.returncode == 0, output
    assert pdj.status("job").phase == "Completed"


def test_killing_pdj_leaves_nothing_and_the_job_can_be_resumed(pdj: Pdj, isolation: str):
    running = begin(pdj)
    running.kill()
    running.wait()
    pdj.until_nothing_lives()
    assert "pdj run was killed" in pdj("why", "job").stdout
    assert pdj("resume", "job").returncode == 0
    pdj.until("job", phase="Running", attempt=2)
    assert pdj("delete", "job").returncode == 0
    pdj.until_nothing_lives()


def test_killing_the_engine_itself_leaves_nothing_and_is_reported(pdj: Pdj, isolation: str):
    running = begin(pdj)
    os.kill(engine_of(running), signal.SIGKILL)
    output, _ = running.communicate(timeout=30)
    assert running.returncode == 1
    assert "was killed" in output
    pdj.until_nothing_lives()
    assert "Interrupted" in pdj("list").stdout
    assert "pdj resume job" in pdj("why", "job").stdout
    pdj("resume", "job")
    pdj.until("job", phase="Running", attempt=2, disruptions=1)


def test_killing_the_supervisor_of_containers_is_reported_too(pdj: Pdj, isolation: str):
    running = begin(pdj)
    engine = engine_of(running)
    os.kill(next(pid for pid, parent in parents().items() if parent == engine), signal.SIGKILL)
    running.communicate(timeout=30)
    assert running.returncode == 1
    pdj.until_nothing_lives()
    assert "Interrupted" in pdj("list").stdout


def test_killing_everything_at_once_leaves_nothing(pdj: Pdj, isolation: str):
    running = begin(pdj)
    engine = engine_of(running)
    running.kill()
    os.kill(engine, signal.SIGKILL)
    running.wait()
    pdj.until_nothing_lives()


def test_a_second_signal_does_not_wait_for_a_program_that_ignores_the_first(pdj: Pdj):
    running = pdj.start("run", pdj.write(command=["bash", "-c", "trap '' TERM; while :; do sleep 1; done"]))
    pdj.until("job", phase="Running")
    running.send_signal(signal.SIGINT)
    pdj.until("job", phase="Suspended")
    assert pdj.processes()
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=30)
    assert running.returncode == 130
    pdj.until_nothing_lives()


@pytest.mark.parametrize("tenths", [0, 3, 5, 7, 10])
def test_ctrl_c_at_any_moment_leaves_nothing(pdj: Pdj, tenths: int):
    running = pdj.start("run", pdj.write(command=ESCAPES, ps=1, workers=2))
    time.sleep(0.1 * tenths)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=30)
    assert running.returncode in (130, -signal.SIGINT)
    pdj.until_nothing_lives()


NEEDS_ITS_CHILD = """
import os, signal, subprocess, sys, time
loader = subprocess.Popen([sys.executable, "-c", "print(input())"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def save(*_):
    time.sleep(0.5)
    batch, _ = loader.communicate(b"last batch\\n")
    open("checkpoint", "wb").write(batch)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("training", flush=True)
time.sleep(300)
"""


def test_sigterm_reaches_the_program_and_not_its_data_loaders(pdj: Pdj, isolation: str):
    """As on a cluster; a checkpoint that needs the loaders would be lost otherwise."""
    (pdj.folder / "train.py").write_text(NEEDS_ITS_CHILD)
    running = pdj.start("run", pdj.write(command=["python", "train.py"]))
    wait(lambda: "training" in pdj.log("job", "worker-0"), lambda: "the program")
    assert pdj("suspend", "job").returncode == 0
    output, _ = running.communicate(timeout=60)
    assert (pdj.folder / "checkpoint").read_text() == "last batch\n", output + pdj.log("job", "worker-0")
    pdj.until_nothing_lives()


def test_what_a_program_leaves_running_ends_with_it(pdj: Pdj, isolation: str):
    """The grace period is the program's own: once it has ended, its children are killed."""
    leaves = "trap 'exit 0' TERM; (trap '' TERM; exec sleep 300) & echo started; wait"
    running = pdj.start("run", pdj.write(command=["bash", "-c", leaves]))
    wait(lambda: "started" in pdj.log("job", "worker-0"), lambda: "the program")
    assert pdj("suspend", "job").returncode == 0
    running.communicate(timeout=60)
    pdj.until_nothing_lives()
