"""What the schema of a job allows but no pod can do, and what its author can hardly have meant."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

from paddlejob.api.documents import Path
from paddlejob.api.fault import Fault, Severity
from paddlejob.api.rules import ROLES, Obj
from paddlejob.api.training_check import check_training
from paddlejob.api.yaml_problem import FULL_WIDTH, show

DEVICES = {"gpu": "nvidia.com/gpu", "gpus": "nvidia.com/gpu", "nvidia": "nvidia.com/gpu", "cuda": "nvidia.com/gpu"}
PLAIN_RESOURCES = ("cpu", "memory", "ephemeral-storage", "storage")
SHELL = re.compile(r"&&|\|\||[|;<>$`*]")
QUOTES = tuple(character for character, meant in FULL_WIDTH.items() if meant in "\"'")


def check_pods(job: Obj) -> list[Fault]:
    """The findings about every pod template of a job that matches the schema."""
    found: list[Fault] = []
    for role in ROLES:
        if role in job["spec"]:
            found += _check_pod(job["spec"][role]["template"].get("spec") or {}, ("spec", role, "template", "spec"))
    return [*found, *check_training(job)]


def _check_pod(pod: Obj, path: Path) -> Iterator[Fault]:
    volumes = [volume["name"] for volume in pod.get("volumes") or []]
    yield from _duplicates(volumes, (*path, "volumes"), "volume")
    names = []
    for field in ("initContainers", "containers"):
        for index, container in enumerate(pod.get(field) or []):
            here = (*path, field, index)
            names.append(container["name"])
            yield from _check_container(container, here)
            yield from _check_mounts(container, here, volumes)
    yield from _duplicates(names, (*path, "containers"), "container")


def _check_container(container: Obj, path: Path) -> Iterator[Fault]:
    if not container.get("image"):
        message = "is missing; add the image of the program, since a cluster starts no container without one"
        yield Fault((*path, "image"), message, Severity.CLUSTER)
    yield from _check_command(container, path)
    yield from _check_quotes(container, path)
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


def _check_mounts(container: Obj, path: Path, volumes: list[str]) -> Iterator[Fault]:
    for index, mount in enumerate(container.get("volumeMounts") or []):
        if mount["name"] not in volumes:
            known = f"use one of {', '.join(volumes)}" if volumes else "there are none"
            message = f'no volume is named "{mount["name"]}" ({known}); add it to volumes of the pod'
            yield Fault((*path, "volumeMounts", index, "name"), message)


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


def _duplicates(names: list[str], path: Path, what: str) -> Iterator[Fault]:
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        yield Fault(path, f'two {what}s are named "{name}"; rename one')
