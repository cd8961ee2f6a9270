"""Why a job does not run is in its status and in an event; the first line of the message says what to do next."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from paddlejob.kube.resource import EVENTS
from testbed.controlplane import ControlPlane
from tests.support.builders import IMAGE
from tests.support.operator_stage import OperatorStage

QUOTA = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}, "spec": {"hard": {"pods": "1"}}}
POD_GROUP_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "podgroups.scheduling.volcano.sh"},
    "spec": {
        "group": "scheduling.volcano.sh",
        "scope": "Namespaced",
        "names": {"kind": "PodGroup", "plural": "podgroups", "singular": "podgroup", "listKind": "PodGroupList"},
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


async def events(stage: OperatorStage, reason: str) -> list[dict[str, Any]]:
    """Events about the job; they are written in the background, so this waits for one."""
    ends = time.monotonic() + 15
    while True:
        found = [
            one
            for one in await stage.client.list(EVENTS, stage.namespace)
            if one["involvedObject"]["kind"] == "PaddleJob" and one["reason"] == reason
        ]
        if found or time.monotonic() > ends:
            return found
        await asyncio.sleep(0.1)


async def expect(stage: OperatorStage, reason: str, *parts: str, **more: Any) -> None:
    """Wait until the first line of the message contains all these parts; counts in it are updated within seconds."""
    ends = time.monotonic() + 30
    while True:
        first_line = (await stage.until(reason=reason, **more))["message"].splitlines()[0]
        if all(part in first_line for part in parts):
            break
        assert time.monotonic() < ends, first_line
        await asyncio.sleep(0.2)
    assert await events(stage, reason), "no event reports it"


def apply(plane: ControlPlane, namespace: str, manifest: dict[str, Any]) -> None:
    plane.kubectl("apply", "-n", namespace, "-f", "-", input=json.dumps(manifest))


async def created_pods(stage: OperatorStage, count: int = 2) -> list[str]:
    await stage.kubelet.freeze()
    ends = time.monotonic() + 30
    while len(made := await stage.pods()) < count:
        assert time.monotonic() < ends, await stage.status()
        await asyncio.sleep(0.1)
    return sorted(made)


async def test_a_command_that_does_not_exist(stage: OperatorStage):
    await stage.submit()
    await stage.until(phase="Running")
    runc = "failed to create shim task: OCI runtime create failed: unable to start container process"
    message = f'{runc}: error during container init: exec: "trian.py": executable file not found in $PATH: unknown'
    await stage.kubelet.exit("story-worker-1", 128, reason="StartError", message=message)
    remedy = "correct its command or image"
    await expect(stage, "StartError", "story-worker-1 could not start", remedy, phase="Failed", attempt=1)


async def test_unschedulable(stage: OperatorStage):
    await stage.kubelet.freeze()
    await stage.submit()
    for pod in await created_pods(stage):
        await stage.kubelet.unschedulable(pod, "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")
    await expect(
        stage, "Unschedulable", "2 of 2 pods do not fit on any node", "add nodes", "Insufficient nvidia.com/gpu"
    )


async def test_image_cannot_be_pulled(stage: OperatorStage):
    await stage.kubelet.freeze()
    await stage.submit()
    pod = (await created_pods(stage))[0]
    await stage.kubelet.wait_with(pod, "ImagePullBackOff", f'Back-off pulling image "{IMAGE}"')
    await expect(stage, "ImagePullFailed", pod, "check its name", IMAGE)


async def test_missing_claim(stage: OperatorStage):
    await stage.kubelet.freeze()
    await stage.submit()
    for pod in await created_pods(stage):
        await stage.kubelet.unschedulable(pod, 'persistentvolumeclaim "nfs-pvc" not found')
    await expect(stage, "VolumeMissing", "nfs-pvc", "create it")


async def test_quota_exceeded_then_freed(stage: OperatorStage, installed: ControlPlane):
    apply(installed, stage.namespace, QUOTA)
    await asyncio.sleep(1)
    await stage.submit(workers=3)
    await expect(stage, "QuotaExceeded", "quota", "story-worker-")
    installed.kubectl("delete", "-n", stage.namespace, "resourcequota", "small")
    await stage.until(phase="Running", worker_ready="3/3")


async def test_admission_rejected(stage: OperatorStage, installed: ControlPlane):
    installed.kubectl("label", "namespace", stage.namespace, "pod-security.kubernetes.io/enforce=restricted")
    await stage.submit()
    await expect(stage, "AdmissionRejected", "the API server rejected story-worker-0", "violates PodSecurity")
    assert await stage.pods() == {}, "after the first rejection no other is tried"


async def test_a_name_that_is_taken(stage: OperatorStage, installed: ControlPlane):
    other = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "story-worker-1"},
        "spec": {"containers": [{"name": "x", "image": "x", "envFrom": [{"configMapRef": {"name": "never"}}]}]},
    }
    apply(installed, stage.namespace, other)
    await stage.submit()
    await expect(stage, "NameTaken", "story-worker-1", "rename the job")
    installed.kubectl("delete", "-n", stage.namespace, "pod", "story-worker-1", "--force")
    await stage.until(phase="Running")


async def test_crash_loop(stage: OperatorStage):
    await stage.submit(backoffLimit=2, workers=1)
    for restart in range(3):
        await stage.until(phase="Running", restarts=restart)
        await stage.exit("story-worker-0", 1, message=f"Traceback ...\nKeyError: {restart}")
    await expect(stage, "BackoffLimitExceeded", "failed 3 times", "see its log", phase="Failed")
    assert (await stage.status())["message"].startswith("KeyError: 2 (worker 0, exit status 1); ")


async def test_the_same_error_again(stage: OperatorStage):
    await stage.submit(workers=1)
    for restart in range(2):
        await stage.until(phase="Running", restarts=restart)
        await stage.exit("story-worker-0", 1, message="Traceback ...\nKeyError: 'label'")
    await expect(stage, "ProgramFailed", "KeyError: 'label' (worker 0", "two attempts in a row", phase="Failed")


async def test_out_of_memory(stage: OperatorStage):
    await stage.submit(backoffLimit=1, workers=1)
    await stage.until(phase="Running")
    await stage.kubelet.exit("story-worker-0", 137, reason="OOMKilled")
    assert "resources.limits.memory" in (await events(stage, "OutOfMemory"))[0]["message"]
    await stage.until(phase="Running", restarts=1)


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("TerminationByKubelet", "Evicted"),
        ("DeletionByTaintManager", "NodeLost"),
        ("PreemptionByScheduler", "Preempted"),
    ],
)
async def test_disruptions(stage: OperatorStage, condition: str, reason: str):
    await stage.submit(backoffLimit=0)
    await stage.until(phase="Running")
    await stage.kubelet.fail("story-worker-1", "Evicted", "The node was low on resource: memory.", condition)
    recorded = await events(stage, reason)
    assert "story-worker-1" in recorded[0]["message"]
    assert "not counted as a failure" in recorded[0]["message"]
    await stage.until(phase="Running", disruptions=1, restarts=0)


async def test_an_eviction_for_its_own_usage_is_a_failure_with_the_remedy(stage: OperatorStage):
    await stage.submit(backoffLimit=1)
    await stage.until(phase="Running")
    used = "Container paddle was using 9Gi, request is 4Gi, has larger consumption of memory. "
    message = f"The node was low on resource: memory. Threshold quantity: 100Mi, available: 88Mi. {used}"
    await stage.kubelet.fail("story-worker-1", "Evicted", message, "TerminationByKubelet")
    recorded = await events(stage, "UsageExceeded")
    assert "resources.requests.memory" in recorded[0]["message"] and "9Gi" in recorded[0]["message"]
    await stage.until(phase="Running", disruptions=0, restarts=1)


async def test_a_deletion_by_someone_else_is_a_disruption(stage: OperatorStage, installed: ControlPlane):
    await stage.submit(ps=1, backoffLimit=0)
    await stage.until(phase="Running")
    installed.kubectl("delete", "pod", "-n", stage.namespace, "story-ps-0", "--force")
    await stage.until(phase="Running", disruptions=1, restarts=0)


async def test_a_queue_without_kueue(stage: OperatorStage):
    await stage.submit(labels={"kueue.x-k8s.io/queue-name": "research"})
    await expect(stage, "KueueMissing", "install Kueue", "remove the label")
    assert await stage.pods() == {}


async def test_volcano(stage: OperatorStage, installed: ControlPlane):
    """Requested but not installed; installed but the gang not admitted; admitted."""
    await stage.submit(schedulingPolicy={"queue": "research"})
    await expect(stage, "VolcanoMissing", "install Volcano")
    installed.kubectl("create", "-f", "-", input=json.dumps(POD_GROUP_CRD))
    await stage.kubelet.freeze()
    try:
        for pod in await _pods_after_install(stage):
            await stage.kubelet.unschedulable(pod, "pod group is not ready, 2 Pending, 2 minAvailable")
        await expect(stage, "GangNotAdmitted", "free resources in its queue", "2 minAvailable")
        wait = ("wait", "-n", stage.namespace, "pdj/story", "--timeout=60s")
        assert "condition met" in installed.kubectl(*wait, "--for=condition=GangAdmitted=False").stdout
        listed = installed.kubectl("get", "podgroups", "-n", stage.namespace, "-o", "json").stdout
        group = json.loads(listed)["items"][0]
        assert group["spec"] == {"minMember": 2, "queue": "research"}
        stage.kubelet.hold.clear()
        stage.kubelet.frozen = False
        await stage.until(phase="Running")
        assert "condition met" in installed.kubectl(*wait, "--for=condition=GangAdmitted").stdout
        for index in range(2):
            await stage.exit(f"story-worker-{index}", 0)
        await stage.until(phase="Completed")
        left = installed.kubectl("get", "podgroups", "-n", stage.namespace, "-o", "name").stdout
        assert left == "", "our own group is deleted with the pods"
    finally:
        installed.kubectl("delete", "crd", "podgroups.scheduling.volcano.sh")


async def _pods_after_install(stage: OperatorStage) -> list[str]:
    """The operator notices an installed Volcano within half a minute."""
    ends = time.monotonic() + 60
    while len(made := await stage.pods()) < 2:
        assert time.monotonic() < ends, await stage.status()
        await asyncio.sleep(0.5)
    return sorted(made)
