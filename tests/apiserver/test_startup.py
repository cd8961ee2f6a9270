"""Pods that do not start, on a real API server: what the operator does to them, and what it leaves alone."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from paddlejob.kube.resource import PODS
from testbed.controlplane import ControlPlane
from tests.support.operator_stage import OperatorStage

DENY = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: {name}}}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}}
    namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {name}}}}}
  validations: [{{expression: "false", message: "no ConfigMaps here"}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: {name}}}
spec: {{policyName: {name}, validationActions: [Deny]}}
"""


async def until_created(stage: OperatorStage, *pods: str, other_than: str = "") -> dict[str, str]:
    """Wait until these pods exist, and the pod with another uid does not."""
    ends = time.monotonic() + 60
    while not {*pods} <= (found := await stage.pods()).keys() or other_than in found.values():
        assert time.monotonic() < ends, found
        await asyncio.sleep(0.1)
    return found


def bind(plane: ControlPlane, namespace: str, node: str, *pods: str) -> None:
    """What a scheduler does; the API server does not look for the node."""
    for pod in pods:
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": {"name": node}}
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/binding"
        plane.kubectl("create", "--raw", path, "-f", "-", input=json.dumps(binding))


async def test_a_pod_that_its_kubelet_rejects_is_replaced_alone(stage: OperatorStage):
    stage.kubelet.hold.add("story-worker-1")
    await stage.submit(workers=3)
    before = await until_created(stage, "story-worker-0", "story-worker-1", "story-worker-2")
    await stage.kubelet.fail("story-worker-1", "UnexpectedAdmissionError", "no devices left")
    await until_created(stage, "story-worker-1", other_than=before["story-worker-1"])
    stage.kubelet.hold.clear()
    await stage.until(phase="Running", attempt=1, disruptions=0, replacements="worker-1:1")
    after = await stage.pods()
    assert [name for name in before if after[name] != before[name]] == ["story-worker-1"]


@pytest.mark.full
async def test_a_pod_that_misses_the_startup_deadline_is_replaced_and_then_the_job_releases_its_pods(
    stage: OperatorStage, installed: ControlPlane
):
    stage.kubelet.hold.add("story-worker-1")
    await stage.submit(workers=2, startupDeadlineSeconds=2)
    first = (await until_created(stage, "story-worker-1"))["story-worker-1"]
    bind(installed, stage.namespace, "node-1", "story-worker-1")
    await stage.until(replacements="worker-1:1", attempt=1)
    await until_created(stage, "story-worker-1", other_than=first)
    bind(installed, stage.namespace, "node-1", "story-worker-1")
    status = await stage.until(reason="StartupDeadlineExceeded", attempt=2, startupTimeouts=1)
    assert "story-worker-1 did not start on node node-1 in 2 s" in status["message"]
    stage.kubelet.hold.clear()
    await stage.until(phase="Running", restarts=0, disruptions=0)


async def test_a_failed_job_leaves_no_pod_that_waits_for_a_node(stage: OperatorStage):
    stage.kubelet.hold.add("story-worker-1")
    await stage.submit(workers=2, cleanPodPolicy="Never", activeDeadlineSeconds=5)
    await until_created(stage, "story-worker-1")
    await stage.kubelet.unschedulable("story-worker-1", "0/1 nodes are available: 1 Insufficient cpu.")
    await stage.until(phase="Failed", reason="DeadlineExceeded")
    await stage.until_gone("story-worker-1")


async def test_a_rejected_environment_causes_no_patches(stage: OperatorStage, installed: ControlPlane):
    installed.kubectl("apply", "-f", "-", input=DENY.format(name=stage.namespace))
    try:
        await asyncio.sleep(3)
        await stage.submit(workers=4)
        status = await stage.until(phase="Starting", reason="AdmissionRejected")
        assert "no ConfigMaps here" in status["message"]
        before = await _versions(stage)
        await asyncio.sleep(5)
        assert await _versions(stage) == before, "no pod was patched"
    finally:
        installed.kubectl("delete", "-f", "-", input=DENY.format(name=stage.namespace))
    await stage.until(phase="Running")


async def _versions(stage: OperatorStage) -> dict[str, Any]:
    found = await stage.client.list(PODS, stage.namespace)
    return {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in found}
