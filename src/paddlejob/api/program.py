"""A program as a job: the document that a user would have written for it, and changes to one that exists."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paddlejob import contract
from paddlejob.api.template import training_container

Object = dict[str, Any]
GPU = "nvidia.com/gpu"
LAUNCHER = ("python", "-m", "paddle.distributed.launch")
MOUNT_ROOT = "/mnt"
"""Where the volume claims of a program are mounted, each in a directory of its own name."""


@dataclass(frozen=True)
class Overrides:
    """What the command line says about a job; None or empty: what the job file says, or the default."""

    name: str = ""
    workers: int | None = None
    servers: int | None = None
    gpus: int | None = None
    image: str = ""
    queue: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    claims: Mapping[str, str] = field(default_factory=dict)
    """Volume claims by name, and the path in the pods at which each is mounted; empty: where it is, or by its name."""


@dataclass(frozen=True)
class Program:
    """A command line, from which a job is made."""

    command: tuple[str, ...]
    title: str
    """What the job is named after: the file, the module or the command."""
    file: str = ""


def python_file(path: str, arguments: tuple[str, ...] = ()) -> Program:
    runner = "bash" if path.endswith(".sh") else "python"
    return Program((runner, path, *arguments), _stem(path), path)


def python_module(name: str, arguments: tuple[str, ...] = ()) -> Program:
    return Program(("python", "-m", name, *arguments), name)


def shell_command(command: tuple[str, ...]) -> Program:
    scripts = [part for part in command if part.endswith((".py", ".sh"))]
    return Program(command, _stem(scripts[0] if scripts else command[0]))


def _stem(path: str) -> str:
    return re.sub(r"\.[^.]*$", "", path.rpartition("/")[2])


def job_name(title: str, default: str = "job") -> str:
    """A valid name of a job, made from the name of a program."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40].strip("-") or default


def job_of_program(program: Program, wanted: Overrides) -> Object:
    """The job of a program: collective unless there are servers.

    Without servers, its pods end by themselves, so they are kept: their logs are the only record of the run.
    """
    roles = {"ps": wanted.servers or 0, "worker": 1 if wanted.workers is None else wanted.workers}
    command = _launched(program.command) if (wanted.gpus or 0) > 1 else program.command
    kept: Object = {} if wanted.servers else {"cleanPodPolicy": "Never"}
    document: Object = {
        "apiVersion": contract.API_VERSION,
        "kind": contract.KIND,
        "metadata": {"name": job_name(program.title)},
        "spec": kept | {role: _role(count, command) for role, count in roles.items() if count or role == "worker"},
    }
    return overridden(document, wanted)


def _launched(command: tuple[str, ...]) -> tuple[str, ...]:
    """One process per GPU, which Paddle's launcher starts; a command that uses it already stays as it is."""
    is_plain = command[:1] == ("python",) and "paddle.distributed.launch" not in command
    return (*LAUNCHER, *command[1:]) if is_plain else command


def _role(replicas: int, command: tuple[str, ...]) -> Object:
    container: Object = {"name": contract.TRAINING_CONTAINER, "command": list(command)}
    return {"replicas": replicas, "template": {"spec": {"containers": [container]}}}


def overridden(document: Object, wanted: Overrides) -> Object:
    """The job with what the command line says in place of what it said. It need not be valid before or after."""
    document = copy.deepcopy(document)
    metadata, spec = document.setdefault("metadata", {}), document.setdefault("spec", {})
    if wanted.name:
        metadata["name"] = wanted.name
    if wanted.queue:
        _enqueue(metadata, spec, wanted.queue)
    for role, count in (("worker", wanted.workers), ("ps", wanted.servers)):
        if count is not None and role in spec:
            spec[role]["replicas"] = count
    for role in ("ps", "worker", "heter"):
        pod = ((spec.get(role) or {}).get("template") or {}).get("spec") or {}
        if pod.get("containers"):
            _override_pod(pod, role, wanted)
    return document


def _enqueue(metadata: Object, spec: Object, queue: str) -> None:
    """A queue is Kueue's, unless the job asks for Volcano."""
    policy = spec.get("schedulingPolicy")
    is_gang = policy is not None and set(policy) != {"topology"}
    if is_gang or contract.VOLCANO_SCHEDULER in _schedulers(spec):
        spec["schedulingPolicy"] = {**(policy or {}), "queue": queue}
    else:
        metadata["labels"] = {**(metadata.get("labels") or {}), contract.LABEL_QUEUE: queue}


def _schedulers(spec: Object) -> list[str]:
    templates = ((spec.get(role) or {}).get("template") or {} for role in ("ps", "worker", "heter"))
    return [(one.get("spec") or {}).get("schedulerName", "") for one in templates]


def _override_pod(pod: Object, role: str, wanted: Overrides) -> None:
    container = training_container(pod["containers"])
    if wanted.image:
        container["image"] = wanted.image
    if wanted.environment:
        kept = [one for one in container.get("env") or [] if one.get("name") not in wanted.environment]
        container["env"] = kept + [{"name": name, "value": value} for name, value in wanted.environment.items()]
    if wanted.gpus is not None and role == "worker":
        limits = container.setdefault("resources", {}).setdefault("limits", {})
        limits.pop(GPU, None)
        if wanted.gpus:
            limits[GPU] = wanted.gpus
    for name, path in wanted.claims.items():
        _mount(pod, container, name, path)


def _mount(pod: Object, container: Object, name: str, path: str) -> None:
    volumes, mounts = pod.setdefault("volumes", []), container.setdefault("volumeMounts", [])
    of_claim = [one for one in volumes if (one.get("persistentVolumeClaim") or {}).get("claimName") == name]
    if not of_claim:
        of_claim = [{"name": name, "persistentVolumeClaim": {"claimName": name}}]
        volumes += of_claim
    mounted = [mount for mount in mounts if mount.get("name") in {one.get("name") for one in of_claim}]
    if not mounted:
        mounts.append({"name": of_claim[0].get("name"), "mountPath": path or f"{MOUNT_ROOT}/{name}"})
    elif path:
        mounted[0]["mountPath"] = path
