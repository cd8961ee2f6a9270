"""Before a job starts: what of it this machine cannot do, and what it does in another way."""

from __future__ import annotations

import copy
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paddlejob.api.types import PaddleJob
from paddlejob.errors import PaddleJobError
from paddlejob.local.machine.resources import Machine, is_accelerator, of_job, written
from paddlejob.local.options import RunOptions
from paddlejob.local.runtime.images import Image, argv, find_image
from paddlejob.local.runtime.volumes import SHARED_MEMORY, find_source
from paddlejob.local.store import Store

Manifest = dict[str, Any]
LAUNCHER = "paddle.distributed.launch"
ON_CPU = "train on the CPU with --cpu"


@dataclass
class Survey:
    rejections: list[str] = field(default_factory=list)
    """Sentences: what is in the way, and what to change."""
    notes: list[str] = field(default_factory=list)
    """What is done in another way than on a cluster; each is said once."""


def survey(
    job: PaddleJob, options: RunOptions, store: Store, machine: Machine, isolated: bool, why_not: str = ""
) -> Survey:
    found = Survey()
    found.rejections += _too_much(job, options, machine)
    for role, spec in job.spec.roles.items():
        pod = spec.template["spec"]
        found.rejections += [f"spec.{role}.template: {words}" for words in _unreachable_nodes(pod, machine)]
        for container in _containers(pod):
            _look_at_image(container, pod, options, found)
        _look_at_volumes(pod, job.namespace, options, store, found)
        if not isolated:
            _look_at_mounts(pod, why_not, found)
            found.rejections += [_no_mount(place, why_not) for place in options.places]
    if _needs_paddle(job, options) and not has_paddle(options.interpreter):
        found.rejections.append(
            f"PaddlePaddle is not installed for {options.interpreter}; install it "
            "(pip install 'paddlejob[paddle]'), or name another Python with --python"
        )
    found.rejections = list(dict.fromkeys(found.rejections))
    found.notes = list(dict.fromkeys(note for note in found.notes if note))
    return found


def _too_much(job: PaddleJob, options: RunOptions, machine: Machine) -> Iterator[str]:
    for resource, asked in of_job(job.spec).items():
        there = machine.has(resource)
        if there is None or asked <= there:
            continue
        if is_accelerator(resource):
            has = f"{there:g}" if there else "none"
            yield f"the job asks for {asked:g} of {resource}, and this machine has {has}; {ON_CPU}"
        elif not options.overcommit:
            yield (
                f"the job asks for {written(resource, asked)} of {resource}, and this machine has "
                f"{written(resource, there)}: it can never start; lower requests or replicas, or run it all the same "
                "with --overcommit"
            )


def _unreachable_nodes(pod: Manifest, machine: Machine) -> Iterator[str]:
    for name, value in (pod.get("nodeSelector") or {}).items():
        if machine.labels.get(name) != value:
            yield f"nodeSelector asks for a node with {name}={value}, and this machine is none; remove it, or {ON_CPU}"
    affinity = (pod.get("affinity") or {}).get("nodeAffinity") or {}
    if affinity.get("requiredDuringSchedulingIgnoredDuringExecution"):
        yield f"nodeAffinity requires certain nodes, and there is one machine only; remove it, or {ON_CPU}"


def _containers(pod: Manifest) -> list[Manifest]:
    return [*(pod.get("initContainers") or []), *pod["containers"]]


def _look_at_image(container: Manifest, pod: Manifest, options: RunOptions, found: Survey) -> None:
    try:
        image = find_image(container.get("image") or "", options)
        found.notes.append(image.note)
        missing = _missing_program(container, image, argv(container, options))
        if missing and not pod.get("initContainers"):
            found.rejections.append(missing)
    except PaddleJobError as error:
        found.rejections.append(str(error))


def _missing_program(container: Manifest, image: Image, command: list[str]) -> str:
    """A script that Python would not find. What a volume would bring is not known yet."""
    script = _script(command)
    if not script or container.get("workingDir") or container.get("volumeMounts"):
        return ""
    if image.directory is None or (image.directory / script).exists():
        return ""
    return (
        f"there is no {script} in {image.directory}, which stands in for image {container.get('image')}; put it there, "
        "or name another directory with --image NAME=DIR"
    )


def _script(command: list[str]) -> str:
    """The file that a Python is told to run, itself or by Paddle's launcher."""
    words = command[1:] if Path(command[0]).name.startswith("python") else []
    if "-c" in words or ("-m" in words and LAUNCHER not in words):
        return ""
    return next((word for word in words if word.endswith(".py")), "")


def _look_at_volumes(pod: Manifest, namespace: str, options: RunOptions, store: Store, found: Survey) -> None:
    for volume in pod.get("volumes") or []:
        try:
            found.notes.append(find_source(volume, namespace, Path(), options, store).note)
        except PaddleJobError as error:
            found.rejections.append(str(error))


def _look_at_mounts(pod: Manifest, why_not: str, found: Survey) -> None:
    for container in _containers(pod):
        for mount in container.get("volumeMounts") or []:
            if mount["mountPath"].rstrip("/") == SHARED_MEMORY:
                found.notes.append(f"{SHARED_MEMORY} is the machine's own: no mount namespace here ({why_not})")
            else:
                found.rejections.append(_no_mount(f"mountPath {mount['mountPath']}", why_not))


def _no_mount(place: str, why_not: str) -> str:
    return (
        f"{place} cannot be mounted: this machine permits no mount namespace "
        f"({why_not}); run as root, permit user namespaces, or use the directory itself instead of a mount"
    )


def _needs_paddle(job: PaddleJob, options: RunOptions) -> bool:
    """Whether it is known in advance: an example of ours, or Paddle's launcher."""
    for spec in job.spec.roles.values():
        for container in spec.template["spec"]["containers"]:
            words = " ".join([*(container.get("command") or []), *(container.get("args") or [])])
            try:
                bundled = find_image(container.get("image") or "", options).bundled
            except PaddleJobError:
                continue
            if (bundled and (not words or "train" in words)) or "paddle.distributed" in words:
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
    """The job without accelerators and without what chooses a node, and what was left out."""
    changed = copy.deepcopy(document)
    left_out: list[str] = []
    for role in ("ps", "worker", "heter"):
        pod = (changed["spec"].get(role) or {}).get("template", {}).get("spec") or {}
        for container in pod.get("containers") or []:
            for side in (container.get("resources") or {}).values():
                for resource in [name for name in side if is_accelerator(name)] if isinstance(side, dict) else []:
                    left_out.append(f"{role}: {resource} {side.pop(resource)}")
        if pod.pop("nodeSelector", None):
            left_out.append(f"{role}: nodeSelector")
        if (pod.get("affinity") or {}).pop("nodeAffinity", None):
            left_out.append(f"{role}: nodeAffinity")
    return changed, left_out
