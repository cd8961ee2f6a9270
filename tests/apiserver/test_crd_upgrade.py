"""The CRD is replaced while jobs run: they go on, and what can no longer be read says so."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from paddlejob.kube.resource import EVENTS
from testbed.controlplane import ControlPlane
from tests.support.operator_fixtures import ACCOUNT
from tests.support.operator_process import OperatorProcess
from tests.support.operator_stage import OperatorStage

T = TypeVar("T")
CRD = "paddlejobs.batch.paddlepaddle.org"
SCHEMA = "/spec/versions/0/schema/openAPIV3Schema/properties"


@pytest.fixture(autouse=True)
def own_operator(own_plane: ControlPlane, tmp_path: Path) -> Iterator[OperatorProcess]:
    with OperatorProcess(Path(own_plane.kubeconfig_for(*ACCOUNT)), tmp_path / "log") as process:
        process.until_ready()
        yield process


def change_crd(plane: ControlPlane, *operations: dict[str, Any]) -> None:
    plane.kubectl("patch", "crd", CRD, "--type=json", "-p", json.dumps(operations))


async def test_a_ttl_patched_after_a_new_default_does_not_restart_a_running_job(
    own_plane: ControlPlane, own_stage: OperatorStage
):
    await own_stage.submit()
    await own_stage.until(phase="Running")
    before = await own_stage.pods()
    field = f"{SCHEMA}/spec/properties/worker/properties/template/properties/spec/properties/dnsPolicy/default"
    change_crd(own_plane, {"op": "add", "path": field, "value": "ClusterFirst"})
    await until(own_stage.job, lambda job: "dnsPolicy" in job["spec"]["worker"]["template"]["spec"])
    await own_stage.change(ttlSecondsAfterFinished=600)
    await own_stage.until(observedGeneration=2)
    status = await own_stage.until(phase="Running")
    assert status["attempt"] == 1
    assert await own_stage.pods() == before
    for index in range(2):
        await own_stage.exit(f"story-worker-{index}", 0)
    await own_stage.until(phase="Completed")


async def test_a_job_with_a_phase_of_another_operator_gets_an_event(own_plane: ControlPlane, own_stage: OperatorStage):
    change_crd(own_plane, {"op": "remove", "path": f"{SCHEMA}/status/properties/phase/enum"})
    own_stage.name = "foreign"
    await own_stage.submit(suspend=True)
    await own_stage.until(phase="Suspended")
    patch = json.dumps({"status": {"phase": "Succeed"}})
    target = ("pdj", "foreign", "-n", own_stage.namespace, "--subresource=status", "--type=merge")

    async def patched() -> int:
        return own_plane.kubectl("patch", *target, "-p", patch, check=False).returncode

    async def unreadable() -> list[Any]:
        events = await own_stage.client.list(EVENTS, own_stage.namespace)
        return [one for one in events if one["reason"] == "UnreadableJob"]

    await until(patched, lambda code: code == 0)
    found = (await until(unreadable, bool))[0]
    assert found["involvedObject"]["name"] == "foreign"
    assert 'status.phase is "Succeed"' in found["message"] and "delete the job" in found["message"]


async def until(read: Callable[[], Awaitable[T]], true: Callable[[T], object]) -> T:
    async with asyncio.timeout(60):
        while not true(found := await read()):  # noqa: ASYNC110
            await asyncio.sleep(0.2)
    return found
