"""Stages data where it is read: each file appears complete or not at all, and .pdj-staged.json once all are there."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from threading import Lock
from time import monotonic

from paddlejob.data.copying import Copier
from paddlejob.data.drivers.discovery import find
from paddlejob.data.drivers.errors import translate_errors
from paddlejob.data.drivers.resolve import filesystem
from paddlejob.data.drivers.source import Source
from paddlejob.data.drivers.urls import redact
from paddlejob.data.manifest import MANIFEST, STAGED, Manifest, Staged, StagedFile
from paddlejob.data.ownership import blocking_directories, check_not_foreign, read_owned
from paddlejob.data.preconditions import check_overlap, stage_writes_to
from paddlejob.data.progress import Meter, Progress, silent
from paddlejob.data.resume import matches
from paddlejob.data.stores.base import Store, complete
from paddlejob.data.stores.factory import open_store
from paddlejob.errors import NotPossible

_JOURNAL_SECONDS = 2.0


def stage(source: str, dest: str, *, overwrite: bool = False, progress: Progress = silent) -> Staged:
    """Copy a file, the matches of a glob or a tree into the directory `dest`; called again after a kill, resume.

    A part of a split is verified against the manifest of the split. Files that an earlier run staged and that the
    source no longer has are removed.
    """
    sources = find(source)
    check_overlap(source, sources, dest, stage_writes_to)
    expected = _expected_checksums(source)
    with open_store(dest, durable=False) as store:
        owned, wanted = read_owned(store), {found.name for found in sources}
        if not overwrite:
            check_not_foreign(store, wanted, owned)
        blocking = blocking_directories(store, wanted, owned)
        kept = _unchanged(store, sources, owned.known, progress)
        missing = [found for found in sources if found.name not in kept]
        store.begin()
        # Recorded before they are copied: after a kill the next run knows that these files are its own.
        names = [found.name for found in missing]
        store.rewrite_journal([{"files": [asdict(file) for file in kept.values()], "bringing": names}])
        for name in owned.stale(wanted):
            store.remove(name)
        for name in blocking:
            store.remove_empty(name)
        copied = _copy(store, missing, expected, progress)
        files = {**kept, **{file.name: file for file in copied}}
        staged = Staged(redact(source), tuple(files[found.name] for found in sources), tuple(kept))
        complete(store, STAGED, staged.as_json())
        return staged


def _unchanged(
    store: Store, sources: Sequence[Source], known: dict[str, StagedFile], progress: Progress
) -> dict[str, StagedFile]:
    unchanged = [s.name for s in sources if s.name in known and known[s.name].mark == _mark(s)]
    existing = store.find_files(unchanged)
    candidates = [known[name] for name in unchanged if name in existing]
    meter = Meter(progress, "checking", sum(file.bytes for file in candidates))
    return {file.name: file for file in candidates if matches(existing[file.name], file.bytes, file.sha256, meter)}


def _copy(store: Store, sources: Sequence[Source], expected: dict[str, str], progress: Progress) -> list[StagedFile]:
    sizes = [source.size for source in sources]
    meter = Meter(progress, "writing", None if None in sizes else sum(size or 0 for size in sizes))
    # Remote drivers need not be thread-safe.
    all_local = store.is_local and all(source.is_local for source in sources)
    journal = _BatchedJournal(store)

    def copy(number: int) -> StagedFile:
        file = _copy_one(store, sources[number], expected, copier, meter)
        journal.add(file)
        return file

    with Copier(2 if all_local and len(sources) > 1 else 1) as copier:
        copied = copier.map(copy, range(len(sources)))
    return [copied[number] for number in range(len(sources))]


class _BatchedJournal:
    """Records staged files every few seconds: with many small files, an entry for each would take most of the time."""

    def __init__(self, store: Store) -> None:
        self._store, self._lock = store, Lock()
        self._new: list[StagedFile] = []
        self._last = monotonic()

    def add(self, file: StagedFile) -> None:
        with self._lock:
            self._new.append(file)
            if monotonic() - self._last > _JOURNAL_SECONDS:
                self._store.append_journal({"files": [asdict(file) for file in self._new]})
                self._new, self._last = [], monotonic()


def _copy_one(store: Store, source: Source, expected: dict[str, str], copier: Copier, meter: Meter) -> StagedFile:
    with store.draft(source.name) as sink:
        size, sha256 = copier.copy(source.chunks(), sink, meter)
    source.check_unchanged()
    if expected.get(source.name, sha256) != sha256:
        raise NotPossible(f"{source.shown}: does not match the {MANIFEST} of its split; split the data again")
    store.publish(source.name)
    return StagedFile(source.name, size, sha256, _mark(source))


def _mark(source: Source) -> str:
    return f"{source.size}:{source.mark}"


def _expected_checksums(source: str) -> dict[str, str]:
    """Return the checksums of a part, if the source is DEST/<part>/data of a complete split."""
    fs, path = filesystem(source)
    matched = re.fullmatch(r"(.*)/(\d+)/data/?", path)
    if not matched:
        return {}
    try:
        with translate_errors(redact(source)):
            content = fs.cat_file(f"{matched[1]}/{MANIFEST}")
        manifest = Manifest.from_json(json.loads(content))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return {}
    return {file.name: file.sha256 for part in manifest.parts if part.part == int(matched[2]) for file in part.files}
