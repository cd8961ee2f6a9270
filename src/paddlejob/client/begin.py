"""Storing the jobs of a run on this machine; former runs of the same names are kept within limits."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from paddlejob.client.describe.humanize import size
from paddlejob.client.prepare import Prepared
from paddlejob.client.settings import read_settings, settings_file
from paddlejob.local.state.history import History
from paddlejob.local.state.store import Store
from paddlejob.plan import names

if TYPE_CHECKING:
    from paddlejob.local.runner import Held


def begin(store: Store, prepared: list[Prepared]) -> tuple[Held, list[str]]:
    """Store all jobs, or none if one of them cannot be stored; also returns notes about logs that were removed."""
    settings = read_settings()
    held: Held = []
    notes: list[str] = []
    try:
        for one in prepared:
            held.append(store.begin(one.document, one.options, time.time()))
            notes += _trim(store, held[-1][0].key, settings.keep_runs, settings.most_bytes)
    except BaseException:
        for folder, lock in held:
            folder.remove()
            lock.release()
        raise
    return held, notes


def _trim(store: Store, key: tuple[str, str], most: int, most_bytes: float) -> list[str]:
    """A number of runs is what the user expects; a limit of size that removes the last run is worth a note."""
    history = History(store.root, key)
    removed = history.trim(most, most_bytes)
    if not most or not removed or history.runs():
        return []
    return [
        f"the logs of the last run of {names.in_command(*key)} ({size(removed[-1].size)}) were removed, because former "
        f"runs of a job keep at most {size(most_bytes)}; to keep more, set `keep_runs_size` in {settings_file()}"
    ]
