"""The runs of jobs on this machine: the present one of each name, and those before it whose logs are kept."""

from __future__ import annotations

from dataclasses import dataclass

from paddlejob.api.types import PaddleJob
from paddlejob.engine.backend import Key
from paddlejob.errors import BadInput
from paddlejob.local.state.files import DamagedFile
from paddlejob.local.state.history import History, PreviousRun, names_with_history, size_of
from paddlejob.local.state.store import JobFolder
from paddlejob.targets.local.local_target import LocalTarget
from paddlejob.targets.views import DAMAGED


@dataclass(frozen=True)
class Run:
    key: Key
    number: int
    phase: str
    job: PaddleJob | None
    """None if its files are damaged."""
    size: int
    """Bytes on disk."""


def runs(target: LocalTarget, namespace: str | None) -> list[Run]:
    """By name, oldest first."""
    target.require_readable()
    root = target.store.root
    keys = {folder.key for folder in target.store.folders()} | {*names_with_history(root)}
    found: list[Run] = []
    for key in sorted(key for key in keys if namespace in (None, key[0])):
        history, folder = History(root, key), target.store.folder(key)
        found += [_previous(target, key, run) for run in history.runs()]
        if view := target.find(key):
            found.append(Run(key, history.number_of(folder.path), view.phase, view.job, size_of(folder.path)))
    return found


def _previous(target: LocalTarget, key: Key, run: PreviousRun) -> Run:
    try:
        job = JobFolder(target.store.root, key, run.path).job()
    except DamagedFile:
        job = None
    if job is None:
        return Run(key, run.number, DAMAGED, None, run.size)
    return Run(key, run.number, str(job.status.phase) if job.status.finished else "Interrupted", job, run.size)


def clean(target: LocalTarget, namespace: str | None, names: list[str], keep: int) -> list[PreviousRun]:
    """Remove previous runs but the last `keep` of each job; returns what was removed."""
    target.require_readable()
    known = [key for key in names_with_history(target.store.root) if namespace in (None, key[0])]
    for name in names:
        if name not in {key[1] for key in known}:
            raise BadInput(f"job {name} has no previous runs; list them with `pdj list --history`")
    chosen = [key for key in known if not names or key[1] in names]
    return [run for key in chosen for run in History(target.store.root, key).trim(keep, float("inf"))]
