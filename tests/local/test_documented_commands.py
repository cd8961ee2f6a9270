"""Commands and output of the documentation, run on this machine as a reader would."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from paddlejob.local.sandbox.supervisor import probe
from tests.support.pages import shape, shown_by
from tests.support.pdj import Pdj, wait

ROOT = Path(__file__).parents[2]
TRAINS = pytest.mark.skipif(
    importlib.util.find_spec("paddle") is None or not probe()[0], reason="needs PaddlePaddle and mount namespaces"
)
ISOLATED = pytest.mark.skipif(not probe()[0], reason="no mount namespaces here")
LONG = 240.0
MNIST = """
import time
for step in range(100, 1201, 100):
    if step == 1100:
        print("saved checkpoint step=1000", flush=True)
        time.sleep(5)
    print(f"step {step}/5000 loss={300 / step} lr=0.001 1,210 samples/s", flush=True)
time.sleep(300)
"""


def measured(output: str) -> str:
    """Without the values that differ between two trainings, and the worker that printed last."""
    return re.sub(r"(?<=loss )[\d.]+|[\d,]+(?= samples/s)|worker-\d(?=\.$)", "N", output, flags=re.MULTILINE)


def pid_of(pdj: Pdj, job: str, replica: str) -> int:
    """As a reader finds it: in the column PID of `pdj get`."""
    rows = [line.split() for line in pdj("get", job).stdout.splitlines()]
    header = next(row for row in rows if row[:1] == ["REPLICA"])
    return int(next(row for row in rows if row[:1] == [replica])[header.index("PID")])


@TRAINS
@pytest.mark.full
@pytest.mark.xdist_group("training")
def test_the_worker_of_first_job_is_killed_and_the_job_ends_as_the_page_shows(pdj: Pdj):
    """docs/tutorial/first-job.md, from "Break it" on."""
    shutil.copytree(ROOT / "examples", pdj.folder / "examples")
    pdj.environment["STEP_SECONDS"] = "0.1"
    assert pdj("run", "-d", "examples/checkpoint/job.yaml", timeout=LONG).returncode == 0
    del pdj.environment["STEP_SECONDS"]
    printed = lambda: pdj("logs", "checkpoint").stdout  # noqa: E731
    wait(lambda: "step=50/400" in printed(), printed, LONG)
    os.kill(pid_of(pdj, "checkpoint", "worker-1"), signal.SIGKILL)
    pdj.until("checkpoint", attempt=2)
    assert "attempt 2, restarts 1 of 3" in pdj("get", "checkpoint").stdout
    followed = pdj("logs", "-f", "checkpoint", timeout=LONG).stdout
    assert re.search(r"starts after step (50|100) of 400", followed)
    assert pdj("watch", "checkpoint", timeout=LONG).returncode == 0
    shown = shown_by("tutorial/first-job.md", "pdj why checkpoint")
    assert shape(measured(pdj("why", "checkpoint").stdout)) == shape(measured(shown))

    assert pdj("run", "examples/checkpoint/job.yaml", timeout=LONG).returncode == 0
    assert "nothing left to train; empty /output to start over" in pdj("logs", "checkpoint").stdout
    assert list((pdj.state / "claims/default/checkpoint-output").iterdir())


def test_progress_is_listed_and_shown_as_the_page_shows_it(pdj: Pdj):
    """docs/howto/progress.md."""
    assert pdj("run", "-d", pdj.write("mnist", command=["python3", "-c", MNIST], workers=2)).returncode == 0
    shown = lambda: pdj("get", "mnist").stdout  # noqa: E731
    wait(lambda: "step 1200/5000" in shown() and "ETA" in shown() and "goodput" in shown(), shown)
    for command in ("pdj list", "pdj get mnist"):
        expected = shape(shown_by("howto/progress.md", f"$ {command}"))
        assert shape(pdj(*command.split()[1:]).stdout)[: len(expected)] == expected


@ISOLATED
def test_the_data_job_prints_what_the_page_shows(pdj: Pdj):
    """docs/tutorial/batch-job.md; on a cluster `kubectl logs` prints the same."""
    (pdj.folder / "efs").mkdir()
    job = ROOT / "deploy/examples/batch-job/paddle-data-job.yaml"
    assert pdj("run", str(job), "--volume", "efsvol=./efs").returncode == 0
    printed = pdj("logs", "paddle-data").stdout
    assert printed == shown_by("tutorial/batch-job.md", "$ kubectl logs job/paddle-data") + "\n"
