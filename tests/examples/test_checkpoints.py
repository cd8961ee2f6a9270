"""Collective jobs that lose workers, checkpoints and nodes go on from what is left, with any number of workers."""

from __future__ import annotations

import importlib.util
import re
import signal
import time
from pathlib import Path

import pytest

from tests.examples.roles import EXAMPLES, PATIENCE, Pod, stage, start_collective_job

if importlib.util.find_spec("paddle") is None:
    pytest.skip("tests/examples needs Paddle: pip install 'paddlejob[paddle]'", allow_module_level=True)

pytestmark = pytest.mark.full
PROGRAM = EXAMPLES / "collective" / "train.py"


def losses(pod: Pod) -> dict[int, float]:
    found = re.findall(r"^step=(\d+)/\d+ loss=([\d.]+)", pod.text, re.MULTILINE)
    return {int(step): float(loss) for step, loss in found}


def until_saved(pod: Pod, step: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while f"checkpoint step={step} saved" not in pod.text:
        assert pod.process.poll() is None and time.monotonic() < deadline, pod.text[-3000:]
        time.sleep(0.05)


def succeeded(pods: list[Pod]) -> Pod:
    for pod in pods:
        assert pod.wait() == 0, f"{pod.name}:\n{pod.text[-3000:]}"
    return pods[0]


def test_a_killed_job_goes_on_with_more_workers_from_the_newest_checkpoint_that_can_be_read(tmp_path: Path):
    saved = tmp_path / "saved"
    settings = {"OUTPUT_DIR": str(saved), "SAVE_EVERY": "20", "STEPS": "240"}
    with stage(tmp_path / "first", PROGRAM, STEP_SECONDS="0.05", **settings) as job:
        pods = start_collective_job(job, workers=2)
        until_saved(pods[0], 120)
        for pod in pods:
            pod.process.send_signal(signal.SIGKILL)
        before = losses(pods[0])
    older, newest = sorted(saved.glob("step-*.pdckpt"))
    newest.write_bytes(newest.read_bytes()[:1000])
    (saved / "partial-left-behind").write_bytes(b"half")
    step = int(older.stem.removeprefix("step-"))
    with stage(tmp_path / "second", PROGRAM, **settings) as job:
        worker = succeeded(start_collective_job(job, workers=3))
    assert f"{newest} cannot be read" in worker.text
    assert f"worker 0 of 3 starts after step {step} of 240" in worker.text
    after = losses(worker)
    assert min(after) == step + 20, "no step is trained twice"
    assert max(after.values()) < before[20], "the loss goes on from the checkpoint"
    assert worker.metrics()["accuracy"] > 0.95 > 0.5 > worker.metrics()["untrained_accuracy"]
    assert [path.name for path in sorted(saved.iterdir())] == ["step-00000220.pdckpt", "step-00000240.pdckpt"]


def test_fewer_workers_end_with_the_model_that_all_of_them_would_have_trained(tmp_path: Path):
    """The samples of a step are the same for any number of workers; only the rounding of sums differs."""
    with stage(tmp_path / "alone", PROGRAM, STEPS="40") as job:
        expected = succeeded(start_collective_job(job, workers=2)).metrics()
    settings = {"OUTPUT_DIR": str(tmp_path / "saved"), "SAVE_EVERY": "20"}
    with stage(tmp_path / "three", PROGRAM, STEPS="20", **settings) as job:
        succeeded(start_collective_job(job, workers=3))
    with stage(tmp_path / "one", PROGRAM, STEPS="40", **settings) as job:
        resumed = succeeded(start_collective_job(job, workers=1))
    assert "worker 0 of 1 starts after step 20 of 40" in resumed.text
    assert resumed.metrics()["sum"] == pytest.approx(expected["sum"], rel=1e-3)


def test_a_worker_on_the_node_with_the_newest_checkpoint_sends_it_to_the_others(tmp_path: Path):
    """A hostPath is not shared: after a restart, rank 0 may be on another node than before."""
    settings = {"SAVE_EVERY": "20"}
    with stage(tmp_path / "first", PROGRAM, STEPS="40", OUTPUT_DIR=str(tmp_path / "node-1"), **settings) as job:
        succeeded([job.start("worker-0", {})])
    with stage(tmp_path / "second", PROGRAM, STEPS="60", **settings) as job:
        nodes = [{"OUTPUT_DIR": str(tmp_path / node)} for node in ("node-2", "node-1")]
        worker = succeeded(start_collective_job(job, workers=2, own=nodes))
    assert "worker 0 of 2 starts after step 40 of 60" in worker.text
    assert [path.name for path in (tmp_path / "node-2").iterdir()] == ["step-00000060.pdckpt"]
