"""Progress, goodput and hang detection of real processes, as the status of a job shows them."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from paddlejob.local.sandbox.proc import descendants
from tests.support.pdj import Pdj, wait

TRAINS = (
    "import os, time\n"
    "first = int(os.environ.get('FIRST', '0'))\n"
    "for step in range(first, first + {steps}):\n"
    "    print(f'step: {{step}}/1000 loss: {{1 / (step + 1):.4f}}', flush=True)\n"
    "    time.sleep(0.1)\n"
    "{then}\n"
)


def trains(steps: int = 10_000, then: str = "") -> list[str]:
    return ["python3", "-c", TRAINS.format(steps=steps, then=then)]


def freeze(pdj: Pdj, pod: str) -> int:
    """Stop the program of a pod, as a hang does; returns its process number."""
    (record,) = [one for one in pdj.folder_of("job").pods() if one.name == pod and not one.removed]
    pid = max(descendants(record.pid))
    os.kill(pid, signal.SIGSTOP)
    return pid


def test_the_status_shows_the_step_its_metrics_and_the_expected_end(pdj: Pdj):
    pdj("run", "-d", pdj.write(command=trains(), workers=2))
    wait(lambda: bool((progress := pdj.status("job").progress) and progress.eta), lambda: str(pdj.status("job")))
    progress = pdj.status("job").progress
    assert progress is not None
    assert (progress.totalSteps, progress.stepAtStart) == (1000, None)
    assert progress.step is not None
    assert progress.highestStep == progress.step
    assert 0 < progress.metrics["loss"] < 1
    assert progress.lastOutputTime
    wait(lambda: (pdj.status("job").goodput or 0) > 0, lambda: str(pdj.status("job")))


def test_the_last_steps_before_a_failure_are_known_and_the_next_attempt_begins_with_them(pdj: Pdj):
    pdj("run", "-d", pdj.write(command=trains(steps=15, then="raise SystemExit(3)"), backoffLimit=1))
    status = pdj.until("job", phase="Failed")
    assert status.progress is not None
    assert (status.progress.highestStep, status.progress.stepAtStart, status.progress.step) == (14, 14, 14)


def test_a_frozen_worker_is_noticed_and_the_job_restarts_with_the_last_lines_and_the_state_of_its_processes(pdj: Pdj):
    pdj("run", "-d", pdj.write(command=trains(), workers=2, stallSeconds=10))
    wait(lambda: bool(pdj.status("job").progress), lambda: str(pdj.status("job")))
    frozen = [freeze(pdj, f"job-worker-{index}") for index in range(2)]
    status = pdj.until("job", restarts=1)
    assert status.reason == "Stalled"
    assert "no worker printed a line for 1" in status.message
    assert "stopped by a signal" in status.message
    assert "loss:" in status.message
    pdj.until("job", phase="Running", attempt=2)
    for pid in frozen:
        assert not Path("/proc", str(pid)).exists(), "a frozen process is killed"


@pytest.mark.full
def test_as_long_as_one_worker_prints_a_silent_one_is_no_reason_to_restart(pdj: Pdj):
    script = "test $PADDLE_TRAINER_ID = 0 && sleep 16; for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 2; done"
    done = pdj("run", pdj.write(command=["bash", "-c", script], workers=2, stallSeconds=10), timeout=120)
    assert done.returncode == 0, done.stderr
    assert pdj.status("job").restarts == 0


def test_nothing_is_read_where_progress_is_off(pdj: Pdj):
    done = pdj("run", pdj.write(command=trains(steps=20), progress={"enabled": False}))
    assert done.returncode == 0, done.stderr
    assert pdj.status("job").progress is None
