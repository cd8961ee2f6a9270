"""`pdj watch`: looking at a job that runs, and going away again."""

from __future__ import annotations

from tests.support.pdj import START, Pdj
from tests.support.terminal import terminal

STEPS = "import time\nfor step in range(1, 6): print(f'step={step}/10 loss={1 / step}', flush=True)\ntime.sleep(300)\n"
PATIENCE = 60.0


def test_a_job_is_watched_and_left_with_q_and_with_ctrl_c(pdj: Pdj):
    assert pdj("run", "-d", pdj.write(command=["python", "-c", STEPS], workers=2)).returncode == 0
    with terminal([*START, "watch", "job"], pdj.environment, pdj.folder) as screen:
        screen.until("step 5/10, loss 0.2")
        screen.until("▁")
        screen.until("MEMORY")
        screen.press(b"q")
        assert screen.end() == 0
        assert "job keeps training; watch it again with `pdj watch job`" in screen.shown
    with terminal([*START, "watch", "job"], pdj.environment, pdj.folder) as screen:
        screen.until("50%")
        screen.press(b"\x03")
        assert screen.end() == 130
    assert pdj.status("job").phase == "Running"


def test_without_a_terminal_watching_prints_lines_until_the_end(pdj: Pdj):
    pdj("run", "-d", pdj.write(command=["sh", "-c", "echo step=1/1 loss=2; sleep 3"]))
    done = pdj("watch", "job")
    assert done.returncode == 0, done.stderr
    assert "job completed in" in done.stdout
    again = pdj("watch", "job")
    assert "job completed in" in again.stdout


def test_watching_a_job_that_fails_says_why(pdj: Pdj):
    pdj("run", "-d", pdj.write(command=["sh", "-c", "sleep 2; exit 3"], backoffLimit=0))
    done = pdj("watch", "job")
    assert done.returncode == 1
    assert "pdj: job failed: BackoffLimitExceeded" in done.stderr


def test_a_job_that_is_deleted_while_it_is_watched_ends_the_watching(pdj: Pdj):
    pdj("run", "-d", pdj.write(command=["sleep", "300"]))
    pdj.until("job", phase="Running")
    watching = pdj.start("watch", "job")
    assert pdj("delete", "job").returncode == 0
    output, _ = watching.communicate(timeout=PATIENCE)
    assert watching.returncode in (1, 2), output
    assert "was deleted" in output or "not found" in output
