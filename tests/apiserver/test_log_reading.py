"""Progress and hang detection on a real API server, with the operator's own permissions and a kubelet that has logs."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from testbed.controlplane import ControlPlane
from tests.apiserver.test_startup import bind, until_created
from tests.support.log_server import LogServer
from tests.support.operator_process import OperatorProcess
from tests.support.operator_stage import OperatorStage

Object = dict[str, Any]
ROLE = "paddle-controller-manager"


async def until(stage: OperatorStage, holds: Callable[[Object], bool]) -> Object:
    ends = time.monotonic() + 90
    while not holds(status := await stage.status()):
        assert time.monotonic() < ends, status
        await asyncio.sleep(0.2)
    return status


async def started(stage: OperatorStage, plane: ControlPlane, workers: int, **spec: Any) -> None:
    pods = [f"story-worker-{index}" for index in range(workers)]
    stage.kubelet.hold |= {*pods}
    await stage.submit(workers=workers, **spec)
    await until_created(stage, *pods)
    bind(plane, stage.namespace, stage.namespace, *pods)
    stage.kubelet.hold.clear()
    await stage.until(phase="Running")


async def test_the_status_shows_what_worker_0_prints(stage: OperatorStage, installed: ControlPlane, logs: LogServer):
    logs.write("story-worker-0", "loading")
    logs.write("story-worker-0", "step: 120/5000 loss: 0.5")
    await started(stage, installed, workers=2)
    status = await until(stage, lambda status: "progress" in status)
    assert (status["progress"]["step"], status["progress"]["totalSteps"]) == (120, 5000)
    assert status["progress"]["metrics"] == {"loss": 0.5}
    logs.write("story-worker-0", "step: 140/5000 loss: 0.25")
    await until(stage, lambda status: status["progress"]["highestStep"] == 140)


async def test_a_completed_job_shows_what_worker_0_printed_last(
    stage: OperatorStage, installed: ControlPlane, logs: LogServer
):
    logs.write("story-worker-0", "step: 11/15 loss: 0.5")
    await started(stage, installed, workers=1)
    await until(stage, lambda status: "progress" in status)
    logs.write("story-worker-0", "step: 15/15 loss: 0.25")
    await stage.exit("story-worker-0", 0)
    status = await until(stage, lambda status: status["phase"] == "Completed")
    assert (status["progress"]["step"], status["progress"]["metrics"]) == (15, {"loss": 0.25})


@pytest.mark.full
async def test_workers_that_all_fall_silent_restart_the_job_and_one_that_prints_keeps_it(
    stage: OperatorStage, installed: ControlPlane, logs: LogServer
):
    logs.write("story-worker-0", "step: 1 loss: 0.5")
    await started(stage, installed, workers=2, stallSeconds=10)
    begun = time.monotonic()
    while time.monotonic() < begun + 25:
        logs.write("story-worker-1", "evaluating")
        await asyncio.sleep(1)
        assert (await stage.status()).get("restarts", 0) == 0
    silent = time.monotonic()
    status = await until(stage, lambda status: status.get("restarts", 0) == 1)
    assert time.monotonic() - silent < 2 * 10 + 15
    events = installed.kubectl("get", "events", "-n", stage.namespace, "-o", "json").stdout
    (event,) = [one for one in json.loads(events)["items"] if one["reason"] == "Stalled"]
    assert "no worker printed a line for 1" in event["message"]
    assert "step: 1 loss: 0.5" in event["message"]
    assert status["attempt"] == 2


@pytest.fixture
def older_role(installed: ControlPlane) -> Iterator[None]:
    """The role of an operator that did not read logs."""
    role = json.loads(installed.kubectl("get", "clusterrole", ROLE, "-o", "json").stdout)
    rules = [rule for rule in role["rules"] if "pods/log" not in rule["resources"]]
    assert len(rules) == len(role["rules"]) - 1
    for changed in (rules, role["rules"]):
        patch = json.dumps({"rules": changed})
        installed.kubectl("patch", "clusterrole", ROLE, "--type=merge", "-p", patch)
        if changed is rules:
            yield


async def test_without_the_permission_to_read_logs_it_is_said_once_and_the_job_trains_on(
    stage: OperatorStage, installed: ControlPlane, logs: LogServer, operator: OperatorProcess, older_role: None
):
    logs.write("story-worker-0", "step: 1/9 loss: 0.5")
    await started(stage, installed, workers=1, stallSeconds=10)
    await asyncio.sleep(14)
    status = await stage.status()
    assert (status["phase"], status.get("restarts", 0), "progress" in status) == ("Running", 0, False)
    assert operator.log.read_text().count("not permitted to read the logs of pods") == 1
    events = json.loads(installed.kubectl("get", "events", "-n", stage.namespace, "-o", "json").stdout)["items"]
    (event,) = [one for one in events if one["reason"] == "LogsNotRead"]
    assert "pods/log" in event["message"]
    assert event.get("count", 1) == 1
