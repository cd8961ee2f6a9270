"""Devices that a job requests and its program would not use, or not all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from paddlejob import contract
from paddlejob.api.devices import Device, device_of, device_shared_by, misspelt_device
from paddlejob.api.fault import Fault, Path, Severity
from paddlejob.api.pod_devices import PodDevices, devices_of_pod
from paddlejob.api.program import launcher_command
from paddlejob.api.quantity import parse_quantity, requests
from paddlejob.api.rules import Obj
from paddlejob.api.template import training_container
from paddlejob.api.types import DeviceKind

PYTHON = re.compile(r"(?:.*/)?python[0-9.]*")
STARTS_PROCESSES = re.compile(r"launch|spawn|fleetrun|mpirun|paddleformers|erniekit", re.IGNORECASE)
CPU_IMAGE = re.compile(r"(?:.*/)?paddlepaddle/paddle(?::(?P<tag>[^@]*))?")
OTHER_BUILDS = re.compile("gpu|cuda|xpu|npu|mlu|dcu|rocm|dtk|iluvatar|maca|metax|dev", re.IGNORECASE)
LISTED = re.compile(r"--(?:gpus|devices|xpus|npus|mlus)[= ]\s*([0-9]+(?:,[0-9]+)*)(?!\S)")
PROGRAM = re.compile(r"\s(?=\S+\.py(?!\S))")
"""Before the program, whose options are its own."""
PER_NODE = re.compile(r"--nproc_per_node[= ]\s*([0-9]+)(?!\S)")


def check_devices(job: Obj) -> Iterator[Fault]:
    """Of the training container of workers and heter pods; the schema has been checked."""
    declared = DeviceKind(job["spec"].get("device") or DeviceKind.AUTO)
    for role in ("worker", "heter"):
        template = (job["spec"].get(role) or {}).get("template") or {}
        containers = (template.get("spec") or {}).get("containers")
        if not containers:
            continue
        container = training_container(containers)
        path = ("spec", role, "template", "spec", "containers", containers.index(container))
        devices = devices_of_pod(template, declared)
        yield from _check_resources(container, path, declared)
        if devices.device:
            yield from _check_image(container, path, devices.device)
            yield from _check_gloo(container, path, devices.device)
        if role == "heter":
            yield from _check_heter(container, path, devices)
        if "ps" not in job["spec"]:
            yield from _check_processes(container, path, devices)
            yield from _check_backend(container, path, devices, job["spec"][role].get("replicas") or 1)


def _check_resources(container: Obj, path: Path, declared: DeviceKind) -> Iterator[Fault]:
    names = [name for name, amount in requests(container).items() if parse_quantity(amount)]
    kinds = {device.kind for name in names if (device := device_of(name))}
    for name in names:
        if meant := misspelt_device(name):
            message = f"is not the name of a device that Paddle knows; did you mean {meant}?"
            yield Fault((*path, "resources", "limits", name), message, Severity.WARNING)
        shared = device_shared_by(name)
        if shared and shared.kind not in kinds:
            message = (
                f"is a part of a card, not a number of cards; add {shared.resource}: 1, or the name by which your "
                "cluster counts the cards"
            )
            yield Fault((*path, "resources", "limits", name), message, Severity.WARNING)
    listed = " and ".join(sorted(kinds))
    if len(kinds) > 1 and declared is DeviceKind.AUTO:
        message = f"asks for {listed}; set spec.device to the one that the program trains on"
        yield Fault((*path, "resources"), message, Severity.WARNING)
    if kinds and declared not in {DeviceKind.AUTO, DeviceKind.CPU, *kinds}:
        message = f"asks for {listed}, and spec.device is {declared}; change one of them"
        yield Fault((*path, "resources"), message, Severity.WARNING)


def _check_image(container: Obj, path: Path, device: Device) -> Iterator[Fault]:
    found = CPU_IMAGE.fullmatch(container.get("image") or "")
    if found and not OTHER_BUILDS.search(found["tag"] or ""):
        message = (
            f"is PaddlePaddle's image for CPUs, which cannot use {device.resource}; use one whose tag names "
            "the device, such as 2.6.2-gpu-cuda11.7-cudnn8.4-trt8.4"
        )
        yield Fault((*path, "image"), message, Severity.WARNING)


def _check_gloo(container: Obj, path: Path, device: Device) -> Iterator[Fault]:
    for index, variable in enumerate(container.get("env") or []):
        if variable.get("name") == contract.ENV_BACKEND and variable.get("value") == "gloo":
            message = f"gloo trains on the CPU and leaves {device.resource} idle; remove the variable"
            yield Fault((*path, "env", index), message, Severity.WARNING)


def _check_processes(container: Obj, path: Path, devices: PodDevices) -> Iterator[Fault]:
    """A launcher starts one process for each device, unless an option says otherwise."""
    arguments = _arguments(container)
    if devices.count > 1 and _is_one_process(container):
        message = (
            f"starts one process, which uses one of {devices.count} devices; start one for each: "
            f"{' '.join(launcher_command(arguments))}"
        )
        yield Fault((*path, "command"), message, Severity.WARNING)
    text = PROGRAM.split(" ".join(arguments))[0]
    listed, per_node = LISTED.search(text), PER_NODE.search(text)
    started = len(listed[1].split(",")) if listed else int(per_node[1]) if per_node else devices.count
    if devices.count and started != devices.count and STARTS_PROCESSES.search(text):
        message = (
            f"starts {started} process{'es' if started > 1 else ''} and the container has {devices.count} devices; "
            "leave the option out to start one for each"
        )
        yield Fault((*path, "command"), message, Severity.WARNING)


def _check_backend(container: Obj, path: Path, devices: PodDevices, replicas: int) -> Iterator[Fault]:
    names = [str(one.get("name")) for one in container.get("env") or []]
    is_chosen = any(name == contract.ENV_BACKEND or name.startswith("FLAGS_selected_") for name in names)
    if misspelt_device(devices.hidden_in):
        return
    if devices.hidden_in and replicas > 1 and _is_one_process(container) and not is_chosen:
        message = (
            f"may have a device by {devices.hidden_in}, so neither a device nor gloo is chosen for it; set spec.device "
            "to gpu, cpu or another kind"
        )
        yield Fault(path, message, Severity.WARNING)


def _check_heter(container: Obj, path: Path, devices: PodDevices) -> Iterator[Fault]:
    if devices.hidden_in and not any(
        one.get("name") == contract.ENV_HETER_DEVICE for one in container.get("env") or []
    ):
        message = (
            f"may have a device by {devices.hidden_in}, so {contract.ENV_HETER_DEVICE}, without which Paddle does not "
            "start, is not set; set spec.device to cpu, gpu or xpu"
        )
        yield Fault(path, message, Severity.WARNING)


def _is_one_process(container: Obj) -> bool:
    arguments = _arguments(container)
    return bool(arguments and PYTHON.fullmatch(arguments[0])) and not STARTS_PROCESSES.search(" ".join(arguments))


def _arguments(container: Obj) -> list[str]:
    return [str(one) for one in (*(container.get("command") or []), *(container.get("args") or []))]
