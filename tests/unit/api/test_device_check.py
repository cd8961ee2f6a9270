"""`pdj validate` warns of devices that a program would not use."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.api.checks.pods import check_job
from paddlejob.api.fault import Severity
from tests.support.builders import document, template

IMAGE = "registry.example.com/train:1"


def warnings(container: dict[str, Any], pod: dict[str, Any] | None = None, **options: Any) -> list[str]:
    made = template(**{"image": IMAGE, "command": ["python", "train.py"]} | container)
    made["spec"] |= pod or {}
    found = check_job(document(worker_={"replicas": 2, "template": made}, **options))
    assert {fault.severity for fault in found} <= {Severity.WARNING}, found
    return [f"{'.'.join(map(str, fault.path[6:]))}: {fault.message}" for fault in found]


def asking(count: int = 1, resource: str = "nvidia.com/gpu", **more: Any) -> dict[str, Any]:
    return {"resources": {"limits": {resource: count, **more.pop("limits", {})}}, **more}


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        (asking(8), "command: starts one process, which uses one of 8 devices; start one for each: python -m paddle.d"),
        (
            asking(2, "kunlunxin.com/xpu", command=["python3", "-u", "a.py"], args=["--x"]),
            "distributed.launch a.py --x",
        ),
        (
            asking(2, command=["python", "-m", "pkg.train"]),
            "each: python -m paddle.distributed.launch python -m pkg.tr",
        ),
        (
            asking(8, command=["bash", "-c", "python -m paddle.distributed.launch --nproc_per_node 1 a.py"]),
            "starts 1 process and the container has 8",
        ),
        (
            asking(8, command=["python", "-m", "paddle.distributed.launch", "--gpus", "0,1", "a.py"]),
            "starts 2 processes",
        ),
        (
            asking(4, command=["python", "-m", "paddle.distributed.launch", "--nproc_per_node=8", "a.py"]),
            "starts 8 proc",
        ),
        (asking(2, command=["/usr/bin/python3.11", "a.py"]), "starts one process, which uses one of 2 devices"),
        (asking(image="paddlepaddle/paddle:2.6.2"), "image: is PaddlePaddle's image for CPUs, which cannot use nvidia"),
        (asking(image="ccr.example.com/paddlepaddle/paddle"), "image: is PaddlePaddle's image for CPUs"),
        (
            asking(env=[{"name": "PADDLE_DISTRI_BACKEND", "value": "gloo"}]),
            "env.0: gloo trains on the CPU and leaves nv",
        ),
        (
            {"resources": {"limits": {"nvidia.com/gpumem": 3000}}},
            "resources.limits.nvidia.com/gpumem: is a part of a card, not a number of cards; a",
        ),
        (asking(limits={"kunlunxin.com/xpu": 1}), "resources: asks for gpu and xpu; set spec.device"),
        (
            {"resources": {"claims": [{"name": "gpu"}]}},
            "may have a device by resources.claims, so neither a device nor",
        ),
        ({"securityContext": {"privileged": True}}, "may have a device by securityContext.privileged"),
        (asking(resource="example.com/card"), "may have a device by example.com/card"),
        (
            asking(resource="nvidia.com/gpus"),
            "is not the name of a device that Paddle knows; did you mean nvidia.com/gpu?",
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_warning_says_what_is_not_used_and_what_to_do(container: dict, expected: str):
    pod = (
        {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}]} if "claims" in str(container) else {}
    )
    assert any(expected in one for one in warnings(container, pod)), warnings(container, pod)


@pytest.mark.parametrize(
    "container",
    [
        {},
        asking(),
        asking(8, command=["python", "-m", "paddle.distributed.launch", "a.py"]),
        asking(8, command=["python", "-m", "paddle.distributed.launch", "--gpus", "0,1,2,3,4,5,6,7", "a.py"]),
        asking(8, command=["bash", "run.sh"]),
        asking(8, command=["python", "-m", "paddle.distributed.launch", "a.py", "--gpus", "8", "--nproc_per_node=1"]),
        asking(limits={"kunlunxin.com/xpu": 0}),
        asking(8, command=["paddleformers-cli", "train", "a.yaml"]),
        {"command": ["python", "-m", "paddle.distributed.launch", "--nproc_per_node=2", "a.py"]},
        asking(image="paddlepaddle/paddle:2.6.2-gpu-cuda11.7-cudnn8.4-trt8.4"),
        asking(image="paddlepaddle/paddle:2.6.2-XPU"),
        asking(limits={"nvidia.com/gpumem": 3000, "rdma/hca": 1}),
        asking(env=[{"name": "PADDLE_DISTRI_BACKEND", "value": "nccl"}]),
        {"image": "paddlepaddle/paddle:2.6.2"},
        {"securityContext": {"privileged": True}, "command": ["bash", "run.sh"]},
        {"securityContext": {"privileged": True}, "env": [{"name": "PADDLE_DISTRI_BACKEND", "value": "gloo"}]},
        {"securityContext": {"privileged": True}, "env": [{"name": "FLAGS_selected_gpus", "value": "0"}]},
    ],
    ids=lambda value: str(value)[:60],
)
def test_nothing_is_said_about_a_job_that_uses_its_devices(container: dict):
    assert warnings(container) == []


def test_spec_device_answers_what_the_template_leaves_open():
    assert warnings({"securityContext": {"privileged": True}}, device="cpu") == []
    assert warnings(asking(limits={"kunlunxin.com/xpu": 1}), device="xpu") == []
    assert warnings(asking(image="paddlepaddle/paddle:2.6.2"), device="cpu") == []


def test_another_device_than_spec_device_says_is_reported():
    assert warnings(asking(), device="xpu") == ["resources: asks for gpu, and spec.device is xpu; change one of them"]
    assert warnings(asking(), device="gpu") == warnings(asking(), device="cpu") == []


def test_a_single_worker_needs_no_backend():
    made = template(image=IMAGE, command=["python", "train.py"], securityContext={"privileged": True})
    assert check_job(document(worker_={"replicas": 1, "template": made})) == []


def test_heter_trainers_are_checked_as_workers_are():
    made = template(**asking(image="paddlepaddle/paddle:2.6.2"))
    plain = {"replicas": 1, "template": template(image=IMAGE)}
    found = check_job(document(ps=1, heter=1, ps_=plain, worker_=plain, heter_={"replicas": 1, "template": made}))
    assert [fault.path[1] for fault in found if "image for CPUs" in fault.message] == ["heter"]


def test_servers_may_use_several_devices_in_one_process():
    assert warnings(asking(8), ps=1, ps_={"replicas": 1, "template": template(image=IMAGE)}) == []


def test_a_container_can_use_only_claims_of_its_pod():
    made = template(image=IMAGE, resources={"claims": [{"name": "gpu"}]})
    assert [str(one.message) for one in check_job(document(worker_={"template": made}))] == [
        'no resource claim is named "gpu"; add it to resourceClaims of the pod'
    ]
    made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "shared"}]
    assert check_job(document(worker_={"template": made})) == []


def test_a_heter_trainer_that_may_have_a_device_has_to_say_so():
    heter = {"heter_": {"template": template(image=IMAGE, securityContext={"privileged": True})}, "heter": 1, "ps": 1}
    found = [str(fault) for fault in check_job(document(**heter))]
    assert len(found) == 1
    assert "may have a device by securityContext.privileged, so HETER_DEVICE_TYPE" in found[0]
    assert check_job(document(**heter, device="gpu")) == []
