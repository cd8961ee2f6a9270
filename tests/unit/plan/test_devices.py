"""The variables by which a worker's program trains on its device, or on CPUs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paddlejob.api.checks.pods import check_job
from paddlejob.api.documents import documents
from paddlejob.api.types import PaddleJob, Role
from paddlejob.api.validate import parse
from paddlejob.plan import PodPhase, names, plan
from paddlejob.plan.manifests import environment
from paddlejob.plan.manifests.build_mark import build_digest
from paddlejob.plan.manifests.pod import pod_manifest
from tests.support.builders import NOON, job, pod, running, template, world

JOBS = Path(__file__).with_name("device_jobs.yaml")
GLOO = {"PADDLE_DISTRI_BACKEND": "gloo"}
ONE_GPU = {"FLAGS_selected_gpus": "0"}
GPU = {"nvidia.com/gpu": 1}


MINE = {"FLAGS_selected_gpus": "3", "PADDLE_DISTRI_BACKEND": "nccl"}
"""A ConfigMap of the user."""
CHOICES = ("FLAGS_", "PADDLE_DISTRI_", "PADDLE_XCCL_")


def chosen(pod: dict | None = None, container: dict | None = None, **options: Any) -> dict[str, str]:
    """Backend and device of a worker."""
    made = template(**(container or {}))
    made["spec"] |= pod or {}
    return choices(job(worker_={"template": made}, **options))


def choices(made: PaddleJob) -> dict[str, str]:
    """What a worker sees of them, also from the ConfigMap that the template names, if it names one."""
    shared = environment.of_attempt(made, 1, dict.fromkeys(made.spec.slots, "10.0.0.1"))
    container = pod_manifest(made, Role.WORKER, 0, 1, "")["spec"]["containers"][0]
    found: dict[str, str] = {}
    for source in container["envFrom"]:
        found |= {names.environment(made, 1): shared, "mine": MINE}[source["configMapRef"]["name"]]
    found |= {one["name"]: one.get("value", "") for one in container["env"]}
    return {name: value for name, value in found.items() if name.startswith(CHOICES)}


def asking(**limits: int | str) -> dict:
    return {"resources": {"limits": limits}}


def xccl(name: str) -> dict[str, str]:
    return {"PADDLE_DISTRI_BACKEND": "xccl", "PADDLE_XCCL_BACKEND": name, f"FLAGS_selected_{name}s": "0"}


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, GLOO),
        ({"cpu": 4, "memory": "8Gi", "hugepages-2Mi": "1Gi"}, GLOO),
        ({"nvidia.com/gpu": "0"}, GLOO),
        ({"rdma/hca": 1}, GLOO),
        ({"nvidia.com/hca_shared_devices_a": 1, "vpc.amazonaws.com/efa": 1, "nvidia.com/mlnxnics-rdma": 2}, GLOO),
        (GPU, ONE_GPU),
        (GPU | {"rdma/hca": 1}, ONE_GPU),
        (GPU | {"nvidia.com/gpumem": 3000, "nvidia.com/gpucores": 30}, ONE_GPU),
        ({"nvidia.com/mig-3g.20gb": 1}, ONE_GPU),
        ({"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": 3000, "volcano.sh/vgpu-cores": 50}, ONE_GPU),
        ({"nvidia.com/gpu": 8}, {}),
        (GPU | {"nvidia.com/gpu.shared": 1}, {}),
        ({"nvidia.com/gpumem": 3000}, {}),
        ({"example.com/accelerator": 1}, {}),
        (GPU | {"kunlunxin.com/xpu": 1}, {}),
        ({"kunlunxin.com/xpu": 1}, {"FLAGS_selected_xpus": "0"}),
        ({"kunlunxin.com/vxpu": 1, "kunlunxin.com/vxpu-memory": 24576}, {"FLAGS_selected_xpus": "0"}),
        ({"huawei.com/Ascend910": 1}, xccl("npu")),
        ({"huawei.com/Ascend910B3": 1, "huawei.com/Ascend910B3-memory": 2000}, xccl("npu")),
        ({"huawei.com/Ascend910": 8}, {"PADDLE_XCCL_BACKEND": "npu"}),
        ({"cambricon.com/vmlu": 1, "cambricon.com/mlu370.smlu.vmemory": 20}, xccl("mlu")),
        ({"iluvatar.ai/BI-V150-vgpu": 1, "iluvatar.ai/BI-V150.vCore": 50}, xccl("iluvatar_gpu")),
        ({"metax-tech.com/sgpu": 1, "metax-tech.com/vcore": 60}, xccl("metax_gpu")),
        ({"hygon.com/dcunum": 1, "hygon.com/dcumem": 2000}, ONE_GPU),
    ],
    ids=str,
)
def test_one_device_is_selected_and_cpus_get_gloo(limits: dict, expected: dict):
    assert chosen(container=asking(**limits)) == expected


def at(path: str) -> dict:
    return {"volumes": [{"name": "gpu", "hostPath": {"path": path}}]}


HOST_DEVICE = at("/dev/nvidia0")
MOUNT = {"volumeMounts": [{"name": "gpu", "mountPath": "/dev/x"}]}


@pytest.mark.parametrize(
    ("pod", "container", "expected"),
    [
        ({}, {"resources": {"claims": [{"name": "gpu"}]}}, {}),
        ({"runtimeClassName": "nvidia"}, {}, {}),
        ({"runtimeClassName": "nvidia"}, asking(**GPU), ONE_GPU),
        ({}, {"securityContext": {"privileged": True}}, {}),
        ({}, {"securityContext": {"privileged": False}}, GLOO),
        (HOST_DEVICE, MOUNT, {}),
        (HOST_DEVICE, {}, GLOO),
        *(
            (at(path), MOUNT, GLOO)
            for path in ("/dev/shm", "/dev/hugepages", "/dev/infiniband/uverbs0", "/dev/log", "/data")
        ),
        *((at(path), MOUNT, {}) for path in ("/dev", "/dev/logic0")),
        ({"volumes": [{"name": "gpu", "emptyDir": {}}]}, MOUNT, GLOO),
    ],
    ids=str,
)
def test_nothing_is_guessed_where_a_device_may_be_that_is_not_requested(pod: dict, container: dict, expected: dict):
    assert chosen(pod, container) == expected


def test_spec_device_says_what_the_template_cannot():
    claim = {"resources": {"claims": [{"name": "card"}]}}
    assert chosen(container=claim, device="gpu") == ONE_GPU
    assert chosen(container=claim, device="npu") == xccl("npu")
    assert chosen(container=claim, device="cpu") == GLOO
    assert chosen(container=asking(**{"example.com/card": 1}), device="xpu") == {"FLAGS_selected_xpus": "0"}
    assert chosen(container=asking(**{"nvidia.com/gpu": 8}), device="gpu") == {}, "the launcher selects among several"


NEIGHBOURS = {
    "hami-share": ONE_GPU,
    "hami-ascend": xccl("npu"),
    "hami-iluvatar": xccl("iluvatar_gpu"),
    "volcano-vgpu": ONE_GPU,
    "ascend-node": {"PADDLE_XCCL_BACKEND": "npu"},
    "dra": ONE_GPU,
}


@pytest.mark.parametrize("document", documents(JOBS.read_text(), JOBS.name), ids=lambda one: one["metadata"]["name"])
def test_jobs_as_the_documents_of_device_plugins_show_them_plan_without_a_warning(document: dict):
    assert check_job(document) == []
    made = parse(document)
    manifest = pod_manifest(made, Role.WORKER, 0, 1, "")
    container = manifest["spec"]["containers"][0]
    given = document["spec"]["worker"]["template"]["spec"]
    assert container["resources"] == given["containers"][0]["resources"], "whatever a scheduler reads stays as it is"
    assert manifest["spec"].get("schedulerName") == given.get("schedulerName")
    assert choices(made) == NEIGHBOURS[made.name]


def test_variables_of_the_template_win():
    env = [{"name": "FLAGS_selected_gpus", "value": "1"}, {"name": "PADDLE_DISTRI_BACKEND", "value": "nccl"}]
    expected = {"FLAGS_selected_gpus": "1", "PADDLE_DISTRI_BACKEND": "nccl"}
    assert chosen(container={**asking(**GPU), "env": env}) == expected


def test_what_the_template_takes_from_a_config_map_wins_too():
    mine = {"envFrom": [{"configMapRef": {"name": "mine"}}]}
    assert chosen(container={**asking(**GPU), **mine}) == MINE
    assert chosen(container=mine) == MINE


def test_pods_that_run_stay_whatever_spec_device_is_called_by_default():
    assert build_digest(job(device="gpu")) == build_digest(job()), "an upgrade adds the field and restarts nothing"


def test_parameter_servers_choose_no_backend():
    assert chosen(container=asking(**GPU), ps=1) == {}


@pytest.mark.parametrize(
    ("limits", "expected"), [({}, "cpu"), (GPU, "gpu"), ({"kunlunxin.com/xpu": 1}, "xpu"), ({"rdma/hca": 1}, "cpu")]
)
def test_heter_trainers_are_told_their_device(limits: dict, expected: str):
    made = job(ps=1, heter=1, heter_={"template": template(**asking(**limits))})
    env = pod_manifest(made, Role.HETER, 0, 1, "")["spec"]["containers"][0]["env"]
    assert {"name": "HETER_DEVICE_TYPE", "value": expected} in env


def test_a_heter_trainer_that_may_have_a_device_is_told_only_what_spec_device_says():
    made = template(securityContext={"privileged": True})
    told = []
    for device in ("auto", "cpu", "gpu"):
        heter = pod_manifest(job(ps=1, heter=1, heter_={"template": made}, device=device), Role.HETER, 0, 1, "")
        env = {one["name"]: one.get("value") for one in heter["spec"]["containers"][0]["env"]}
        told.append(env.get("HETER_DEVICE_TYPE"))
    assert told == [None, "cpu", "gpu"]


def test_a_pod_without_its_resource_claims_says_which_it_waits_for():
    made = template(resources={"claims": [{"name": "gpu"}, {"name": "nic"}]})
    made["spec"]["resourceClaims"] = [
        {"name": "gpu", "resourceClaimTemplateName": "one-gpu"},
        {"name": "nic", "resourceClaimName": "shared"},
    ]
    waiting = running(job(worker_={"template": made}))
    pods = [pod(waiting, "worker", index, PodPhase.PENDING, node="") for index in range(2)]
    status = plan(waiting, world(*pods), NOON).status
    assert status.reason == "WaitingForResourceClaims"
    assert "2 of 2 pods wait for resource claim template one-gpu, resource claim shared; if that" in status.message
    refused = [replace(one, reason="Unschedulable", message="0/3 nodes: 3 cannot allocate all claims.") for one in pods]
    status = plan(waiting, world(*refused), NOON).status
    assert status.reason == "Unschedulable"
    assert "free devices, or lower what its resource claims request: 0/3 nodes" in status.message
