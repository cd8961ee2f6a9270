"""Storing the jobs of a run on this machine; previous runs of the same names are kept within limits."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from paddlejob.client.describe.humanize import size
from paddlejob.client.settings import read_settings, settings_file
from paddlejob.local.options import RunOptions
from paddlejob.local.state.history import History
from paddlejob.local.state.store import JobStore
from paddlejob.plan import names

if TYPE_CHECKING:
    from paddlejob.local.runner import Held

Object = dict[str, Any]


def begin(store: JobStore, jobs: list[tuple[Object, RunOptions]]) -> tuple[Held, list[str]]:
    """Store all jobs, or none if one of them cannot be stored; also returns notes about logs that were removed."""
    settings = read_settings()
    held: Held = []
    notes: list[str] = []
    try:
        for document, options in jobs:
            held.append(store.begin(document, options, time.time()))
            notes += _trim(store, held[-1][0].key, settings.keep_runs, settings.most_bytes)
    except BaseException:
        for folder, lock in held:
            folder.remove()
            lock.release()
        raise
    return held, notes


def _trim(store: JobStore, key: tuple[str, str], most: int, most_bytes: float) -> list[str]:
    """A number of runs is what the user expects; a limit of size that removes the last run is worth a note."""
    history = History(store.root, key)
    removed = history.trim(most, most_bytes)
    kept = history.runs()
    if not most or not removed or (kept and kept[-1].number > removed[-1].number):
        return []
    return [
        f"the logs of the last run of {names.in_command(*key)} ({size(removed[-1].size)}) were removed, because "
        f"previous runs of a job keep at most {size(most_bytes)}; to keep more, set `keep_runs_size` in "
        f"{settings_file()}"
    ]
