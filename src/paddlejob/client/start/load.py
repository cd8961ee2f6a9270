"""Load: what a user names, a job file or a program, as objects."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from paddlejob.api.convert import as_workers, is_job
from paddlejob.api.documents import STDIN
from paddlejob.api.program import Overrides, Program, job_of_program, overridden
from paddlejob.client.files import is_paddle_job, jobs_in, objects_in
from paddlejob.errors import BadArgument, BadFile

Object = dict[str, Any]
CLUSTER_SCOPED = (
    "Namespace", "CustomResourceDefinition", "StorageClass", "PriorityClass", "PersistentVolume", "ClusterRole",
    "ClusterRoleBinding", "Queue",
)  # fmt: skip


@dataclass(frozen=True)
class Loaded:
    """A file or a program that a user names: its objects, or why it has none."""

    source: str
    objects: tuple[Object, ...] = ()
    directory: str = ""
    """Where its program runs on this machine."""
    program: Program | None = None
    error: BadFile | None = None

    @property
    def jobs(self) -> list[Object]:
        return [one for one in self.objects if is_paddle_job(one)]

    def in_namespace(self, default: str) -> Loaded:
        """With a namespace for objects that set none; an empty one changes nothing."""
        return replace(self, objects=tuple(_in_namespace(one, default) for one in self.objects)) if default else self


def load_file(name: str, wanted: Overrides | None = None, batch_jobs: bool = False) -> Loaded:
    """A job file with what the user wants instead; `batch_jobs`: a batch/v1 Job becomes a job with workers."""
    source = STDIN if name == "-" else name
    directory = str((Path() if name == "-" else Path(name).parent).absolute())
    try:
        objects = [as_workers(one).job if batch_jobs and is_job(one) else one for one in objects_in(name)]
        jobs_in(name, objects)
    except BadFile as error:
        return Loaded(source, error=error)
    changed = [_changed(one, wanted) if wanted and is_paddle_job(one) else one for one in objects]
    return Loaded(source, tuple(changed), directory)


def load_program(program: Program, source: str, wanted: Overrides) -> Loaded:
    return Loaded(source, (job_of_program(program, wanted),), str(Path.cwd()), program)


def _changed(document: Object, wanted: Overrides) -> Object:
    spec = document.get("spec")
    if wanted.servers and isinstance(spec, dict) and "ps" not in spec:
        raise BadArgument("servers", "the job has no parameter servers; add spec.ps to its file")
    return document if wanted == Overrides() else overridden(document, wanted)


def _in_namespace(document: Object, default: str) -> Object:
    if not isinstance(document.get("metadata"), dict) or document.get("kind") in CLUSTER_SCOPED:
        return document
    placed = copy.copy(document)  # which still knows its lines
    placed["metadata"] = {"namespace": default, **document["metadata"]}
    return placed
