"""Checks before a run: what this machine cannot do for a job, and what it does differently from a cluster."""

from __future__ import annotations

import copy
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paddlejob.api.devices import BY_KIND
from paddlejob.api.program import script_of
from paddlejob.api.quantity import format_quantity, of_job, of_replicas
from paddlejob.api.types import DeviceKind, PaddleJob
from paddlejob.errors import PaddleJobError
from paddlejob.local.machine.gpu_locks import is_free
from paddlejob.local.machine.resources import Machine, kind_of
from paddlejob.local.options import RunOptions
from paddlejob.local.runtime.env import hidden_by_noexec, temporary_notes
from paddlejob.local.runtime.images import Image, argv, find_image
from paddlejob.local.runtime.volumes import SHARED_MEMORY, find_source, named
from paddlejob.local.sandbox.mounts import AT_A_FILE
from paddlejob.local.state.store import JobStore
from paddlejob.local.template_checks import containers_of, environment_errors, not_honoured
from paddlejob.plan.size import fewest_slots, is_resizable

Manifest = dict[str, Any]
ON_CPU = "train on the CPU with --cpu"


@dataclass
class PreflightResult:
    errors: list[str] = field(default_factory=list)
    """Why the job cannot run here, each with the remedy."""
    notes: list[str] = field(default_factory=list)
    """What is done differently from a cluster; each once."""


def preflight(
    job: PaddleJob, options: RunOptions, store: JobStore, machine: Machine, isolated: bool, why_not: str = ""
) -> PreflightResult:
    found = PreflightResult()
    found.errors += _insufficient(job, options, machine)
    if not found.errors:
        found.notes += _smaller(job, options, machine)
    found.notes += _device_notes(job, options, machine)
    found.notes += temporary_notes(options)
    if not job.spec.is_ours:
        found.notes.append(f"No effect on one machine, only on a cluster: managedBy {job.spec.managedBy}.")
    for role, spec in job.spec.roles.items():
        pod = spec.template["spec"]
        found.errors += [f"spec.{role}.template: {error}" for error in _unmatched_nodes(pod, machine)]
        found.errors += [f"spec.{role}.template: {error}" for error in environment_errors(pod, options)]
        for container in containers_of(pod):
            _check_image(container, pod, options, found)
        _check_volumes(pod, job.namespace, options, store, found)
        if isolated:
            found.errors += _mounts_at_files(pod)
        else:
            _check_mounts(pod, why_not, found)
            found.errors += [_no_mount(path, why_not) for path in options.host_paths]
    ignored = {field for spec in job.spec.roles.values() for field in not_honoured(spec.template["spec"], isolated)}
    if ignored:
        found.notes.append(f"No effect on one machine, only on a cluster: {', '.join(sorted(ignored))}.")
    found.errors += _missing_python(job, options, store)
    found.errors = list(dict.fromkeys(found.errors))
    found.notes = list(dict.fromkeys(note for note in found.notes if note))
    return found


def _missing_python(job: PaddleJob, options: RunOptions, store: JobStore) -> Iterator[str]:
    if not Path(options.interpreter).exists() and _uses_python(job, options):
        yield (
            f"the Python {options.interpreter} does not exist; activate another virtual environment, or choose a "
            "Python with --python"
        )
    elif hidden_by_noexec(options.interpreter, store) and _uses_python(job, options):
        yield (
            f"{store.root} is on a file system without programs (noexec), so `python` would not be "
            f"{options.interpreter}; set PADDLEJOB_STATE to a directory on another one"
        )
    elif _needs_paddle(job, options) and not has_paddle(options.interpreter):
        yield (
            f"PaddlePaddle is not installed for {options.interpreter}; install it "
            "(pip install 'paddlejob[paddle]'), or choose another Python with --python"
        )


def _insufficient(job: PaddleJob, options: RunOptions, machine: Machine) -> Iterator[str]:
    for resource, requested in of_replicas(job.spec, fewest_slots(job)).items():
        capacity = machine.capacity(resource)
        if capacity is None or requested <= capacity:
            continue
        amounts = (
            f"insufficient {resource}: the job requests {format_quantity(resource, requested)} and this machine has "
            f"{format_quantity(resource, capacity) if capacity else 'none'}"
        )
        if "/" in resource:
            is_nvidia = kind_of(resource) == DeviceKind.GPU
            reason = f" ({machine.gpu_note})" if machine.gpu_note and is_nvidia else ""
            yield f"{amounts}{reason}; {ON_CPU}"
        elif not options.overcommit:
            yield f"{amounts}; lower requests or replicas, or run it anyway with --overcommit"


def _smaller(job: PaddleJob, options: RunOptions, machine: Machine) -> Iterator[str]:
    """An elastic job that this machine can run, but not with all its workers."""
    if options.overcommit or not is_resizable(job):
        return
    for resource, requested in of_job(job.spec).items():
        capacity = machine.capacity(resource)
        if capacity is not None and requested > capacity:
            amounts = (
                f"{format_quantity(resource, requested)} and this machine has {format_quantity(resource, capacity)}"
            )
            yield f"{resource}: the job requests {amounts}; it is elastic and trains with the workers that fit."


def _device_notes(job: PaddleJob, options: RunOptions, machine: Machine) -> Iterator[str]:
    for resource, requested in of_job(job.spec).items():
        kind = kind_of(resource)
        if not kind:
            continue
        if kind == DeviceKind.GPU:
            yield machine.gpu_note
        visible = BY_KIND[DeviceKind(kind)].visible
        for role, spec in job.spec.roles.items():
            for container in containers_of(spec.template["spec"]):
                if any(one["name"] == visible for one in container.get("env") or []):
                    yield f"spec.{role}: the job file sets {visible}, which overrides the device assignment; remove it"
        present = machine.of_kind(kind)
        in_use = sum(not is_free(gpu) for gpu in present)
        if options.overcommit and len(present) - in_use < requested <= len(present):
            yield (
                f"{resource}: {in_use} of {len(present)} devices are in use by other jobs and are shared because of "
                "--overcommit; without it, the job waits for free ones"
            )


def _unmatched_nodes(pod: Manifest, machine: Machine) -> Iterator[str]:
    for name, value in (pod.get("nodeSelector") or {}).items():
        if machine.labels.get(name) != value:
            yield f"nodeSelector {name}={value} does not match this machine; remove it, or {ON_CPU}"
    affinity = (pod.get("affinity") or {}).get("nodeAffinity") or {}
    if affinity.get("requiredDuringSchedulingIgnoredDuringExecution"):
        yield f"required nodeAffinity is not supported on one machine; remove it, or {ON_CPU}"


def _check_image(container: Manifest, pod: Manifest, options: RunOptions, found: PreflightResult) -> None:
    try:
        image = find_image(container.get("image") or "", options)
        found.notes.append(image.note)
        missing = _missing_program(container, image, argv(container, options))
        if missing and not pod.get("initContainers"):
            found.errors.append(missing)
    except PaddleJobError as error:
        found.errors.append(str(error))


def _missing_program(container: Manifest, image: Image, command: list[str]) -> str:
    """A script that Python would not find. The content of volumes is not known yet."""
    script = script_of(command)
    if not script.endswith(".py") or container.get("workingDir") or container.get("volumeMounts"):
        return ""
    if image.directory is None or (image.directory / script).exists():
        return ""
    return (
        f"{script} not found in {image.directory}, the directory used for image {container.get('image')}; "
        "put it there, or choose another directory with --image NAME=DIR"
    )


def _check_volumes(pod: Manifest, namespace: str, options: RunOptions, store: JobStore, found: PreflightResult) -> None:
    for volume in pod.get("volumes") or []:
        try:
            found.notes.append(find_source(volume, namespace, Path(), options, store).note)
        except PaddleJobError as error:
            found.errors.append(str(error))


def _mounts_at_files(pod: Manifest) -> Iterator[str]:
    """What is below another mount is not known yet."""
    files = {one["name"] for one in pod.get("volumes") or [] if _is_file(Path("/", named(one)))}
    for container in containers_of(pod):
        mounts = container.get("volumeMounts") or []
        targets = {Path("/", mount["mountPath"]) for mount in mounts}
        for mount in mounts:
            whole = mount["name"] not in files and not (mount.get("subPath") or mount.get("subPathExpr"))
            target = Path("/", mount["mountPath"])
            if whole and _is_file(target) and targets.isdisjoint(target.parents):
                yield AT_A_FILE.format(path=target)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False  # in a directory of another user's


def _check_mounts(pod: Manifest, why_not: str, found: PreflightResult) -> None:
    for container in containers_of(pod):
        for mount in container.get("volumeMounts") or []:
            if mount["mountPath"].rstrip("/") == SHARED_MEMORY:
                found.notes.append(f"{SHARED_MEMORY} is shared with the machine: no mount namespaces here ({why_not}).")
            else:
                found.errors.append(_no_mount(f"mountPath {mount['mountPath']}", why_not))


def _no_mount(path: str, why_not: str) -> str:
    return (
        f"{path} cannot be mounted: mount namespaces are not permitted here ({why_not}). In Docker start the container "
        "with --cap-add SYS_ADMIN --security-opt apparmor=unconfined --security-opt systempaths=unconfined; elsewhere "
        "run as root or permit user namespaces (sysctl user.max_user_namespaces=10000, "
        "kernel.unprivileged_userns_clone=1 and kernel.apparmor_restrict_unprivileged_userns=0, as far as they exist); "
        "or use the directory itself instead of a mount"
    )


def _uses_python(job: PaddleJob, options: RunOptions) -> bool:
    """Whether a command of the job names Python, as far as commands tell."""
    containers = (one for spec in job.spec.roles.values() for one in containers_of(spec.template["spec"]))
    commands = [" ".join([*(one.get("command") or []), *(one.get("args") or [])]) for one in containers]
    return any("python" in command for command in commands) or _needs_paddle(job, options)


def _needs_paddle(job: PaddleJob, options: RunOptions) -> bool:
    """Whether the job runs one of our examples or Paddle's launcher, which always need it."""
    for spec in job.spec.roles.values():
        for container in spec.template["spec"]["containers"]:
            command = " ".join([*(container.get("command") or []), *(container.get("args") or [])])
            try:
                bundled = find_image(container.get("image") or "", options).bundled
            except PaddleJobError:
                continue
            if (bundled and (not command or "train" in command)) or "paddle.distributed" in command:
                return True
    return False


def has_paddle(interpreter: str) -> bool:
    if interpreter == sys.executable:
        return importlib.util.find_spec("paddle") is not None
    question = "import importlib.util, sys; sys.exit(importlib.util.find_spec('paddle') is None)"
    try:
        return subprocess.run([interpreter, "-c", question], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def on_the_cpu(document: Manifest) -> tuple[Manifest, list[str]]:
    """The job without devices, node selectors and node affinity, and a list of what was removed."""
    changed = copy.deepcopy(document)
    changed["spec"]["device"] = DeviceKind.CPU.value
    removed: list[str] = []
    for role in ("ps", "worker", "heter"):
        pod = (changed["spec"].get(role) or {}).get("template", {}).get("spec") or {}
        for container in pod.get("containers") or []:
            for side in (container.get("resources") or {}).values():
                for resource in [name for name in side if "/" in name] if isinstance(side, dict) else []:
                    removed.append(f"{role}: {resource} {side.pop(resource)}")
            (container.get("resources") or {}).pop("claims", None)
        removed += [f"{role}: {field}" for field in ("resourceClaims", "nodeSelector") if pod.pop(field, None)]
        if (pod.get("affinity") or {}).pop("nodeAffinity", None):
            removed.append(f"{role}: nodeAffinity")
    return changed, removed
