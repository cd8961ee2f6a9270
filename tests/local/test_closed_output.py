"""`pdj run` keeps training when its output goes away, and says so where that can still be read."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.support.pdj import START, Pdj, wait

PROGRAM = ["bash", "-c", "echo step 1; until [ -e go ]; do sleep 0.05; done; echo done > result"]
KEEPS = "pdj: standard output was closed; the jobs keep running."


def start(pdj: Pdj, file: str, reader: int, stderr: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*START, "run", file], env=pdj.environment, stdout=reader, stderr=stderr, cwd=pdj.folder)


def finish(pdj: Pdj, running: subprocess.Popen[bytes]) -> int:
    """Let the program end only after the output is closed."""
    wait(lambda: pdj.status("job").phase == "Running" or running.poll() is not None, lambda: "the program")
    (pdj.folder / "go").touch()
    return running.wait(timeout=60)


def test_a_job_completes_after_the_reader_of_its_output_has_ended(pdj: Pdj):
    read, write = os.pipe()
    with (pdj.folder / "errors").open("w") as errors:
        running = start(pdj, pdj.write(command=PROGRAM), write, errors.fileno())
    os.close(write)
    os.close(read)
    assert finish(pdj, running) == 0
    assert (pdj.folder / "result").read_text() == "done\n"
    assert pdj.status("job").phase == "Completed"
    shown = (pdj.folder / "errors").read_text()
    assert shown.count(KEEPS) == 1
    assert "`pdj logs -f JOB`" in shown


def test_a_job_completes_when_errors_go_to_the_same_closed_pipe(pdj: Pdj):
    """As with `pdj run job.yaml 2>&1 | head`."""
    read, write = os.pipe()
    running = start(pdj, pdj.write(command=PROGRAM), write, write)
    os.close(write)
    os.read(read, 1)  # the first note
    os.close(read)
    assert finish(pdj, running) == 0
    assert pdj.status("job").phase == "Completed"


def test_a_job_that_fails_then_still_has_exit_status_1(pdj: Pdj):
    read, write = os.pipe()
    failing = ["bash", "-c", "until [ -e go ]; do sleep 0.05; done; exit 3"]
    with (pdj.folder / "errors").open("w") as errors:
        running = start(pdj, pdj.write(command=failing, backoffLimit=0), write, errors.fileno())
    os.close(write)
    os.close(read)
    assert finish(pdj, running) == 1
    assert "job failed: BackoffLimitExceeded" in (pdj.folder / "errors").read_text()


def test_a_job_completes_though_its_output_fills_a_disk(pdj: Pdj):
    with Path("/dev/full").open("w") as full, (pdj.folder / "errors").open("w") as errors:
        running = start(pdj, pdj.write(command=PROGRAM), full.fileno(), errors.fileno())
        assert finish(pdj, running) == 0
    shown = (pdj.folder / "errors").read_text()
    assert "standard output cannot be written (No space left on device); the jobs keep running" in shown
