"""Jobs with devices on real nodes: they wait and say for what, are placed, and find the variables of their device."""

from __future__ import annotations

import json
from typing import Any

import pytest

from testbed.addons.devices import fake_devices, fake_driver
from testbed.cluster import Cluster
from tests.support.on_cluster import QUICK, Job, eventually

pytestmark = pytest.mark.full
Object = dict[str, Any]
SHOW = "env | grep -E '^(FLAGS_|PADDLE_XCCL|PADDLE_DISTRI|ALLOCATED)' | sort; sleep 3600"


def create(
    cluster: Cluster, namespace: str, name: str, resources: Object, pod: Object | None = None, **more: Any
) -> Job:
    container = {"name": "paddle", "image": "busybox", "command": ["sh", "-c", SHOW], "resources": resources}
    template = {"spec": {"containers": [container], **QUICK, **(pod or {})}}
    spec = {"cleanPodPolicy": "Never", "worker": {"replicas": 2, "template": template}, **more}
    document = {"apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "metadata": {"name": name}}
    cluster.kubectl("-n", namespace, "create", "-f", "-", input=json.dumps(document | {"spec": spec}))
    return Job(cluster, namespace, name)


def variables(job: Job) -> list[dict[str, str]]:
    """What the workers printed."""

    def lines(worker: int) -> list[str]:
        return job.log(f"{job.name}-worker-{worker}").split()

    eventually("both workers have printed", lambda: lines(0) and lines(1))
    return [dict(line.split("=", 1) for line in lines(worker)) for worker in range(2)]


def test_jobs_wait_for_devices_say_so_and_get_their_variables(operator: Cluster, cluster_namespace: str):
    gpus = create(operator, cluster_namespace, "gpus", {"limits": {"nvidia.com/gpu": 1}})
    message = gpus.until(reason="Unschedulable")["message"]
    assert "Insufficient nvidia.com/gpu" in message
    with fake_devices(operator, **{"nvidia.com/gpu": 1, "kunlunxin.com/xpu": 1, "huawei.com/Ascend910": 1}):
        gpus.until(phase="Running", worker_ready="2/2", restarts=0)
        found = variables(gpus)
        assert [one["FLAGS_selected_gpus"] for one in found] == ["0", "0"]
        assert len({one["ALLOCATED_GPU"] for one in found}) == 2, "each has a device of its own"
        assert "PADDLE_DISTRI_BACKEND" not in found[0], "Paddle takes nccl by itself"

        more = create(operator, cluster_namespace, "more", {"limits": {"nvidia.com/gpu": 1}})
        status = more.until(reason="Unschedulable")
        assert "Insufficient nvidia.com/gpu" in status["message"], "two of the three GPUs are taken"
        more.kubectl("delete", "pdj", more.name)

        xpus = create(operator, cluster_namespace, "xpus", {"limits": {"kunlunxin.com/xpu": 1}})
        npus = create(operator, cluster_namespace, "npus", {"limits": {"huawei.com/Ascend910": 1}})
        assert [one["FLAGS_selected_xpus"] for one in variables(xpus)] == ["0", "0"]
        for one in variables(npus):
            assert one.pop("ALLOCATED_ASCEND910")
            assert one == {"FLAGS_selected_npus": "0", "PADDLE_DISTRI_BACKEND": "xccl", "PADDLE_XCCL_BACKEND": "npu"}
        for job in (gpus, xpus, npus):
            job.kubectl("delete", "pdj", job.name, "--wait=true")
            eventually("its pods are gone", lambda job=job: not job.pods())


def claim_of(count: int) -> Object:
    return {"devices": {"requests": [{"name": "device", "exactly": {"deviceClassName": "fake", "count": count}}]}}


def make(cluster: Cluster, namespace: str, kind: str, name: str, spec: Object) -> None:
    made = {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    cluster.kubectl("-n", namespace, "create", "-f", "-", input=json.dumps(made))


def test_jobs_wait_for_resource_claims_say_so_and_run_on_what_they_allocate(operator: Cluster, cluster_namespace: str):
    asking = {"claims": [{"name": "device"}]}
    each = {"resourceClaims": [{"name": "device", "resourceClaimTemplateName": "one-device"}]}
    job = create(operator, cluster_namespace, "claims", asking, each, device="gpu")
    waiting = job.until(reason="WaitingForResourceClaims")
    assert "2 of 2 pods wait for resource claim template one-device" in waiting["message"]
    make(operator, cluster_namespace, "ResourceClaimTemplate", "one-device", {"spec": claim_of(1)})
    assert "device class fake does not exist" in job.until(reason="Unschedulable")["message"]
    with fake_driver(operator, 1):
        job.until(phase="Running", worker_ready="2/2", restarts=0)
        assert variables(job) == [{"FLAGS_selected_gpus": "0"}] * 2, "spec.device says what a claim does not"

        both = {"resourceClaims": [{"name": "device", "resourceClaimName": "shared"}]}
        other = create(operator, cluster_namespace, "shared", asking, both)
        assert "2 of 2 pods wait for resource claim shared" in other.until(reason="WaitingForResourceClaims")["message"]
        make(operator, cluster_namespace, "ResourceClaim", "shared", claim_of(2))
        message = other.until(reason="Unschedulable")["message"]
        assert "free devices, or lower what its resource claims request" in message, "no node has two"
        for one in (job, other):
            one.kubectl("delete", "pdj", one.name)
            eventually("its pods are gone", lambda one=one: not one.pods())
