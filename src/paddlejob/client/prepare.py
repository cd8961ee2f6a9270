"""From files on the command line to jobs that can run on this machine, or the reasons why they cannot run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from paddlejob.api.convert import as_workers, is_job
from paddlejob.api.documents import STDIN
from paddlejob.api.types import PaddleJob
from paddlejob.client.file_check import check_objects
from paddlejob.client.files import existing_directory, is_paddle_job, jobs_in
from paddlejob.client.given import Given
from paddlejob.errors import BadInput, InvalidJob, NotPossible
from paddlejob.local.machine.resources import Machine
from paddlejob.local.options import RunOptions
from paddlejob.local.preflight import on_the_cpu, preflight
from paddlejob.local.runtime.images import MAPPING_FILE, NO_IMAGE, read_mapping, spellings
from paddlejob.local.runtime.volumes import named
from paddlejob.local.sandbox.supervisor import probe
from paddlejob.local.state.store import Store
from paddlejob.plan import names

Object = dict[str, Any]
USED = ("ConfigMap", "Secret", "PersistentVolume", "PersistentVolumeClaim")
IGNORED = ("PodGroup", "Namespace", "Service", "ServiceAccount", "Role", "RoleBinding", "Queue", "StorageClass")


@dataclass(frozen=True)
class Prepared:
    document: Object
    job: PaddleJob
    options: RunOptions
    notes: list[str]
    warnings: list[str]


def prepare(
    chosen: Given,
    options: RunOptions,
    store: Store,
    machine: Machine,
    namespace: str = "",
    cpu: bool = False,
    no_restart: bool = False,
) -> list[Prepared]:
    """Every job that the command names, checked; raises InvalidJob or NotPossible with all reasons at once."""
    isolated, why_not = probe()
    prepared: list[Prepared] = []
    rejections: list[str] = []
    for name, objects, warnings in _checked_files(chosen, namespace):
        own = _options_for(name, options, others=[one for one in objects if not is_paddle_job(one)])
        for document in filter(is_paddle_job, objects):
            document, ignored = on_the_cpu(document) if cpu else (document, [])
            if no_restart:
                document["spec"]["backoffLimit"] = 0
            job = PaddleJob.model_validate(document)
            checked = preflight(job, own, store, machine, isolated, why_not)
            title = names.in_command(job.namespace, job.name)
            rejections += [f"{name}: job {title}: {error}" for error in checked.errors]
            own_notes = [note for note in checked.notes if not (chosen.program and note.startswith(NO_IMAGE))]
            notes = [*(f"ignored because of --cpu: {one}" for one in ignored), *own_notes, *_ignored_objects(own)]
            prepared.append(Prepared(document, job, replace(own, objects=_used_objects(own)), notes, warnings))
    _reject_unused_options(options, [one.job for one in prepared])
    if rejections:
        raise NotPossible("\n".join(rejections))
    _reject_duplicates(prepared)
    return prepared


def _checked_files(chosen: Given, namespace: str) -> list[tuple[str, list[Object], list[str]]]:
    """The objects of each file and the warnings about them; raises InvalidJob with the errors of all files."""
    checked: list[tuple[str, list[Object], list[str]]] = []
    errors: list[str] = []
    for name in chosen.names:
        objects = [as_workers(one).job if is_job(one) else one for one in chosen.load(name)]
        _set_namespace(name, jobs_in(name, objects), namespace)
        report = check_objects(STDIN if name == "-" else name, objects, cluster=False)
        errors += report.lines(report.errors)
        checked.append((name, objects, report.lines(report.warnings)))
    if errors:
        raise InvalidJob(errors)
    return checked


def _options_for(name: str, options: RunOptions, others: list[Object]) -> RunOptions:
    folder = Path(options.folder) if options.folder else Path() if name == "-" else Path(name).parent
    for one in others:
        if one.get("kind") not in USED + IGNORED:
            raise BadInput(f"{name}: cannot run a {one['kind']} on this machine; remove it")
    mapping = read_mapping(folder / MAPPING_FILE)
    mapped = {name: one for name, one in mapping.items() if not options.images.keys() & {*spellings(name)}}
    images = {**mapped, **options.images}
    return replace(options, folder=str(folder.absolute()), images=images, objects=tuple(others))


def _set_namespace(name: str, jobs: list[Object], namespace: str) -> None:
    for job in jobs:
        metadata = job.get("metadata")
        if not namespace or not isinstance(metadata, dict):
            continue
        own = metadata.setdefault("namespace", namespace)
        if own != namespace:
            raise BadInput(f"{name}: the job is in namespace {own}, not {namespace}; change metadata.namespace or -n")


def _used_objects(options: RunOptions) -> tuple[Object, ...]:
    return tuple(one for one in options.objects if one["kind"] in USED)


def _ignored_objects(options: RunOptions) -> list[str]:
    names = [f"{one['kind']} {one['metadata']['name']}" for one in options.objects if one["kind"] in IGNORED]
    return [f"not used on a single machine: {', '.join(names)}"] if names else []


def _reject_unused_options(options: RunOptions, jobs: list[PaddleJob]) -> None:
    """A misspelt name would train on an empty directory or with the wrong program. A path need not be a volume."""
    pods = [spec.template["spec"] for job in jobs for spec in job.spec.roles.values()]
    volumes = {named(volume) for pod in pods for volume in pod.get("volumes") or []} - {""}
    for name in sorted(options.volumes.keys() - options.host_paths.keys() - volumes):
        known = f"the job has: {', '.join(sorted(volumes))}" if volumes else "the job has no volume to map"
        raise BadInput(f"--volume {name}: no volume claim has this name; {known}")
    containers = [one for pod in pods for one in [*(pod.get("initContainers") or []), *pod["containers"]]]
    images = {str(one["image"]) for one in containers if one.get("image")}
    for name in sorted(options.images.keys() - {spelling for image in images for spelling in spellings(image)}):
        known = f"the job has: {', '.join(sorted(images))}" if images else "the job names no image"
        raise BadInput(f"--image {name}: no container uses this image; {known}")


def _reject_duplicates(prepared: list[Prepared]) -> None:
    keys: set[tuple[str, str]] = set()
    for one in prepared:
        key = (one.job.namespace, one.job.name)
        if key in keys:
            raise BadInput(f"two jobs are named {one.job.name}; rename one, or run the files one after the other")
        keys.add(key)


def pairs(option: str, values: list[str]) -> dict[str, str]:
    """The values of a repeatable option NAME=DIR; every directory must exist."""
    directories = {}
    for value in values:
        name, equals, directory = value.rpartition("=")
        if not equals or not name or not directory:
            raise BadInput(f"{option} {value}: must have the form NAME=DIR")
        directories[name] = existing_directory(f"{option} {value}", directory)
    return directories
