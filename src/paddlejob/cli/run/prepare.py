"""From files on the command line to jobs that can run on this machine, or the reasons why they cannot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from paddlejob.api.convert import as_workers, is_job
from paddlejob.api.types import PaddleJob
from paddlejob.api.validate import parse
from paddlejob.cli.files import is_paddle_job, no_job_in, objects_in
from paddlejob.errors import BadInput, NotPossible
from paddlejob.local.machine.resources import Machine
from paddlejob.local.options import RunOptions
from paddlejob.local.preflight import on_the_cpu, preflight
from paddlejob.local.runtime.images import MAPPING_FILE, read_mapping, spellings
from paddlejob.local.runtime.volumes import named
from paddlejob.local.sandbox.supervisor import probe
from paddlejob.local.store import Store

Object = dict[str, Any]
READ = ("ConfigMap", "Secret", "PersistentVolume", "PersistentVolumeClaim")
NOT_NEEDED = ("PodGroup", "Namespace", "Service", "ServiceAccount", "Role", "RoleBinding", "Queue", "StorageClass")


@dataclass(frozen=True)
class Prepared:
    document: Object
    job: PaddleJob
    options: RunOptions
    notes: list[str]


def prepare(
    files: list[str], options: RunOptions, store: Store, machine: Machine, namespace: str = "", cpu: bool = False
) -> list[Prepared]:
    """Every job of the files, checked. All reasons against any of them are told at once."""
    isolated, why_not = probe()
    found: list[Prepared] = []
    rejections: list[str] = []
    for name in files:
        objects = [as_workers(one).job if is_job(one) else one for one in objects_in(name)]
        own = _options_for(name, options, others=[one for one in objects if not is_paddle_job(one)])
        for document in _jobs_of(name, objects, namespace):
            document, left_out = on_the_cpu(document) if cpu else (document, [])
            job = parse(document, name)
            seen = preflight(job, own, store, machine, isolated, why_not)
            rejections += [f"{name}: job {job.name}: {words}" for words in seen.errors]
            notes = [*(f"left out for --cpu: {words}" for words in left_out), *seen.notes, *_not_needed(own)]
            found.append(Prepared(document, job, replace(own, objects=_read(own)), notes))
    _refuse_unused(options, [one.job for one in found])
    if rejections:
        raise NotPossible("\n".join(rejections))
    _refuse_twins(found)
    return found


def _options_for(name: str, options: RunOptions, others: list[Object]) -> RunOptions:
    folder = Path() if name == "-" else Path(name).parent
    for one in others:
        if one.get("kind") not in READ + NOT_NEEDED:
            raise BadInput(f"{name}: cannot run a {one.get('kind') or 'document without kind'} here; remove it")
        if not (one.get("metadata") or {}).get("name"):
            raise BadInput(f"{name}: a {one['kind']} has no metadata.name; add it")
    mapping = read_mapping(folder / MAPPING_FILE)
    unnamed = {name: one for name, one in mapping.items() if not options.images.keys() & {*spellings(name)}}
    images = {**unnamed, **options.images}
    return replace(options, folder=str(folder.absolute()), images=images, objects=tuple(others))


def _jobs_of(name: str, objects: list[Object], namespace: str) -> list[Object]:
    jobs = [one for one in objects if is_paddle_job(one)]
    if not jobs:
        raise no_job_in(name, objects)
    for job in jobs:
        metadata = job.get("metadata")
        if not namespace or not isinstance(metadata, dict):
            continue
        given = metadata.setdefault("namespace", namespace)
        if given != namespace:
            raise BadInput(f"{name}: the job is of namespace {given}, not {namespace}; change one of them")
    return jobs


def _read(options: RunOptions) -> tuple[Object, ...]:
    return tuple(one for one in options.objects if one["kind"] in READ)


def _not_needed(options: RunOptions) -> list[str]:
    names = [f"{one['kind']} {one['metadata']['name']}" for one in options.objects if one["kind"] in NOT_NEEDED]
    return [f"not needed on one machine: {', '.join(names)}"] if names else []


def _refuse_unused(options: RunOptions, jobs: list[PaddleJob]) -> None:
    """What is misspelt would train on an empty directory, or the wrong program. A path need not be a volume."""
    pods = [spec.template["spec"] for job in jobs for spec in job.spec.roles.values()]
    volumes = {named(volume) for pod in pods for volume in pod.get("volumes") or []} - {""}
    for name in sorted(options.volumes.keys() - options.host_paths.keys() - volumes):
        there = f"there are {', '.join(sorted(volumes))}" if volumes else "no volume of the job can be a directory"
        raise BadInput(f"--volume {name}: there is no claim of that name; {there}")
    containers = [one for pod in pods for one in [*(pod.get("initContainers") or []), *pod["containers"]]]
    images = {str(one.get("image") or "") for one in containers}
    for name in sorted(options.images.keys() - {spelling for image in images for spelling in spellings(image)}):
        raise BadInput(f"--image {name}: no container has that image; there are {', '.join(sorted(images))}")


def _refuse_twins(found: list[Prepared]) -> None:
    seen: set[tuple[str, str]] = set()
    for one in found:
        key = (one.job.namespace, one.job.name)
        if key in seen:
            raise BadInput(f"two jobs are named {one.job.name}; rename one, or run their files one after the other")
        seen.add(key)


def pairs(option: str, given: list[str]) -> dict[str, str]:
    """NAME=DIR, several times. The directory must be there."""
    found = {}
    for one in given:
        name, equals, directory = one.rpartition("=")
        if not equals or not name or not directory:
            raise BadInput(f"{option} {one}: write it as NAME=DIR")
        path = Path(directory).expanduser()
        if not path.is_dir():
            raise BadInput(f"{option} {one}: {directory} is not a directory")
        found[name] = str(path.absolute())
    return found
