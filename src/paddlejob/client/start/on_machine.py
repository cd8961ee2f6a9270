"""Place on this machine: what each job needs from it, or the reasons why it cannot run here."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from paddlejob.api.types import PaddleJob
from paddlejob.client.files import is_paddle_job
from paddlejob.client.start.check import Checked
from paddlejob.client.start.load import Loaded
from paddlejob.errors import BadArgument, BadInput, NotPossible
from paddlejob.local.machine.resources import Machine
from paddlejob.local.options import RunOptions
from paddlejob.local.preflight import on_the_cpu, preflight
from paddlejob.local.runtime.images import MAPPING_FILE, NO_IMAGE, read_mapping, spellings
from paddlejob.local.runtime.volumes import named
from paddlejob.local.sandbox.supervisor import probe
from paddlejob.local.state.files import DamagedFile
from paddlejob.local.state.store import JobStore, is_inactive
from paddlejob.plan import names
from paddlejob.targets.local.local_target import LocalTarget

Object = dict[str, Any]
USED = ("ConfigMap", "Secret", "PersistentVolume", "PersistentVolumeClaim")
IGNORED = ("PodGroup", "Namespace", "Service", "ServiceAccount", "Role", "RoleBinding", "Queue", "StorageClass")


@dataclass(frozen=True)
class Placed:
    document: Object
    job: PaddleJob
    options: RunOptions
    notes: list[str]


def place(
    checked: Checked,
    options: RunOptions,
    store: JobStore,
    machine: Machine,
    cpu: bool = False,
    no_restart: bool = False,
    again: bool = False,
) -> list[Placed]:
    """Every job with what it needs from this machine; raises NotPossible with all that this machine cannot do.

    `again`: the options are those of a previous run, which lack nothing.
    """
    isolated, why_not = probe()
    placed: list[Placed] = []
    rejections: list[str] = []
    for loaded in checked.loaded:
        own = _options_for(loaded, options, again)
        used = replace(own, objects=tuple(one for one in own.objects if one["kind"] in USED))
        for job_of_file in loaded.jobs:
            document = copy.deepcopy(dict(job_of_file))
            document, ignored = on_the_cpu(document) if cpu else (document, [])
            if no_restart:
                document["spec"]["backoffLimit"] = 0
            job = PaddleJob.model_validate(document)
            found = preflight(job, own, store, machine, isolated, why_not)
            title = "" if again else f": job {names.in_command(job.namespace, job.name)}"
            rejections += [f"{loaded.source}{title}: {error}" for error in found.errors]
            notes = [note for note in found.notes if not (loaded.program and note.startswith(NO_IMAGE))]
            notes = [*(f"ignored because of --cpu: {one}" for one in ignored), *notes, *_ignored_objects(own)]
            placed.append(Placed(document, job, used, [*notes, *_starts_over(store, job)]))
    if not again:
        _reject_unused_options(options, [one.job for one in placed])
    if rejections:
        raise NotPossible("\n".join(rejections))
    return placed


def _options_for(loaded: Loaded, options: RunOptions, again: bool) -> RunOptions:
    if again:
        return options
    others = [one for one in loaded.objects if not is_paddle_job(one)]
    for one in others:
        if one["kind"] not in USED + IGNORED:
            raise BadInput(f"{loaded.source}: a {one['kind']} cannot run on this machine; remove it")
    mapping = read_mapping(Path(loaded.directory, MAPPING_FILE))
    mapped = {name: one for name, one in mapping.items() if not options.images.keys() & {*spellings(name)}}
    return replace(options, folder=loaded.directory, images={**mapped, **options.images}, objects=tuple(others))


def _ignored_objects(options: RunOptions) -> list[str]:
    names = [f"{one['kind']} {one['metadata']['name']}" for one in options.objects if one["kind"] in IGNORED]
    return [f"not used on a single machine: {', '.join(names)}"] if names else []


def _reject_unused_options(options: RunOptions, jobs: list[PaddleJob]) -> None:
    """A misspelt name would train on an empty directory or with the wrong program. A path need not be a volume."""
    pods = [spec.template["spec"] for job in jobs for spec in job.spec.roles.values()]
    volumes = {named(volume) for pod in pods for volume in pod.get("volumes") or []} - {""}
    for name in sorted(options.volumes.keys() - options.host_paths.keys() - volumes):
        known = f"the job has: {', '.join(sorted(volumes))}" if volumes else "the job has no volume to map"
        raise BadArgument("volumes", f"no volume claim has this name; {known}", name)
    containers = [one for pod in pods for one in [*(pod.get("initContainers") or []), *pod["containers"]]]
    images = {str(one["image"]) for one in containers if one.get("image")}
    for name in sorted(options.images.keys() - {spelling for image in images for spelling in spellings(image)}):
        known = f"the job has: {', '.join(sorted(images))}" if images else "the job names no image"
        raise BadArgument("images", f"no container uses this image; {known}", name)


def _starts_over(store: JobStore, job: PaddleJob) -> list[str]:
    """A note for a job that starts over although it could have been resumed."""
    folder = store.folder((job.namespace, job.name))
    try:
        previous = folder.job()
        if previous and not previous.status.finished:
            folder.options()
    except DamagedFile as error:
        return [f"{error}; {job.name} starts over"]
    if not previous or previous.status.finished or not (is_inactive(previous) or not folder.has_runner):
        return []
    command = f"pdj resume {job.name}{LocalTarget(store).flags(job.namespace)}"
    return [f"{job.name} was interrupted and starts over; to continue it instead, use `{command}`"]
