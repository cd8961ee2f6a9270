"""Working with jobs by kubectl alone."""

from __future__ import annotations

import asyncio

from testbed.controlplane import ControlPlane
from tests.support.operator_process import OperatorProcess
from tests.support.operator_stage import OperatorStage


async def kubectl(plane: ControlPlane, *args: str) -> str:
    done = await asyncio.to_thread(plane.kubectl, *args)
    return str(done.stdout)


async def test_a_finished_job_whose_servers_still_run_looks_as_in_the_first_document(
    stage: OperatorStage, installed: ControlPlane
):
    await stage.submit(ps=2, workers=2, cleanPodPolicy="Never")
    await stage.until(phase="Running")
    for index in range(2):
        await stage.exit(f"story-worker-{index}", 0)
    await stage.until(phase="Completed", worker_running=0)
    header, row = (await kubectl(installed, "get", "pdj", "-n", stage.namespace)).splitlines()
    assert header.split() == ["NAME", "STATUS", "MODE", "PS", "WORKER", "PROGRESS", "AGE"]
    assert row.split()[:5] == ["story", "Completed", "PS", "2/2", "0/2"]
    wide = (await kubectl(installed, "get", "pdj", "-n", stage.namespace, "-o", "wide")).splitlines()
    assert wide[0].split()[7:] == ["REASON", "MESSAGE"]
    assert "all 2 workers succeeded" in wide[1]


async def test_kubectl_waits_for_completion(stage: OperatorStage, installed: ControlPlane):
    await stage.submit(workers=1)
    waiting = asyncio.create_task(
        kubectl(installed, "wait", "-n", stage.namespace, "pdj/story", "--for=condition=Completed", "--timeout=60s")
    )
    await stage.until(phase="Running")
    await stage.exit("story-worker-0", 0)
    assert "condition met" in await waiting


async def test_kubectl_waits_for_each_condition_of_a_start(stage: OperatorStage, installed: ControlPlane):
    async def wait(condition: str) -> str:
        options = ("pdj/story", f"--for=condition={condition}", "--timeout=60s")
        return await kubectl(installed, "wait", "-n", stage.namespace, *options)

    await stage.room(1)
    await stage.submit(workers=2)
    for condition in ("PodsCreated", "PodsScheduled=False", "StartBarrierOpen=False"):
        assert "condition met" in await wait(condition)
    await stage.room(2)
    for condition in ("PodsScheduled", "StartBarrierOpen", "Running"):
        assert "condition met" in await wait(condition)
    conditions = {one["type"]: one for one in (await stage.status())["conditions"]}
    assert {one["observedGeneration"] for one in conditions.values()} == {1}
    await stage.exit("story-worker-0", 0)
    await stage.exit("story-worker-1", 0)
    assert "condition met" in await wait("Running=False")
    assert {one["type"] for one in (await stage.status())["conditions"]} == {"Running", "Completed"}


async def test_kubectl_waits_for_each_condition_that_a_phase_has(stage: OperatorStage, installed: ControlPlane):
    """A wait that began before the phase sees it, and one that begins after the job was changed sees it too."""

    def waiting(condition: str) -> asyncio.Task[str]:
        options = ("pdj/story", f"--for=condition={condition}", "--timeout=60s")
        return asyncio.create_task(kubectl(installed, "wait", "-n", stage.namespace, *options))

    await stage.submit(workers=1, backoffLimit=1)
    await stage.until(phase="Running")
    restarting = waiting("Restarting")
    await stage.exit("story-worker-0", 1)
    assert "condition met" in await restarting
    await stage.until(phase="Running", attempt=2)
    await stage.change(suspend=True)
    assert "condition met" in await waiting("Suspended")
    await stage.change(suspend=False)
    assert "condition met" in await waiting("Suspended=False")
    await stage.until(phase="Running", attempt=3)
    await stage.exit("story-worker-0", 1)
    assert "condition met" in await waiting("Failed")
    await stage.change(ttlSecondsAfterFinished=3600)
    for condition in ("Failed", "Running=False", "Restarting=False", "Suspended=False"):
        assert "condition met" in await waiting(condition)
    job = await stage.job()
    conditions = {one["type"]: one for one in job["status"]["conditions"]}
    assert {one["observedGeneration"] for one in conditions.values()} == {job["metadata"]["generation"]}
    messages = {one["message"] for one in conditions.values()}
    assert len(messages) == 1 and "story-worker-0" in messages.pop(), "none tells of an earlier phase"


async def test_kubectl_scales_an_elastic_job(stage: OperatorStage, installed: ControlPlane):
    await stage.submit(workers=2, elastic=1)
    await stage.until(phase="Running", worker_ready="2/2")
    await kubectl(installed, "scale", "-n", stage.namespace, "pdj/story", "--replicas=3")
    await stage.until(phase="Running", worker_ready="3/3")
    selector = (await stage.status())["selector"]
    listed = await kubectl(installed, "get", "pods", "-n", stage.namespace, "-l", selector, "-o", "name")
    assert len(listed.split()) == 3


async def test_the_operator_serves_metrics_and_probes(stage: OperatorStage, operator: OperatorProcess):
    await stage.submit(workers=1)
    await stage.until(phase="Running")
    metrics = operator.get("/metrics")
    assert 'paddlejob_jobs{phase="Running"}' in metrics
    assert 'paddlejob_api_requests_total{code="201",resource="pods",verb="create"}' in metrics
    assert "paddlejob_reconcile_seconds_count" in metrics
    assert "paddlejob_queue_depth" in metrics
    assert (operator.get("/healthz"), operator.get("/readyz")) == ("ok", "ok")


async def test_a_job_of_paddle_operator_with_its_finalizer_can_be_deleted(stage: OperatorStage):
    from paddlejob.errors import NotFound
    from paddlejob.objects.resources import PADDLEJOBS
    from tests.support.builders import document

    made = document("story", cleanPolicy="OnFailed", elastic=1)
    made["metadata"] |= {"namespace": stage.namespace, "finalizers": ["finalizers.paddlepaddle.org"]}
    await stage.client.create(PADDLEJOBS, made)
    await stage.client.delete(PADDLEJOBS, "story", stage.namespace)
    for _ in range(200):
        try:
            await stage.job()
        except NotFound:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("the job still exists")


async def test_the_operator_has_only_the_permissions_of_its_account(stage: OperatorStage, installed: ControlPlane):
    account = "--as=system:serviceaccount:paddle-system:paddle-controller-manager"

    def may(*what: str) -> bool:
        return installed.kubectl("auth", "can-i", *what, account, check=False).stdout.strip() == "yes"

    assert may("create", "pods", "-n", stage.namespace)
    assert not may("get", "secrets", "-n", stage.namespace)
    assert not may("patch", "nodes")
    assert not may("create", "deployments.apps", "-n", stage.namespace)
    assert not may("update", "leases.coordination.k8s.io", "-n", stage.namespace)


async def test_a_job_past_its_ttl_is_deleted_with_all_its_objects(stage: OperatorStage, installed: ControlPlane):
    await stage.submit(workers=1, ttlSecondsAfterFinished=1, cleanPodPolicy="Never")
    await stage.until(phase="Running")
    await stage.exit("story-worker-0", 0)
    for _ in range(300):
        left = await kubectl(
            installed, "get", "pdj,pods,configmaps", "-n", stage.namespace, "-o", "name", "--ignore-not-found"
        )
        if "story" not in left:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"left: {left}")
