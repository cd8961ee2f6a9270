"""The checks of a job on every target: the schema, then what no pod can do, and what is hardly intended."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from paddlejob.api.checks.corrections import as_arguments, option
from paddlejob.api.checks.devices import check_devices
from paddlejob.api.checks.launcher import check_launcher
from paddlejob.api.checks.names import check_names, containers_of
from paddlejob.api.checks.training import check_training
from paddlejob.api.checks.variables import check_variables
from paddlejob.api.devices import BY_KIND, is_extended
from paddlejob.api.fault import Fault, Path, Severity
from paddlejob.api.quantity import parse_quantity
from paddlejob.api.rules import ROLES, Obj
from paddlejob.api.validate import find_faults
from paddlejob.api.yaml_problem import FULL_WIDTH, show

DEVICES = {kind.value: device.resource for kind, device in BY_KIND.items()}
DEVICES |= dict.fromkeys(("gpus", "nvidia", "cuda"), DEVICES["gpu"])
PLAIN_RESOURCES = ("cpu", "memory", "ephemeral-storage", "storage")
NOT_IN_INIT = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
QUOTES = tuple(character for character, meant in FULL_WIDTH.items() if meant in "\"'")


def check_job(document: Obj) -> list[Fault]:
    """Everything that can be wrong with a job, whatever runs it; a job with errors in it cannot run."""
    return find_faults(document) or check_pods(document)


def check_pods(job: Obj) -> list[Fault]:
    """The findings about every pod template of a job that matches the schema."""
    templates = {role: job["spec"][role]["template"] for role in ROLES if role in job["spec"]}
    found: list[Fault] = []
    for role, template in templates.items():
        found += _check_pod(template.get("spec") or {}, ("spec", role, "template", "spec"))
    return [*found, *check_launcher(templates), *check_training(job), *check_devices(job)]


def _check_pod(pod: Obj, path: Path) -> Iterator[Fault]:
    yield from check_names(pod, path)
    for container, here in containers_of(pod, path):
        yield from _check_container(container, here)
        if here[-2] == "initContainers" and container.get("restartPolicy") != "Always":
            for field in NOT_IN_INIT:
                if field in container:
                    message = (
                        "an init container cannot have it; remove it, or make it a sidecar (restartPolicy: Always)"
                    )
                    yield Fault((*here, field), message)


def _check_container(container: Obj, path: Path) -> Iterator[Fault]:
    if not container.get("image"):
        message = "is missing; add the image of the program, since a cluster starts no container without one"
        yield Fault((*path, "image"), message, Severity.CLUSTER)
    policy = container.get("imagePullPolicy")
    if policy and policy not in PULL_POLICIES:
        message = f"{show(policy)} is not valid; write {option(policy, PULL_POLICIES) or ' or '.join(PULL_POLICIES)}"
        yield Fault((*path, "imagePullPolicy"), message, Severity.CLUSTER)
    yield from _check_command(container, path)
    yield from _check_quotes(container, path)
    yield from check_variables(container, path)
    yield from _check_resources(container.get("resources") or {}, (*path, "resources"))


def _check_command(container: Obj, path: Path) -> Iterator[Fault]:
    program = next(iter(container.get("command") or []), None)
    if program is not None and not program.strip():
        yield Fault((*path, "command", 0), "is empty; write the name of the program")
    if not program or not re.search(r"\S\s+\S", program):
        return
    message = f"{show(program)} is the name of a single program, with its spaces; write {as_arguments(program)}"
    yield Fault((*path, "command", 0), message, Severity.WARNING)


def _check_quotes(container: Obj, path: Path) -> Iterator[Fault]:
    values: list[tuple[Path, Any]] = [((field,), container.get(field)) for field in ("image", "workingDir")]
    values += [((field, index), value) for field in ("command", "args") for index, value in _items(container, field)]
    for where, value in values:
        if isinstance(value, str) and value and (value[0] in QUOTES or value[-1] in QUOTES):
            quote = value[0] if value[0] in QUOTES else value[-1]
            message = f"the quote {quote} is part of the value {show(value)}; write {FULL_WIDTH[quote]} instead"
            yield Fault((*path, *where), message, Severity.WARNING)


def _items(container: Obj, field: str) -> Iterator[tuple[int, Any]]:
    return iter(enumerate(container.get(field) or []))


def _check_resources(resources: Obj, path: Path) -> Iterator[Fault]:
    limits = resources.get("limits") or {}
    for field in ("limits", "requests"):
        for name, amount in (resources.get(field) or {}).items():
            here = (*path, field, name)
            if is_extended(name):
                yield from _check_device(name, amount, limits, here)
            elif "/" not in name and name not in PLAIN_RESOURCES and not name.startswith("hugepages-"):
                yield Fault(here, f"{_not_a_resource(name, amount)}")


def _check_device(name: str, amount: Any, limits: Obj, path: Path) -> Iterator[Fault]:
    number = parse_quantity(amount)
    if name not in limits:
        yield Fault(path, f"a device must also be in limits; add {name}: {amount} to limits")
    elif number != parse_quantity(limits[name]):
        yield Fault(path, f"a device is not overcommitted; write {limits[name]}, as in limits, or remove the request")
    elif number < 0 or number % 1:
        yield Fault(path, f"{show(amount)} is not a number of devices; write a whole number")


def _not_a_resource(name: str, amount: object) -> str:
    device = DEVICES.get(name.lower())
    if device:
        return f"is not a resource of Kubernetes, so no device would be assigned; write {device}: {amount}"
    return "is not a resource of Kubernetes; use cpu, memory or the full name of a device, such as nvidia.com/gpu"
