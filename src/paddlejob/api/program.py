"""A program as a job: the document that a user would have written for it, and changes to one that exists."""

from __future__ import annotations

import copy
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from unicodedata import normalize

from paddlejob import contract
from paddlejob.api.devices import DeviceRequest, device_of, device_shared_by
from paddlejob.api.template import training_container

Object = dict[str, Any]
LAUNCHER = ("python", "-m", "paddle.distributed.launch")
MOUNT_ROOT = "/mnt"
"""Where the volume claims of a program are mounted, each in a directory of its own name."""


@dataclass(frozen=True)
class Overrides:
    """What the command line says about a job; None or empty: what the job file says, or the default."""

    name: str = ""
    workers: int | None = None
    servers: int | None = None
    devices: DeviceRequest | None = None
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
    return Program(command, _stem(script_of(command) or (scripts[0] if scripts else command[0])))


def script_of(command: Sequence[str]) -> str:
    """The file that a command of Python runs, directly or through Paddle's launcher; else empty."""
    arguments = iter(command[1:] if re.match(r"python", command[0].rpartition("/")[2]) else ())
    for argument in arguments:
        if argument == "-c" or argument == "-":
            return ""
        if argument == "-m":
            # Options of the launcher may have values; what it runs ends in .py.
            launched = next(arguments, "") == LAUNCHER[-1]
            return next((one for one in arguments if one.endswith(".py")), "") if launched else ""
        if argument in ("-W", "-X"):
            next(arguments, "")
        elif not argument.startswith("-"):
            return argument
    return ""


def _stem(path: str) -> str:
    return re.sub(r"\.[^.]*$", "", path.rpartition("/")[2])


def job_name(title: str, default: str = "job") -> str:
    """A valid name of a job, made from the name of a program.

    Names with letters that it cannot have, such as Chinese ones, differ in a digest, so that each has a job of its own.
    """
    title = normalize("NFC", title)
    plain = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40].strip("-") or default
    if title.isascii():
        return plain
    return f"{plain}-{hashlib.sha256(title.encode(errors='replace')).hexdigest()[:6]}"


def job_of_program(program: Program, wanted: Overrides) -> Object:
    """The job of a program: collective unless there are servers.

    Without servers, its pods end by themselves, so they are kept: their logs are the only record of the run.
    """
    roles = {"ps": wanted.servers or 0, "worker": 1 if wanted.workers is None else wanted.workers}
    has_several = wanted.devices and wanted.devices.count > 1 and not wanted.servers
    command = _launched(program.command) if has_several else program.command
    kept: Object = {} if wanted.servers else {"cleanPodPolicy": "Never"}
    document: Object = {
        "apiVersion": contract.API_VERSION,
        "kind": contract.KIND,
        "metadata": {"name": job_name(program.title), **_original_name(program, wanted)},
        "spec": kept | {role: _role(count, command) for role, count in roles.items() if count or role == "worker"},
    }
    return overridden(document, wanted)


def _original_name(program: Program, wanted: Overrides) -> Object:
    named = wanted.name or program.title.isascii()
    return {} if named else {"annotations": {contract.ANNOTATION_PROGRAM: program.title}}


def _launched(command: tuple[str, ...]) -> tuple[str, ...]:
    """One process per device, which Paddle's launcher starts; a command that uses it already stays as it is."""
    is_plain = command[:1] == ("python",) and "paddle.distributed.launch" not in command
    return launcher_command(command) if is_plain else command


def launcher_command(command: Sequence[str]) -> tuple[str, ...]:
    """A command of Python under Paddle's launcher, which runs files unbuffered and has no -m or -c of its own."""
    rest = [*command[1:]]
    while rest[:1] == ["-u"]:
        del rest[0]
    return (*LAUNCHER, *(command if rest and rest[0].startswith("-") else rest))


def _role(replicas: int, command: tuple[str, ...]) -> Object:
    container: Object = {"name": contract.TRAINING_CONTAINER, "command": [_literal(one) for one in command]}
    return {"replicas": replicas, "template": {"spec": {"containers": [container]}}}


def _literal(value: Any) -> Any:
    """The text for which a container gets this one, as kubelets expand $(NAME) and $$; else left to validation."""
    return re.sub(r"\$(?=[$(])", "$$", value) if isinstance(value, str) else value


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
        given = [{"name": name, "value": _literal(value)} for name, value in wanted.environment.items()]
        container["env"] = kept + given
    if wanted.devices and role == "worker":
        _request_devices(container.setdefault("resources", {}), wanted.devices)
    for name, path in wanted.claims.items():
        _mount(pod, container, name, path)


def _request_devices(resources: Object, wanted: DeviceRequest) -> None:
    """In place of all others; a share, such as memory, stays if it is one of the same kind of device."""
    kept = wanted.device if wanted.count else None
    for amounts in (resources.setdefault("limits", {}), resources.get("requests") or {}):
        for name in list(amounts):
            shared = device_shared_by(name)
            if device_of(name) or (shared and shared is not kept):
                del amounts[name]
    if wanted.count:
        resources["limits"][wanted.resource] = wanted.count


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
