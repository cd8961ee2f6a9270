"""Devices as users name them: on the command line, in Python, in new job files."""

from __future__ import annotations

import pytest

from paddlejob.api.devices import (
    DeviceRequest,
    device_of,
    device_shared_by,
    may_be_device,
    parse_devices,
    request_devices,
)
from paddlejob.api.documents import documents
from paddlejob.api.program import Overrides, job_of_program, overridden, python_file
from paddlejob.api.validate import change_faults
from paddlejob.cli.verbs.init import starter_file
from paddlejob.client.jobs import collective
from paddlejob.client.settings import default_image
from paddlejob.errors import BadInput
from tests.support.builders import document, template


@pytest.mark.parametrize(
    ("text", "resource", "count"),
    [
        ("gpu:8", "nvidia.com/gpu", 8),
        ("xpu", "kunlunxin.com/xpu", 1),
        ("npu:2", "huawei.com/Ascend910", 2),
        ("mlu:0", "cambricon.com/mlu", 0),
        ("dcu:1", "hygon.com/dcu", 1),
        ("iluvatar_gpu:1", "iluvatar.ai/gpu", 1),
        ("metax_gpu:1", "metax-tech.com/gpu", 1),
        ("huawei.com/Ascend910B4:8", "huawei.com/Ascend910B4", 8),
    ],
)
def test_devices_are_a_kind_or_a_resource_and_a_number(text: str, resource: str, count: int):
    assert parse_devices(text) == DeviceRequest(resource, count)


@pytest.mark.parametrize(
    "text", ["tpu:8", "gpu:x", "gpu:-1", "8", "a/b/c:1", "cpu:2", "gpu:1:2", "gpu:", "GPU:1", "rdma/hca:1", "a /b"]
)
def test_anything_else_says_how_devices_are_written(text: str):
    with pytest.raises(BadInput, match=r"xpu:8.*huawei.com/Ascend910B4:8.*the kinds are gpu, xpu, npu"):
        parse_devices(text)


def test_a_part_of_a_card_cannot_be_asked_for_as_devices():
    with pytest.raises(BadInput, match=r"nvidia.com/gpumem is a part of a card, .*; write gpu:1, and"):
        parse_devices("nvidia.com/gpumem:3000")


def test_gpus_are_a_short_form_of_devices_and_not_combined_with_it():
    assert request_devices(2, "") == request_devices(None, "gpu:2")
    assert request_devices(None, "") is None
    assert request_devices(0, "") == parse_devices("gpu:0"), "what a file asks for is left out"
    assert request_devices(0, "xpu:1") == parse_devices("xpu:1")
    with pytest.raises(BadInput, match="cannot be combined"):
        request_devices(1, "xpu:1")


def limits(made: dict) -> dict:
    return made["spec"]["worker"]["template"]["spec"]["containers"][0]["resources"]["limits"]


def test_a_program_with_several_devices_runs_under_the_launcher():
    made = job_of_program(python_file("train.py"), Overrides(devices=parse_devices("xpu:8")))
    assert limits(made) == {"kunlunxin.com/xpu": 8}
    assert made["spec"]["worker"]["template"]["spec"]["containers"][0]["command"][:3] == [
        "python",
        "-m",
        "paddle.distributed.launch",
    ]


def test_the_devices_of_a_file_are_replaced_and_shares_stay_with_their_own_kind():
    asked = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 3000, "cpu": 2, "rdma/hca": 1}
    resources = {"limits": dict(asked), "requests": {"nvidia.com/gpu": 1}}
    given = document(worker_={"replicas": 1, "template": template(resources=resources)})
    more = overridden(given, Overrides(devices=parse_devices("gpu:2")))
    assert limits(more) == asked | {"nvidia.com/gpu": 2}
    other = overridden(given, Overrides(devices=parse_devices("npu:1")))
    assert limits(other) == {"cpu": 2, "rdma/hca": 1, "huawei.com/Ascend910": 1}
    assert limits(overridden(given, Overrides(devices=parse_devices("gpu:0")))) == {"cpu": 2, "rdma/hca": 1}


def test_python_programs_say_devices_in_the_same_way(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    assert limits(collective("train.py", devices="dcu:2").document) == {"hygon.com/dcu": 2}
    with pytest.raises(BadInput, match="devices cannot be combined with gpus"):
        collective("train.py", gpus=1, devices="xpu:1")
    with pytest.raises(BadInput, match="'2' does not name devices"):
        collective("train.py", devices=2)  # type: ignore[arg-type]


@pytest.mark.parametrize("devices", ["gpu:8", "nvidia.com/mig-1g.5gb:1"])
def test_whatever_is_of_nvidia_has_the_image_for_gpus(devices: str, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(BadInput, match="or set `gpu_image` in"):
        default_image(parse_devices(devices))


def test_other_devices_have_no_default_image():
    with pytest.raises(BadInput, match=r"image is missing; name an image with PaddlePaddle for kunlunxin.com/xpu"):
        default_image(parse_devices("xpu:1"))
    assert default_image(parse_devices("xpu:0")) == default_image(None)


@pytest.mark.parametrize("mode", ["ps", "collective", "single", "llm"])
def test_a_new_job_file_asks_for_a_device(mode: str):
    made = documents(starter_file(mode, resource="huawei.com/Ascend910"), "x")[0]
    assert limits(made)["huawei.com/Ascend910"] == (8 if mode == "llm" else 1)
    assert "nvidia" not in str(made) and "NCCL" not in str(made)
    assert "Ascend" not in str(made["spec"].get("ps"))


CARDS = {
    "gpu": "nvidia.com/gpu nvidia.com/gpu.shared nvidia.com/mig-1g.5gb volcano.sh/vgpu-number volcano.sh/gpu-number",
    "xpu": "kunlunxin.com/xpu kunlunxin.com/vxpu",
    "npu": "huawei.com/Ascend910 huawei.com/Ascend910B4 huawei.com/Ascend910-2c huawei.com/Ascend310P",
    "mlu": "cambricon.com/mlu cambricon.com/vmlu cambricon.com/mlu370",
    "iluvatar_gpu": "iluvatar.ai/gpu iluvatar.ai/vgpu iluvatar.ai/MR-V100-vgpu",
    "metax_gpu": "metax-tech.com/gpu metax-tech.com/sgpu",
    "dcu": "hygon.com/dcu hygon.com/dcunum",
}
SHARES = {
    "gpu": "nvidia.com/gpumem nvidia.com/gpumem-percentage nvidia.com/gpucores nvidia.com/priority "
    "volcano.sh/vgpu-memory volcano.sh/vgpu-cores volcano.sh/gpu-memory",
    "xpu": "kunlunxin.com/vxpu-memory",
    "npu": "huawei.com/Ascend910B3-memory huawei.com/Ascend910B3-core huawei.com/npu-core",
    "mlu": "cambricon.com/mlu370.smlu.vmemory cambricon.com/mlu370.smlu.vcore cambricon.com/mlumem",
    "iluvatar_gpu": "iluvatar.ai/MR-V100.vCore iluvatar.ai/MR-V100.vMem iluvatar.ai/vcuda-core",
    "metax_gpu": "metax-tech.com/vcore metax-tech.com/vmemory",
    "dcu": "hygon.com/dcumem hygon.com/dcucores",
}
NETWORKS = (
    "rdma/hca mellanox.com/cx6 nvidia.com/hca_shared_devices_a nvidia.com/hostdev nvidia.com/resibp1 "
    "vpc.amazonaws.com/efa openshift.io/mlxnics intel.com/sriov_net aliyun/erdma example.com/roce0"
)


@pytest.mark.parametrize(("kind", "resource"), [(kind, one) for kind in CARDS for one in CARDS[kind].split()])
def test_a_card_is_counted(kind: str, resource: str):
    found = device_of(resource)
    assert found and found.kind == kind
    assert device_shared_by(resource) is None


@pytest.mark.parametrize(("kind", "resource"), [(kind, one) for kind in SHARES for one in SHARES[kind].split()])
def test_a_part_of_a_card_is_no_card(kind: str, resource: str):
    found = device_shared_by(resource)
    assert found and found.kind == kind
    assert device_of(resource) is None
    assert may_be_device(resource)


@pytest.mark.parametrize("resource", [*NETWORKS.split(), "cpu", "hugepages-2Mi", "kubernetes.io/batch-cpu"])
def test_a_network_is_no_device(resource: str):
    assert not may_be_device(resource)
    assert device_of(resource) is device_shared_by(resource) is None


def test_the_device_of_a_job_that_exists_stays_and_auto_is_the_same_as_none_given():
    assert (
        change_faults(document(device="auto"), document()) == change_faults(document(), document(device="auto")) == []
    )
    assert "spec.device cannot be changed" in str(change_faults(document(device="gpu"), document()))
