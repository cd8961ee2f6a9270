"""The checks of a job on every target: the schema, then what no pod can do, and what is hardly intended."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

from paddlejob.api.checks.names import check_names, containers_of
from paddlejob.api.checks.training import check_training
from paddlejob.api.checks.variables import check_variables
from paddlejob.api.documents import Path
from paddlejob.api.fault import Fault, Severity
from paddlejob.api.rules import ROLES, Obj
from paddlejob.api.validate import find_faults
from paddlejob.api.yaml_problem import FULL_WIDTH, show

DEVICES = {"gpu": "nvidia.com/gpu", "gpus": "nvidia.com/gpu", "nvidia": "nvidia.com/gpu", "cuda": "nvidia.com/gpu"}
PLAIN_RESOURCES = ("cpu", "memory", "ephemeral-storage", "storage")
NOT_IN_INIT = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
SHELL = re.compile(r"&&|\|\||[|;<>$`*]")
QUOTES = tuple(character for character, meant in FULL_WIDTH.items() if meant in "\"'")


def check_job(document: Obj) -> list[Fault]:
    """Everything that can be wrong with a job, whatever runs it; a job with errors in it cannot run."""
    return find_faults(document) or check_pods(document)


def errors_of(document: Obj) -> list[Fault]:
    """Those that prevent the job from running on any target."""
    return [fault for fault in check_job(document) if fault.severity is Severity.ERROR]


def check_pods(job: Obj) -> list[Fault]:
    """The findings about every pod template of a job that matches the schema."""
    found: list[Fault] = []
    for role in ROLES:
        if role in job["spec"]:
            found += _check_pod(job["spec"][role]["template"].get("spec") or {}, ("spec", role, "template", "spec"))
    return [*found, *check_training(job)]


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
    message = f"{show(program)} is the name of a single program, with its spaces; write {_as_arguments(program)}"
    yield Fault((*path, "command", 0), message, Severity.WARNING)


def _as_arguments(command: str) -> str:
    """The command as it should have been written."""
    try:
        arguments = ["bash", "-c", command] if SHELL.search(command) or "\n" in command else shlex.split(command)
    except ValueError:
        arguments = ["bash", "-c", command]
    return json.dumps(arguments, ensure_ascii=False)


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
            if "/" in name:
                if name not in limits:
                    yield Fault(here, f"a device must also be in limits; add {name}: {amount} to limits")
            elif name not in PLAIN_RESOURCES and not name.startswith("hugepages-"):
                yield Fault(here, f"{_not_a_resource(name, amount)}")


def _not_a_resource(name: str, amount: object) -> str:
    device = DEVICES.get(name.lower())
    if device:
        return f"is not a resource of Kubernetes, so no GPU would be assigned; write {device}: {amount}"
    return "is not a resource of Kubernetes; use cpu, memory or the full name of a device, such as nvidia.com/gpu"
