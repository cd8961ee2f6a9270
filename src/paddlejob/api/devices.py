"""The devices that Paddle trains on: their resources in Kubernetes, and the variables by which Paddle knows them.

The facts are from the sources of Paddle 2.6.2 and 3.3.1 and from the documentation of vendors, HAMi and Volcano;
docs/howto/devices.md says which rows were seen at work.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase

from paddlejob.api.types.enums import DeviceKind
from paddlejob.errors import BadArgument

ALIKE = 0.9
"""How alike two names of resources are if one was meant by the other."""


@dataclass(frozen=True)
class Device:
    kind: DeviceKind
    """The name in spec.device and --devices."""
    vendor: str
    cards: tuple[str, ...]
    """Patterns of resources of which 1 is one device of the pod; the first is the name that --devices requests."""
    shares: tuple[str, ...]
    """Patterns of resources that are a part of a device, such as memory: their amount is no number of devices."""
    selected: str
    """The variable in which init_parallel_env expects the index of its device among the visible ones."""
    visible: str
    """The variable that hides other devices from a program."""
    newer: str = field(default="", kw_only=True)
    """Another one, which newer versions of Paddle prefer."""
    files: str
    """The device files of Linux, one for each device."""
    driver: str = ""
    """A file that only this vendor's driver makes, where `files` could be another's."""
    xccl: str = ""
    """The name of a device that Paddle knows by a plugin, which communicates by xccl; empty: it is built in."""

    @property
    def resource(self) -> str:
        return self.cards[0]


DEVICES = (
    Device(
        DeviceKind.GPU,
        "NVIDIA",
        (
            "nvidia.com/gpu",
            "nvidia.com/gpu.shared",
            "nvidia.com/mig-*",
            "volcano.sh/vgpu-number",
            "volcano.sh/gpu-number",
        ),
        (
            "nvidia.com/gpumem*",
            "nvidia.com/gpucores",
            "nvidia.com/priority",
            "volcano.sh/vgpu-*",
            "volcano.sh/gpu-memory",
        ),
        "FLAGS_selected_gpus",
        "CUDA_VISIBLE_DEVICES",
        "/dev/nvidia[0-9]*",
    ),
    Device(
        DeviceKind.XPU,
        "Kunlunxin",
        ("kunlunxin.com/xpu", "kunlunxin.com/vxpu"),
        ("kunlunxin.com/vxpu-memory",),
        "FLAGS_selected_xpus",
        "XPU_VISIBLE_DEVICES",
        "/dev/xpu[0-9]*",
        newer="XPULINK_VISIBLE_DEVICES",
    ),
    Device(
        DeviceKind.NPU,
        "Ascend",
        ("huawei.com/Ascend910", "huawei.com/Ascend*"),
        ("huawei.com/*-memory", "huawei.com/*-core"),
        "FLAGS_selected_npus",
        "ASCEND_RT_VISIBLE_DEVICES",
        "/dev/davinci[0-9]*",
        xccl="npu",
    ),
    Device(
        DeviceKind.MLU,
        "Cambricon",
        ("cambricon.com/mlu", "cambricon.com/vmlu", "cambricon.com/mlu[0-9]*"),
        ("cambricon.com/*.vmemory", "cambricon.com/*.vcore", "cambricon.com/mlumem"),
        "FLAGS_selected_mlus",
        "MLU_VISIBLE_DEVICES",
        "/dev/cambricon_dev[0-9]*",
        xccl="mlu",
    ),
    Device(
        DeviceKind.ILUVATAR_GPU,
        "Iluvatar",
        ("iluvatar.ai/gpu", "iluvatar.ai/vgpu", "iluvatar.ai/*-vgpu"),
        ("iluvatar.ai/*.vCore", "iluvatar.ai/*.vMem", "iluvatar.ai/vcuda-*"),
        "FLAGS_selected_iluvatar_gpus",
        "CUDA_VISIBLE_DEVICES",
        "/dev/iluvatar[0-9]*",
        xccl="iluvatar_gpu",
    ),
    Device(
        DeviceKind.METAX_GPU,
        "MetaX",
        ("metax-tech.com/gpu", "metax-tech.com/sgpu"),
        ("metax-tech.com/vcore", "metax-tech.com/vmemory"),
        "FLAGS_selected_metax_gpus",
        "MACA_VISIBLE_DEVICES",
        "/dev/dri/renderD*",
        driver="/dev/mxcd",
        xccl="metax_gpu",
    ),
    Device(
        DeviceKind.DCU,
        "Hygon",
        ("hygon.com/dcu", "hygon.com/dcunum"),
        ("hygon.com/dcumem", "hygon.com/dcucores"),
        "FLAGS_selected_gpus",
        "HIP_VISIBLE_DEVICES",
        "/dev/dri/renderD*",
        driver="/dev/mkfd",
    ),
)
BY_KIND = {device.kind: device for device in DEVICES}
NETWORKS = (
    "rdma/*",
    "*/*rdma*",
    "*/*hca*",
    "*/*roce*",
    "*/*sriov*",
    "*/efa",
    "nvidia.com/hostdev*",
    "nvidia.com/resib*",
    "mellanox.com/*",
    "openshift.io/*",
)
"""Resources of network adapters; none is a device that Paddle trains on."""


@dataclass(frozen=True)
class DeviceRequest:
    """How many devices each worker gets."""

    resource: str
    count: int

    @property
    def device(self) -> Device | None:
        return device_of(self.resource)


def gpus(count: int) -> DeviceRequest:
    return DeviceRequest(BY_KIND[DeviceKind.GPU].resource, count)


def request_devices(number_of_gpus: int | None, devices: str) -> DeviceRequest | None:
    """What the options --gpus and --devices ask for; None: nothing."""
    if devices and number_of_gpus:
        raise BadArgument("devices", "cannot be combined with gpus; use one of them")
    if devices:
        return parse_devices(str(devices))
    return None if number_of_gpus is None else gpus(number_of_gpus)


def parse_devices(text: str, argument: str = "devices") -> DeviceRequest:
    """`xpu:8`, or a resource as in `huawei.com/Ascend910B4:8`; without a number, one device."""
    known = {kind.value: device.resource for kind, device in BY_KIND.items()}
    found = re.fullmatch(r"([^/:\s]+(?:/[^/:\s]+)?)(?::([0-9]+))?", text)
    resource = known.get(found[1], found[1]) if found else ""
    if not found or not may_be_device(resource):
        problem = (
            f"{text!r} does not name devices; write a kind and a number, such as xpu:8, or a resource, such as "
            f"huawei.com/Ascend910B4:8; the kinds are {', '.join(known)}"
        )
        raise BadArgument(argument, problem)
    if shared := device_shared_by(resource):
        problem = (
            f"{resource} is a part of a card, not a number of cards; write {shared.kind}:1, and the part in a job file"
        )
        raise BadArgument(argument, problem)
    return DeviceRequest(resource, int(found[2] or "1"))


def device_of(resource: str) -> Device | None:
    """The device of which a resource counts whole or virtual cards."""
    return next((one for one in DEVICES if _matches(resource, one.cards) and not _is_share(resource, one)), None)


def device_shared_by(resource: str) -> Device | None:
    """The device of which a resource is a part, such as memory."""
    return next((one for one in DEVICES if _is_share(resource, one)), None)


def misspelt_device(resource: str) -> str:
    """The resource of a device that was probably meant, as nvidia.com/gpu by nvidia.com/gpus; empty if none was."""
    if not may_be_device(resource) or device_of(resource) or device_shared_by(resource):
        return ""
    return next(iter(get_close_matches(resource, [one.resource for one in DEVICES], 1, ALIKE)), "")


def may_be_device(resource: str) -> bool:
    """Whether an extended resource is a device, or one of a vendor that is not known here; networks are none."""
    return is_extended(resource) and not _matches(resource, NETWORKS)


def is_extended(resource: str) -> bool:
    """As Kubernetes decides it: such a resource is counted in whole numbers and cannot be overcommitted."""
    return "/" in resource and "kubernetes.io/" not in resource


def _is_share(resource: str, device: Device) -> bool:
    return _matches(resource, device.shares) and resource not in device.cards


def _matches(resource: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(resource, pattern) for pattern in patterns)
