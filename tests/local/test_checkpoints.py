"""The programs in docs/howto/checkpoints.md, copied from the page, killed, and trained to the end."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
from pathlib import Path

import pytest

from paddlejob.local.sandbox.proc import descendants
from paddlejob.local.sandbox.supervisor import probe
from tests.support.pages import copy_files
from tests.support.pdj import Pdj, wait

DOCS = Path(__file__).parents[2] / "docs" / "howto"
pytestmark = [
    pytest.mark.full,
    pytest.mark.xdist_group("training"),
    pytest.mark.skipif(
        importlib.util.find_spec("paddle") is None or not probe()[0], reason="needs PaddlePaddle and mount namespaces"
    ),
]
LONG = 240.0


def progress(log: str) -> dict[int, float]:
    """The loss of each step that was printed."""
    return {int(step): float(loss) for step, loss in re.findall(r"^step=(\d+)/\d+ loss=([\d.]+)", log, re.MULTILINE)}


def kill(pdj: Pdj, job: str, pod: str) -> None:
    found = next(one for one in pdj.folder_of(job).pods() if one.name.endswith(pod))
    os.kill(descendants(found.pid)[-1], signal.SIGKILL)


def test_a_collective_job_that_is_killed_goes_on_and_a_larger_one_continues_it(pdj: Pdj):
    copy_files(DOCS / "own-program.md", pdj.folder)
    copy_files(DOCS / "checkpoints.md", pdj.folder)
    pdj.environment |= {"OMP_NUM_THREADS": "1", "STEPS": "2000"}
    running = pdj.start("run", "collective/job.yaml")
    log = lambda attempt=1: pdj.log("mine", "worker-0", attempt)  # noqa: E731
    wait(lambda: "checkpoint step=60 saved" in log(), log, LONG)
    kill(pdj, "mine", "worker-1")
    output, _ = running.communicate(timeout=LONG)
    assert running.returncode == 0, output
    before, after = progress(log()), progress(log(attempt=2))
    (begin,) = map(int, re.findall(r"worker 0 of 2 starts after step (\d+) of 2000", log(attempt=2)))
    assert begin in (max(before), max(before) - 20), "the last step may have been printed, but not saved"
    assert min(after) == begin + 20
    assert after[min(after)] < before[20], "the loss goes on from the checkpoint"

    job = pdj.folder / "collective" / "job.yaml"
    job.write_text(job.read_text().replace("replicas: 2", "replicas: 3"))
    older, newest = sorted(pdj.state.glob("claims/default/mine-output/step-*.pdckpt"))
    newest.write_bytes(b"damaged")
    pdj.environment["STEPS"] = "2040"
    done = pdj("run", "collective/job.yaml", timeout=LONG)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{newest.name} cannot be read" in log()
    assert "worker 0 of 3 starts after step 1980 of 2040" in log(), older
    assert progress(log())[2040] < before[20]


def test_a_parameter_server_job_that_is_killed_goes_on_from_what_its_servers_saved(pdj: Pdj):
    copy_files(DOCS / "checkpoints.md", pdj.folder)
    pdj.environment |= {"OMP_NUM_THREADS": "1", "GLOG_minloglevel": "2", "EPOCHS": "5"}
    running = pdj.start("run", "servers/job.yaml")
    log = lambda attempt=1: pdj.log("saved-ps", "worker-0", attempt)  # noqa: E731
    wait(lambda: "checkpoint step=2 saved" in log(), log, LONG)
    kill(pdj, "saved-ps", "ps-1")
    output, _ = running.communicate(timeout=LONG)
    assert running.returncode == 0, output
    before, after = progress(log()), progress(log(attempt=2))
    assert re.search(r"worker 0 of 2 starts after epoch [2-5] of 5", log(attempt=2)), log(attempt=2)
    assert all(loss < before[1] for loss in after.values()), "the loss goes on from the checkpoint"
