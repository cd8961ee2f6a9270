"""Obstacles that a job meets in a cluster: leftovers, webhooks, finalizers, other owners' objects."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from paddlejob.errors import AlreadyExists, NotFound
from paddlejob.kube.resource import CONFIGMAPS, PODS
from paddlejob.objects.resources import PADDLEJOBS
from testbed.addons.policies import denied
from testbed.controlplane import ControlPlane
from tests.support.operator_stage import OperatorStage
from tests.unit.kube.certificates import new_authority

NOWHERE = "https://127.0.0.1:1/"


async def submit_again(stage: OperatorStage, **options: object) -> str:
    """Delete the job and submit one of the same name immediately, ahead of the garbage collector; returns its uid."""
    await stage.client.delete(PADDLEJOBS, stage.name, stage.namespace, propagation="Background")
    for pod in await stage.pods():
        with suppress(NotFound):
            await stage.client.delete(PODS, pod, stage.namespace)
    await stage.submit(**options)
    uid: str = (await stage.job())["metadata"]["uid"]
    return uid


async def replace_before_the_operator_does(stage: OperatorStage, config_map: dict[str, Any]) -> None:
    """The operator creates the environment of a job that trains anew when it is deleted, and may be quicker."""
    for _ in range(100):
        await stage.client.delete(CONFIGMAPS, config_map["metadata"]["name"], stage.namespace)
        with suppress(AlreadyExists):
            await stage.client.create(CONFIGMAPS, config_map)
            return
    raise AssertionError("the operator was quicker each time")


async def test_a_job_submitted_again_gets_addresses_of_its_own(stage: OperatorStage):
    """The environment of the previous job may exist for a while, until it is garbage-collected."""
    await stage.submit()
    await stage.until(phase="Running")
    left = (await stage.client.list(CONFIGMAPS, stage.namespace, label_selector="batch.paddlepaddle.org/job=story"))[0]
    left["metadata"] = {key: left["metadata"][key] for key in ("name", "namespace", "labels")}
    await replace_before_the_operator_does(stage, left)
    uid = await submit_again(stage)
    await stage.until(phase="Running")
    seen = await stage.environment("story-worker-0")
    assert seen["SYS_JOB_ID"] == f"{uid}-1"


async def test_pods_of_the_previous_job_are_waited_for(stage: OperatorStage):
    """A finalizer delays the deletion, as a program that is slow to end would."""
    await stage.submit()
    await stage.until(phase="Running")
    previous = await stage.pods()
    await stage.client.patch(
        PODS, "story-worker-0", stage.namespace, {"metadata": {"finalizers": ["example.com/slow"]}}
    )
    await submit_again(stage)
    status = await stage.until(reason="WaitingForOldPods")
    assert "waiting for story-worker-0 of an earlier job to be deleted" in status["message"]
    await stage.client.patch(PODS, "story-worker-0", stage.namespace, {"metadata": {"finalizers": None}})
    await stage.until(phase="Running")
    assert not set(previous.values()) & set((await stage.pods()).values())


@contextmanager
def webhook(plane: ControlPlane, namespace: str, **server: str) -> Iterator[None]:
    """Configure a webhook for every pod of the namespace; `server` is its clientConfig."""
    plane.kubectl("label", "namespace", namespace, f"story={namespace}")
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    hook = {
        "name": "validatepod.volcano.sh",
        "clientConfig": server,
        "rules": rules,
        "namespaceSelector": {"matchLabels": {"story": namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": f"hook-{namespace}"},
        "webhooks": [hook],
    }
    plane.kubectl("create", "-f", "-", input=json.dumps(configuration))
    try:
        yield
    finally:
        plane.kubectl("delete", "validatingwebhookconfiguration", f"hook-{namespace}")


async def test_a_webhook_that_does_not_respond_is_named_on_the_job(stage: OperatorStage, installed: ControlPlane):
    """Volcano leaves such webhooks behind when it is removed."""
    with webhook(installed, stage.namespace, url=NOWHERE):
        await asyncio.sleep(1)
        await stage.submit()
        status = await stage.until(reason="WebhookFailed")
        assert "validatepod.volcano.sh" in status["message"]
    await stage.until(phase="Running")


async def test_a_webhook_that_denies_is_quoted_on_the_job(
    stage: OperatorStage, installed: ControlPlane, tmp_path: Path
):
    """It sets no code of its own, so the API server responds with 400."""

    async def deny(request: web.Request) -> web.Response:
        uid = (await request.json())["request"]["uid"]
        response = {"uid": uid, "allowed": False, "status": {"message": "no training on Sundays"}}
        return web.json_response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})

    authority = new_authority(tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*authority.issue("webhook"))
    app = web.Application()
    app.router.add_post("/", deny)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    port = runner.addresses[0][1]
    bundle = base64.b64encode(authority.file.read_bytes()).decode()
    try:
        with webhook(installed, stage.namespace, url=f"https://127.0.0.1:{port}/", caBundle=bundle):
            await asyncio.sleep(1)
            await stage.submit()
            status = await stage.until(reason="AdmissionRejected")
            assert "no training on Sundays" in status["message"]
    finally:
        await runner.cleanup()
    await stage.until(phase="Running")


@pytest.mark.parametrize("operation", ["CREATE", "DELETE"])
async def test_a_policy_that_denies_is_quoted_on_the_job_which_goes_on_without_it(
    stage: OperatorStage, installed: ControlPlane, operation: str
):
    await stage.submit()
    await stage.until(phase="Running")
    with denied(installed, stage.namespace, operation, "no changes on Sundays"):
        await stage.exit("story-worker-0", 1)
        status = await stage.until(reason="AdmissionRejected", attempt=2, restarts=1)
        assert "no changes on Sundays" in status["message"]
    await stage.until(phase="Running", attempt=2, restarts=1, disruptions=0)


async def test_an_environment_over_quota_is_reported(stage: OperatorStage, installed: ControlPlane):
    hard = {"hard": {"count/configmaps": "1"}}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "one"}, "spec": hard}
    installed.kubectl("create", "-n", stage.namespace, "-f", "-", input=json.dumps(quota))
    installed.kubectl("create", "-n", stage.namespace, "configmap", "mine", check=False)
    await asyncio.sleep(1)
    await stage.submit()
    status = await stage.until(reason="QuotaExceeded", phase="Starting")
    assert "story-env-" in status["message"]
    installed.kubectl("delete", "-n", stage.namespace, "resourcequota", "one")
    await stage.until(phase="Running")


async def test_an_evicted_worker_that_exits_with_0_has_not_succeeded(stage: OperatorStage):
    """It saved a checkpoint and exited with 0, as programs do on SIGTERM."""
    await stage.submit()
    await stage.until(phase="Running")
    for index in range(2):
        name = f"story-worker-{index}"
        ended = {"terminated": {"exitCode": 0, "reason": "Completed"}}
        states = [{**one, "state": ended} for one in (await stage.kubelet.pod(name))["status"]["containerStatuses"]]
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
        status = {"phase": "Failed", "reason": "Evicted", "message": "memory", "conditions": [condition]}
        await stage.kubelet.write(name, {**status, "containerStatuses": states})
    await stage.until(phase="Running", disruptions=1, restarts=0)


async def test_a_pod_that_lost_its_labels_is_named(stage: OperatorStage, installed: ControlPlane):
    await stage.submit()
    await stage.until(phase="Running")
    installed.kubectl("label", "-n", stage.namespace, "pod", "story-worker-0", "batch.paddlepaddle.org/job-")
    status = await stage.until(reason="NameTaken")
    assert "lacks its labels" in status["message"]
    installed.kubectl("delete", "-n", stage.namespace, "pod", "story-worker-0", "--force")
    await stage.until(phase="Running")


async def test_a_pod_that_lost_the_label_of_its_role_is_replaced(stage: OperatorStage, installed: ControlPlane):
    await stage.submit()
    await stage.until(phase="Running")
    before = await stage.pods()
    installed.kubectl("label", "-n", stage.namespace, "pod", "story-worker-0", "batch.paddlepaddle.org/role-")
    await stage.until(phase="Running", disruptions=1)
    assert not set(before.values()) & set((await stage.pods()).values())


async def test_a_foreign_configmap_with_the_name_of_the_environment_costs_an_attempt(stage: OperatorStage):
    await stage.submit(suspend=True)
    await stage.until(phase="Suspended")
    name = f"story-env-{(await stage.job())['metadata']['uid'][:5]}-1"
    foreign = {"metadata": {"name": name, "namespace": stage.namespace}, "data": {"PADDLE_TRAINERS_NUM": "1"}}
    await stage.client.create(CONFIGMAPS, foreign)
    await stage.change(suspend=False)
    status = await stage.until(attempt=2)
    assert (status["reason"], status["disruptions"]) == ("EnvironmentTaken", 1)
    assert name in status["message"]
    await stage.until(phase="Running", publishedAttempt=2)
    assert (await stage.environment("story-worker-0"))["PADDLE_TRAINERS_NUM"] == "2"
    kept = await stage.client.get(CONFIGMAPS, name, stage.namespace)
    assert kept["data"] == foreign["data"], "it is not ours to touch"


async def test_an_environment_that_is_deleted_comes_back_and_the_job_never_stops_running(stage: OperatorStage):
    await stage.submit()
    before = await stage.until(phase="Running")
    name = f"story-env-{(await stage.job())['metadata']['uid'][:5]}-1"
    old = await stage.client.get(CONFIGMAPS, name, stage.namespace)
    await asyncio.sleep(1.1)
    await stage.client.delete(CONFIGMAPS, name, stage.namespace)
    async with asyncio.timeout(60):
        while True:
            with suppress(NotFound):
                new = await stage.client.get(CONFIGMAPS, name, stage.namespace)
                break
            await asyncio.sleep(0.1)
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    assert new["data"] == old["data"]
    after = await stage.until(phase="Running")
    assert after["conditions"] == before["conditions"]


async def test_a_pod_with_a_finalizer_is_deleted_once(stage: OperatorStage, installed: ControlPlane):
    await stage.submit()
    await stage.until(phase="Running")
    await stage.kubelet.freeze()
    held = {"metadata": {"finalizers": ["example.com/hold"]}}
    await stage.client.patch(PODS, "story-worker-0", stage.namespace, held)
    installed.kubectl("delete", "-n", stage.namespace, "pod", "story-worker-0", "--force", "--wait=false")
    await stage.until(attempt=2)
    assert await _is_left_alone(stage, "story-worker-0")
    await stage.client.patch(PODS, "story-worker-0", stage.namespace, {"metadata": {"finalizers": None}})
    stage.kubelet.frozen = False
    await stage.until(phase="Running", disruptions=1)


async def _is_left_alone(stage: OperatorStage, pod: str) -> bool:
    """Whether there is a period of two seconds without a write to the pod."""
    for _ in range(10):
        before = (await stage.kubelet.pod(pod))["metadata"]["resourceVersion"]
        await asyncio.sleep(2)
        if (await stage.kubelet.pod(pod))["metadata"]["resourceVersion"] == before:
            return True
    return False
