"""An elastic job on a machine without room for all its workers: real processes, with CPUs as the resource."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paddlejob.api.types import Role, Status
from paddlejob.local.engine import LocalEngine
from paddlejob.local.machine.resources import Machine
from paddlejob.local.state.changes import change_spec
from paddlejob.local.state.store import JobStore

FOUR_CPUS = Machine("machine", cpus=4, memory=64 << 30)
WORKS = """
import json, os, pathlib, sys, time
out = pathlib.Path(sys.argv[1])
rank, size = os.environ["PADDLE_TRAINER_ID"], os.environ["PADDLE_TRAINERS_NUM"]
peers = os.environ["PADDLE_TRAINER_ENDPOINTS"].split(",")
assert peers[int(rank)] == os.environ["PADDLE_CURRENT_ENDPOINT"], peers
seen = {"rank": rank, "size": size, "RANK": os.environ["RANK"], "NNODES": os.environ["NNODES"]}
with open(out / f"{os.environ['SYS_JOB_ID']}.{os.environ['HOSTNAME']}", "w") as file:
    json.dump(seen, file)
while not (out / "end").exists():
    time.sleep(0.05)
"""


TRAINS = """
export OUTPUT_DIR=$0 STEPS=$(cat $0/steps)
exec python3 train.py
"""


def document(name: str, out: Path, workers: int, **spec: Any) -> dict[str, Any]:
    container = {
        "name": "paddle",
        "image": "program",
        "command": ["python3", "-c", WORKS, str(out)],
        "resources": {"requests": {"cpu": 1}},
    } | spec.pop("container", {})
    template = {"spec": {"containers": [container], "terminationGracePeriodSeconds": 1}}
    worker = {"replicas": workers, "template": template} | spec.pop("worker_", {})
    return {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": name},
        "spec": {"worker": worker, **spec},
    }


ELASTIC: dict[str, Any] = {
    "workers": 4,
    "elastic": 1,
    "worker_": {"requests": 2, "limits": 4},
    "scheduleTimeoutSeconds": 2,
    "growthIntervalSeconds": 1,
}


class Runs:
    """Jobs on one engine, and the files that their workers write."""

    def __init__(self, engine: LocalEngine, folder: Path) -> None:
        self.engine = engine
        self.folder = folder

    async def submit(self, name: str, **options: Any) -> None:
        (self.folder / name).mkdir()
        await self.engine.submit(document(name, self.folder / name, **options))

    def status(self, name: str) -> Status:
        return self.engine.status(("default", name)) or Status()

    async def until(self, name: str, condition: Callable[[Status], bool]) -> Status:
        ends = time.monotonic() + 90
        while not condition(self.status(name)):
            assert time.monotonic() < ends, self.status(name)
            await asyncio.sleep(0.1)
        return self.status(name)

    async def until_running(self, name: str, ready: str) -> Status:
        return await self.until(
            name, lambda status: status.phase == "Running" and status.role(Role.WORKER).ready == ready
        )

    def log(self, name: str) -> str:
        """Of the worker with rank 0, in the current attempt."""
        path = self.engine.store.folder(("default", name)).log(self.status(name).attempt, f"{name}-worker-0")
        return path.read_text() if path.exists() else ""

    async def until_training(self, name: str, workers: int) -> int:
        """Wait for a step of an attempt with this many workers; returns the step that the attempt began after."""
        begun = rf"worker 0 of {workers} starts after step (\d+)[^$]*step=\d+/\d+ loss="
        ends = time.monotonic() + 180
        while not (found := re.search(begun, self.log(name))):
            assert time.monotonic() < ends, (self.status(name), self.log(name))
            await asyncio.sleep(0.2)
        return int(found[1])

    def end(self, name: str) -> None:
        (self.folder / name / "end").touch()

    async def workers(self, name: str, size: int) -> list[dict[str, str]]:
        """What the workers of the current attempt have seen, by rank."""
        attempt = self.status(name).attempt
        ends = time.monotonic() + 60
        while True:
            files = list((self.folder / name).glob(f"*-{attempt}.*"))
            if len(files) >= size and all(file.stat().st_size for file in files):
                return sorted((json.loads(file.read_text()) for file in files), key=lambda one: one["rank"])
            assert time.monotonic() < ends, files
            await asyncio.sleep(0.1)


def contiguous(size: int) -> list[dict[str, str]]:
    return [{"rank": str(rank), "size": str(size), "RANK": str(rank), "NNODES": str(size)} for rank in range(size)]


async def test_an_elastic_job_starts_with_three_of_four_workers_grows_when_another_job_ends_and_completes(
    tmp_path: Path,
):
    async with LocalEngine(JobStore(tmp_path / "state"), FOUR_CPUS) as engine:
        runs = Runs(engine, tmp_path)
        await runs.submit("other", workers=1)
        await runs.until_running("other", "1/1")
        await runs.submit("elastic", **ELASTIC)
        status = await runs.until_running("elastic", "3/4")
        assert status.message.startswith("training with 3 of 4 workers")
        assert await runs.workers("elastic", 3) == contiguous(3)
        runs.end("other")
        status = await runs.until_running("elastic", "4/4")
        assert await runs.workers("elastic", 4) == contiguous(4)
        assert (status.attempt, status.restarts, status.disruptions) == (2, 0, 0)
        runs.end("elastic")
        await runs.until("elastic", lambda status: status.phase == "Completed")
        reasons = [event["reason"] for event in engine.store.folder(("default", "elastic")).events()]
        assert reasons == ["Unschedulable", "ScaledDown", "ScaledUp", "Completed"]


async def test_a_waiting_worker_shows_why_and_takes_nothing_from_other_jobs(tmp_path: Path):
    async with LocalEngine(JobStore(tmp_path / "state"), FOUR_CPUS) as engine:
        runs = Runs(engine, tmp_path)
        await runs.submit("other", workers=1)
        await runs.until_running("other", "1/1")
        await runs.submit("elastic", **ELASTIC)
        await runs.until(
            "elastic", lambda status: "other jobs hold other (1)" in status.message and status.attempt == 1
        )
        await runs.until_running("elastic", "3/4")
        change_spec(engine.store.folder(("default", "elastic")), worker={"replicas": 2})
        await runs.until_running("elastic", "2/2")
        assert await runs.workers("elastic", 2) == contiguous(2)
        await runs.submit("third", workers=1)
        await runs.until_running("third", "1/1")


async def test_a_killed_worker_of_a_smaller_job_is_restarted_at_the_same_size(tmp_path: Path):
    async with LocalEngine(JobStore(tmp_path / "state"), FOUR_CPUS) as engine:
        runs = Runs(engine, tmp_path)
        await runs.submit("other", workers=1)
        await runs.until_running("other", "1/1")
        await runs.submit("elastic", **ELASTIC | {"growthIntervalSeconds": 600})
        await runs.until_running("elastic", "3/4")
        await runs.workers("elastic", 3)
        pod = next(one for one in engine.store.folder(("default", "elastic")).pods() if one.name.endswith("worker-1"))
        os.kill(pod.pid, 9)
        await runs.until("elastic", lambda status: status.restarts == 1)
        await runs.until_running("elastic", "3/4")
        assert await runs.workers("elastic", 3) == contiguous(3)
        runs.end("elastic")
        await runs.until("elastic", lambda status: status.phase == "Completed")


@pytest.mark.full
@pytest.mark.xdist_group("training")
async def test_training_that_grows_continues_from_its_checkpoint(tmp_path: Path):
    pytest.importorskip("paddle", reason="PaddlePaddle is not installed")
    async with LocalEngine(JobStore(tmp_path / "state"), FOUR_CPUS) as engine:
        runs = Runs(engine, tmp_path)
        await runs.submit("other", workers=1)
        await runs.until_running("other", "1/1")
        out = tmp_path / "model"
        out.mkdir()
        (out / "steps").write_text("1000000")
        variables = {"SAVE_EVERY": "10", "STEP_SECONDS": "0.05"}
        env = [{"name": name, "value": value} for name, value in variables.items()]
        trainer = {"image": "paddlejob/checkpoint:v1", "command": ["sh", "-c", TRAINS, str(out)], "env": env}
        await runs.submit("elastic", **ELASTIC, container=trainer)
        assert await runs.until_training("elastic", workers=3) == 0
        # The next attempt ends soon after it has begun.
        (out / "steps").write_text(str(last_step(out) + 200))
        runs.end("other")
        assert await runs.until_training("elastic", workers=4) > 0
        status = await runs.until("elastic", lambda status: status.phase == "Completed")
        assert (status.attempt, status.restarts, status.disruptions) == (2, 0, 0)
        scores = re.search(r"final accuracy=([\d.]+) untrained_accuracy=([\d.]+)", runs.log("elastic"))
        assert scores is not None
        assert float(scores[1]) > float(scores[2])


def last_step(out: Path) -> int:
    return int(max(out.glob("step-*.pdckpt")).stem.removeprefix("step-"))
