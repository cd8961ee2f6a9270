"""What a training program of several workers can hardly do as the job is written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from paddlejob.api.fault import Fault, Path, Severity
from paddlejob.api.rules import Obj
from paddlejob.api.template import training_container

MPI = re.compile(r"(?<![\w./-])(?:mpirun|mpiexec)(?![\w.-])")
OUTPUT_NAME = re.compile(r"^-{0,2}(?:output|save|checkpoint|ckpt|model)[_-]?(?:dir|path|folder)?$", re.IGNORECASE)
PRIVATE = ("emptyDir", "configMap", "secret", "downwardAPI", "projected", "ephemeral")
"""Volumes that every pod has for itself."""


def check_training(job: Obj) -> Iterator[Fault]:
    for role in ("ps", "worker", "heter"):
        pod = ((job["spec"].get(role) or {}).get("template") or {}).get("spec") or {}
        if not pod.get("containers"):
            continue
        container = training_container(pod["containers"])
        path = ("spec", role, "template", "spec", "containers", pod["containers"].index(container))
        yield from _check_mpi(container, path)
        if role == "worker" and (job["spec"][role].get("replicas") or 1) > 1:
            yield from _check_output(container, pod, path)


def _check_mpi(container: Obj, path: Path) -> Iterator[Fault]:
    for field in ("command", "args"):
        for index, argument in enumerate(container.get(field) or []):
            if isinstance(argument, str) and (found := MPI.search(argument)):
                message = (
                    f"{found[0]} starts processes itself, but every worker is a pod of its own; run the program "
                    "directly, for example [python, -m, paddle.distributed.launch, train.py]"
                )
                yield Fault((*path, field, index), message, Severity.WARNING)


def _check_output(container: Obj, pod: Obj, path: Path) -> Iterator[Fault]:
    """A checkpoint must be there for the next attempt, whose pods may be on other nodes."""
    shared = [mount["mountPath"] for mount in container.get("volumeMounts") or [] if _is_shared(mount["name"], pod)]
    for where, name, target in _outputs(container):
        if target.startswith("/") and not any(_is_below(target, mount) for mount in shared):
            message = (
                f"{name} is {target}, which is on no volume that the workers share; after a restart the checkpoints in "
                "it are gone: mount a persistentVolumeClaim, nfs or hostPath volume there"
            )
            yield Fault((*path, *where), message, Severity.WARNING)


def _outputs(container: Obj) -> Iterator[tuple[Path, str, str]]:
    """Arguments and variables that say where a program saves: where they are, their name and their value."""
    for index, variable in enumerate(container.get("env") or []):
        if OUTPUT_NAME.match(str(variable.get("name") or "")) and isinstance(variable.get("value"), str):
            yield ("env", index), variable["name"], variable["value"]
    for field in ("command", "args"):
        arguments: list[Any] = container.get(field) or []
        for index, argument in enumerate(arguments):
            name, equals, value = str(argument).partition("=")
            following = str(arguments[index + 1]) if index + 1 < len(arguments) else ""
            if name.startswith("-") and OUTPUT_NAME.match(name) and (value if equals else following):
                yield (field, index), name, value if equals else following


def _is_shared(name: str, pod: Obj) -> bool:
    volume: Obj = next((one for one in pod.get("volumes") or [] if one["name"] == name), {})
    return not any(kind in volume for kind in PRIVATE)


def _is_below(path: str, mount: str) -> bool:
    return f"{path.rstrip('/')}/".startswith(f"{mount.rstrip('/')}/")
