"""The operator is killed and suspended, the API server stops and restarts: jobs still end as they should."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlejob.errors import KubeError, NotFound
from paddlejob.kube.client import Client
from paddlejob.kube.resource import CONFIGMAPS, LEASES, PODS
from paddlejob.objects.resources import PADDLEJOBS
from paddlejob.plan import times
from testbed import clocks
from testbed.controlplane import ControlPlane
from tests.support.builders import document
from tests.support.kubelet import Kubelet
from tests.support.operator_fixtures import ACCOUNT
from tests.support.operator_process import OperatorProcess
from tests.support.operator_stage import OperatorStage

LEASE = ("--leader-elect", "--lease-seconds=3")
JOBS = 20


def candidate(plane: ControlPlane, log: Path) -> OperatorProcess:
    """An operator that wants to lead."""
    return OperatorProcess(Path(plane.kubeconfig_for(*ACCOUNT)), log, *LEASE, "--leader-namespace=paddle-system")


@pytest.fixture
def new_operator(own_plane: ControlPlane, own_namespace: str, tmp_path: Path) -> Iterator[OperatorProcess]:
    process = candidate(own_plane, tmp_path / "log")
    process.start()
    yield process
    process.stop()


@pytest.mark.full
async def test_a_job_deleted_while_the_operator_is_down_is_removed_with_all_its_objects(
    own_stage: OperatorStage, new_operator: OperatorProcess
):
    await own_stage.submit(ps=1, workers=2, intranet="Service")
    await own_stage.until(phase="Running")
    new_operator.kill()
    await own_stage.client.delete(PADDLEJOBS, "story", own_stage.namespace, propagation="Background")
    await own_stage.until_gone("story-ps-0", "story-worker-0", "story-worker-1")
    ends = time.monotonic() + 60
    while [
        one
        for one in await own_stage.client.list(CONFIGMAPS, own_stage.namespace)
        if one["metadata"]["name"].startswith("story")
    ]:
        assert time.monotonic() < ends
        await asyncio.sleep(0.2)


async def test_a_job_finished_while_the_operator_was_down_is_seen_as_finished(
    own_stage: OperatorStage, new_operator: OperatorProcess
):
    await own_stage.submit(workers=2, cleanPodPolicy="Never")
    await own_stage.until(phase="Running")
    new_operator.kill()
    for index in range(2):
        await own_stage.exit(f"story-worker-{index}", 0)
    new_operator.start()
    await own_stage.until(phase="Completed", restarts=0, disruptions=0)


async def test_the_api_server_restarts_and_nothing_is_created_twice(
    own_stage: OperatorStage, new_operator: OperatorProcess, own_plane: ControlPlane
):
    await own_stage.submit(workers=2)
    await own_stage.until(phase="Running")
    before = await own_stage.pods()
    await asyncio.to_thread(own_plane.restart_apiserver)
    await own_stage.exit("story-worker-0", 0)
    await own_stage.until(worker_finished="0")
    after = await own_stage.pods()
    assert before == after
    assert new_operator.running
    await own_stage.exit("story-worker-1", 0)
    await own_stage.until(phase="Completed", restarts=0, disruptions=0)


@pytest.mark.skipif(not clocks.SUPPORTED, reason="clocks can be shifted on x86-64 only")
@pytest.mark.parametrize("ahead", [3600, -3600])
async def test_an_operator_whose_clock_is_stepped_by_an_hour_judges_by_the_api_servers(
    own_stage: OperatorStage, new_operator: OperatorProcess, ahead: int
):
    await own_stage.submit(workers=2, activeDeadlineSeconds=1800)
    await own_stage.until(phase="Running")
    clocks.shift(new_operator.pid, ahead)
    await own_stage.exit("story-worker-0", 1)
    await own_stage.until(phase="Running", restarts=1, attempt=2)
    for index in range(2):
        await own_stage.exit(f"story-worker-{index}", 0)
    status = await own_stage.until(phase="Completed", restarts=1, disruptions=0)
    assert abs(times.parse(status["completionTime"]) - time.time()) < 600
    assert new_operator.running


async def test_a_slow_etcd_only_delays_a_job(
    own_stage: OperatorStage, new_operator: OperatorProcess, own_plane: ControlPlane
):
    await own_stage.submit(workers=4)
    await asyncio.sleep(0.3)
    for _ in range(3):
        own_plane.pause_etcd()
        await asyncio.sleep(1.5)
        own_plane.resume_etcd()
        await asyncio.sleep(0.2)
    await own_stage.until(phase="Running", worker_ready="4/4", attempt=1)
    assert len(await own_stage.pods()) == 4


async def test_a_sole_operator_takes_up_its_own_lease_after_an_outage(
    own_plane: ControlPlane, own_stage: OperatorStage, new_operator: OperatorProcess
):
    await own_stage.submit()
    await own_stage.until(phase="Running")
    before = await own_stage.client.get(LEASES, "paddlejob-operator", "paddle-system")
    own_plane.kill_apiserver()
    await until_logged(new_operator, "the lease is lost")
    own_plane.start_apiserver()
    await until_logged(new_operator, "became leader", times=2)
    after = await own_stage.client.get(LEASES, "paddlejob-operator", "paddle-system")
    for field in ("holderIdentity", "leaseTransitions"):
        assert after["spec"][field] == before["spec"][field]
    for index in range(2):
        await own_stage.exit(f"story-worker-{index}", 0)
    await own_stage.until(phase="Completed")
    assert "never retrieved" not in new_operator.log.read_text()


async def until_logged(operator: OperatorProcess, text: str, times: int = 1) -> None:
    async with asyncio.timeout(120):
        while operator.log.read_text().count(text) < times:  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def test_another_takes_over_when_the_leader_dies(
    own_stage: OperatorStage, new_operator: OperatorProcess, own_plane: ControlPlane, tmp_path: Path
):
    new_operator.until_ready()
    await own_stage.submit(workers=1)
    await own_stage.until(phase="Running")
    with candidate(own_plane, tmp_path / "log2") as second:
        second.until_ready()
        new_operator.kill()
        await own_stage.exit("story-worker-0", 0)
        await own_stage.until(phase="Completed")


async def test_a_restarted_container_of_the_operator_does_not_wait_for_the_lease_of_its_predecessor(
    own_plane: ControlPlane, own_client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("POD_NAME", "operator-pod-1")
    options = ("--leader-elect", "--lease-seconds=3600", "--leader-namespace=paddle-system")
    account = Path(own_plane.kubeconfig_for(*ACCOUNT))
    with OperatorProcess(account, tmp_path / "log", *options) as operator:
        await until_logged(operator, "became leader")
        operator.kill()
        operator.start()
        await until_logged(operator, "became leader", times=2)
        lease = await own_client.get(LEASES, "paddlejob-operator", "paddle-system")
        assert lease["spec"]["holderIdentity"] == "operator-pod-1"


async def test_a_leader_that_was_suspended_does_no_harm_when_it_resumes(
    own_stage: OperatorStage, new_operator: OperatorProcess, own_plane: ControlPlane, tmp_path: Path
):
    await own_stage.submit(workers=2, backoffLimit=5)
    await own_stage.until(phase="Running")
    new_operator.suspend()
    with candidate(own_plane, tmp_path / "log2"):
        await own_stage.exit("story-worker-0", 1)
        await own_stage.until(phase="Running", restarts=1)
        pods = await own_stage.pods()
        new_operator.resume()
        await asyncio.sleep(4)
        assert await own_stage.pods() == pods
        await own_stage.until(phase="Running", restarts=1, attempt=2)
        assert "the lease is lost" in new_operator.log.read_text(), "it notices"


async def test_every_job_ends_as_it_should_while_the_operator_is_killed_at_random(
    own_client: Client, own_namespace: str, new_operator: OperatorProcess
):
    """Of twenty jobs a third succeed, a third fail once and a third fail for good."""
    chance = random.Random(20)
    fails = {f"job-{number}": (0, 1, 3)[number % 3] for number in range(JOBS)}
    async with Kubelet(own_client, own_namespace) as kubelet:
        for name in fails:
            made = document(name, ps=1, workers=2, backoffLimit=2, cleanPodPolicy="Always")
            made["metadata"]["namespace"] = own_namespace
            await own_client.create(PADDLEJOBS, made)
        playing = asyncio.create_task(_play(own_client, kubelet, own_namespace, dict(fails)))
        for _ in range(12):
            await asyncio.sleep(chance.uniform(0.2, 1.6))
            new_operator.kill()
            new_operator.start()
        await asyncio.wait_for(playing, 120)
        ends = time.monotonic() + 90
        while open_ := [job for job in await own_client.list(PADDLEJOBS, own_namespace) if not _finished(job)]:
            assert time.monotonic() < ends, [job["status"] for job in open_]
            await asyncio.sleep(0.2)
        await _until_no_pods(own_client, own_namespace)
    for job in await own_client.list(PADDLEJOBS, own_namespace):
        name, status = job["metadata"]["name"], job["status"]
        expected = ("Failed", 2) if fails[name] == 3 else ("Completed", fails[name])
        assert (status["phase"], status.get("restarts", 0)) == expected, status
        assert status.get("disruptions", 0) == 0, status
    left = [one["metadata"]["name"] for one in await own_client.list(CONFIGMAPS, own_namespace)]
    assert sum(name.startswith("job-") for name in left) <= JOBS, "at most the last environment of each"


def _finished(job: dict) -> bool:
    return (job.get("status") or {}).get("phase") in ("Completed", "Failed")


async def _play(client: Client, kubelet: Kubelet, namespace: str, fails: dict[str, int]) -> None:
    """End the workers of each attempt: with a failure while the job has failures left, else with success."""
    played: set[str] = set()
    while True:
        try:
            jobs = await client.list(PADDLEJOBS, namespace)
            if all(_finished(job) for job in jobs):
                return
            pods = await kubelet.pods()
        except KubeError:
            continue
        for job in jobs:
            name = job["metadata"]["name"]
            workers = [
                pod
                for pod in pods
                if pod["metadata"]["name"].startswith(f"{name}-worker-")
                and pod["status"].get("phase") == "Running"
                and not pod["metadata"].get("deletionTimestamp")
            ]
            if len(workers) < 2 or workers[0]["metadata"]["uid"] in played:
                continue
            played.add(workers[0]["metadata"]["uid"])
            code = 1 if fails[name] else 0
            fails[name] = max(0, fails[name] - 1)
            for pod in workers[: 1 if code else 2]:
                try:
                    await kubelet.exit(pod["metadata"]["name"], code)
                except NotFound:
                    continue
        await asyncio.sleep(0.1)


async def _until_no_pods(client: Client, namespace: str) -> None:
    ends = time.monotonic() + 60
    while left := [one["metadata"]["name"] for one in await client.list(PODS, namespace)]:
        assert time.monotonic() < ends, left
        await asyncio.sleep(0.2)
