"""Bringing data to where it is read: every file whole or not there, and .pdj-staged.json when all are."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from threading import Lock
from time import monotonic
from typing import Any

from paddlejob.data.copying import Copier, copier
from paddlejob.data.drivers import filesystem, reached
from paddlejob.data.earlier import same
from paddlejob.data.manifest import NAME, Manifest
from paddlejob.data.progress import Meter, Progress, silent
from paddlejob.data.refusals import at_its_name, refuse_overlap
from paddlejob.data.sources import STAGED_NAME, Source, find, is_below, without_secrets
from paddlejob.data.stores import Store, finish, notes, opened
from paddlejob.errors import BadInput, NotPossible

_SECONDS_BETWEEN_NOTES = 2.0


@dataclass(frozen=True)
class StagedFile:
    name: str
    bytes: int
    sha256: str
    mark: str
    """The source's change mark: a source that has changed since is copied again."""


@dataclass(frozen=True)
class Staged:
    source: str
    files: tuple[StagedFile, ...]
    kept: tuple[str, ...] = field(default=(), compare=False)
    """Files that this run found complete and did not copy again."""

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    def as_json(self) -> dict[str, Any]:
        files = [asdict(file) for file in self.files]
        return {"version": 1, "source": self.source, "bytes": self.bytes, "files": files}


def stage(source: str, dest: str, *, overwrite: bool = False, progress: Progress = silent) -> Staged:
    """Copy a file, a glob's files or a tree into the directory `dest`; run again after a kill, it goes on.

    A part of a split is checked against the split's manifest. Files that an earlier run brought and the
    source no longer has are removed.
    """
    sources = find(source)
    refuse_overlap(source, sources, dest, at_its_name)
    promised = _promised(source)
    with opened(dest, durable=False) as store:
        known = _known(store)
        if not overwrite:
            _refuse_foreign(store, sources, known.keys() | _begun(store))
        kept = _unchanged(store, sources, known, progress)
        missing = [wanted for wanted in sources if wanted.name not in kept]
        store.begin()
        # What is to come is noted first: after a kill the next run knows that these files are not someone else's.
        names = [wanted.name for wanted in missing]
        store.renote([{"files": [asdict(file) for file in kept.values()], "bringing": names}])
        for name in known.keys() - {wanted.name for wanted in sources}:
            store.remove(name)
        copied = _copy(store, missing, promised, progress)
        files = {**kept, **{file.name: file for file in copied}}
        staged = Staged(without_secrets(source), tuple(files[wanted.name] for wanted in sources), tuple(kept))
        finish(store, STAGED_NAME, staged.as_json())
        return staged


def _known(store: Store) -> dict[str, StagedFile]:
    """What earlier runs have brought, from the last finished one and from one that was killed."""
    noted = notes(store)
    if any("request" in entry for entry in noted):
        raise BadInput(f"{store.url}: holds an unfinished split; run that again to its end, or name another directory")
    try:
        finished = json.loads(store.read(STAGED_NAME) or b"{}")
        files = [StagedFile(**file) for entry in (finished, *noted) for file in entry.get("files", ())]
        # Files of these names may be removed: none of them may lead out of the directory.
        return {file.name: file for file in files if is_below(file.name)}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(
            f"{store.url}: its {STAGED_NAME} cannot be read; remove it, and pass --overwrite to bring all files again"
        ) from error


def _begun(store: Store) -> set[str]:
    """What a run that was killed may have brought without having noted it."""
    return {name for entry in notes(store) for name in entry.get("bringing", ())}


def _refuse_foreign(store: Store, sources: Sequence[Source], ours: set[str]) -> None:
    foreign = sorted(store.files_named(source.name for source in sources if source.name not in ours))
    if foreign:
        raise BadInput(
            f"{store.url}: already has {foreign[0]}, which was not staged there; "
            "name another directory, or pass --overwrite to replace it"
        )


def _unchanged(
    store: Store, sources: Sequence[Source], known: dict[str, StagedFile], tell: Progress
) -> dict[str, StagedFile]:
    unchanged = [s.name for s in sources if s.name in known and known[s.name].mark == _mark(s)]
    there = store.files_named(unchanged)
    candidates = [known[name] for name in unchanged if name in there]
    meter = Meter(tell, "checking", sum(file.bytes for file in candidates))
    return {file.name: file for file in candidates if same(there[file.name], file.bytes, file.sha256, meter)}


def _copy(store: Store, sources: Sequence[Source], promised: dict[str, str], tell: Progress) -> list[StagedFile]:
    sizes = [source.size for source in sources]
    meter = Meter(tell, "writing", None if None in sizes else sum(size or 0 for size in sizes))
    # Other stores need not be thread-safe.
    both_here = store.is_local and all(source.is_local for source in sources)
    logbook = _Logbook(store)

    def bring(number: int) -> StagedFile:
        file = _copy_one(store, sources[number], promised, copies, meter)
        logbook.add(file)
        return file

    with copier(2 if both_here and len(sources) > 1 else 1) as copies:
        copied = copies.each(bring, range(len(sources)))
    return [copied[number] for number in range(len(sources))]


class _Logbook:
    """Notes what has been brought, now and then: with many small files a note for each would take most of the time."""

    def __init__(self, store: Store) -> None:
        self._store, self._lock = store, Lock()
        self._new: list[StagedFile] = []
        self._last = monotonic()

    def add(self, file: StagedFile) -> None:
        with self._lock:
            self._new.append(file)
            if monotonic() - self._last > _SECONDS_BETWEEN_NOTES:
                self._store.note({"files": [asdict(file) for file in self._new]})
                self._new, self._last = [], monotonic()


def _copy_one(store: Store, source: Source, promised: dict[str, str], copies: Copier, meter: Meter) -> StagedFile:
    with store.draft(source.name) as sink:
        size, sha256 = copies.copy(source.chunks(), sink, meter)
    source.refuse_change()
    if promised.get(source.name, sha256) != sha256:
        raise NotPossible(f"{source.shown}: is not what its split's {NAME} says; split the data again")
    store.publish(source.name)
    return StagedFile(source.name, size, sha256, _mark(source))


def _mark(source: Source) -> str:
    return f"{source.size}:{source.mark}"


def _promised(source: str) -> dict[str, str]:
    """The checksums of this part, where the source is DEST/<part>/data of a split that is complete."""
    fs, path = filesystem(source)
    cut = re.fullmatch(r"(.*)/(\d+)/data/?", path)
    if not cut:
        return {}
    try:
        with reached(without_secrets(source)):
            content = fs.cat_file(f"{cut[1]}/{NAME}")
        manifest = Manifest.from_json(json.loads(content))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return {}
    return {file.name: file.sha256 for part in manifest.parts if part.part == int(cut[2]) for file in part.files}
