"""Workers of a parameter-server job come and go while the others train, with real PaddlePaddle."""

from __future__ import annotations

import os
import re
import signal

import pytest

from paddlejob.local.sandbox.proc import descendants
from tests.support.pdj import Pdj, wait

pytest.importorskip("paddle", reason="PaddlePaddle is not installed")
pytestmark = pytest.mark.xdist_group("training")

IMAGE = "registry.baidubce.com/paddle-operator/demo-wide-and-deep:v1"
LONG = 240.0
EPOCHS = 12
SAMPLES = 10_000
"""With few samples the result depends more on when a worker stops to learn them by heart than on its peers."""


def live_job(pdj: Pdj, name: str, epoch_seconds: float = 0.0, **spec: object) -> str:
    pdj.environment |= {"EPOCHS": str(EPOCHS), "SAMPLES": str(SAMPLES), "OMP_NUM_THREADS": "1"}
    pdj.environment["EPOCH_SECONDS"] = str(epoch_seconds)
    return pdj.write(name, ps=1, workers=3, elastic=1, withGloo=0, container={"image": IMAGE}, **spec)


def epochs(pdj: Pdj, name: str, worker: int) -> list[int]:
    """The epochs that the worker has finished, in the order of its log."""
    return [int(found) for found in re.findall(rf"^epoch (\d+)/\d+ worker {worker} ", log(pdj, name, worker), re.M)]


def log(pdj: Pdj, name: str, worker: int) -> str:
    return pdj.log(name, f"worker-{worker}")


def final_auc(pdj: Pdj, name: str) -> float:
    found = re.search(r"^final auc=([\d.]+)", log(pdj, name, 0), re.M)
    assert found, log(pdj, name, 0)
    return float(found[1])


def kill(pdj: Pdj, name: str, worker: int) -> None:
    pod = next(one for one in pdj.folder_of(name).pods() if one.name == f"{name}-worker-{worker}")
    os.kill(descendants(pod.pid)[0], signal.SIGKILL)


@pytest.mark.full
def test_a_killed_worker_rejoins_others_are_added_and_removed_and_the_model_is_as_good(pdj: Pdj):
    calm = pdj("run", live_job(pdj, "calm"), timeout=LONG)
    assert calm.returncode == 0, calm.stdout + calm.stderr
    running = pdj.start("run", live_job(pdj, "live", epoch_seconds=3))
    wait(lambda: len(epochs(pdj, "live", 2)) >= 2, lambda: log(pdj, "live", 2), LONG)
    before = [len(epochs(pdj, "live", worker)) for worker in (0, 1)]
    kill(pdj, "live", 2)
    wait(lambda: "worker 2 joins" in log(pdj, "live", 2), lambda: str(pdj.status("live")), LONG)
    for worker, earlier in zip((0, 1), before, strict=True):
        goes_on = lambda worker=worker, earlier=earlier: len(epochs(pdj, "live", worker)) > earlier  # noqa: E731
        wait(goes_on, lambda worker=worker: log(pdj, "live", worker), LONG)
    assert pdj("scale", "live", "4").returncode == 0
    wait(lambda: bool(epochs(pdj, "live", 3)), lambda: log(pdj, "live", 3), LONG)
    assert pdj("scale", "live", "3").returncode == 0
    output, _ = running.communicate(timeout=LONG)
    assert running.returncode == 0, output
    status = pdj.status("live")
    assert (status.attempt, status.restarts, status.disruptions) == (1, 1, 0)
    for worker in (0, 1):
        assert epochs(pdj, "live", worker) == list(range(1, EPOCHS + 1)), "no epoch was repeated"
    assert len(epochs(pdj, "live", 3)) < EPOCHS, "it was removed"
    assert final_auc(pdj, "live") > final_auc(pdj, "calm") - 0.03
    events = pdj("why", "live").stdout
    assert "WorkerReplaced" in events
    assert "WorkersAdded" in events


@pytest.mark.full
def test_a_first_worker_whose_training_is_not_known_rebuilds_the_job_which_learns(pdj: Pdj):
    """With `progress` off its log is not read."""
    running = pdj.start("run", live_job(pdj, "first", progress={"enabled": False}))
    wait(lambda: len(epochs(pdj, "first", 0)) >= 2, lambda: log(pdj, "first", 0), LONG)
    kill(pdj, "first", 0)
    output, _ = running.communicate(timeout=LONG)
    assert running.returncode == 0, output
    assert (pdj.status("first").attempt, pdj.status("first").restarts) == (2, 1)
    final = pdj.log("first", "worker-0", attempt=2)
    found = re.search(r"^final auc=([\d.]+) .*untrained_auc=([\d.]+)", final, re.M)
    assert found, final
    assert float(found[1]) > float(found[2]) + 0.1
