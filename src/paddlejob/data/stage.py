"""Bringing data to where it is read: every file whole or not there, and .pdj-staged.json when all are."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from time import monotonic
from typing import Any

from paddlejob.data.copying import Copier, copier
from paddlejob.data.earlier import same
from paddlejob.data.manifest import NAME, Manifest
from paddlejob.data.progress import Meter, Progress, silent
from paddlejob.data.sources import STAGED_NAME, Source, filesystem, find, without_secrets
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
    promised = _promised(source)
    with opened(dest, durable=False) as store:
        known = _known(store)
        if not overwrite:
            _refuse_foreign(store, sources, known)
        kept = _unchanged(store, sources, known, progress)
        store.renote([{"files": [asdict(file) for file in kept.values()]}])
        for name in known.keys() - {wanted.name for wanted in sources}:
            store.remove(name)
        copied = _copy(store, [wanted for wanted in sources if wanted.name not in kept], promised, progress)
        files = {**kept, **{file.name: file for file in copied}}
        staged = Staged(without_secrets(source), tuple(files[wanted.name] for wanted in sources), tuple(kept))
        finish(store, STAGED_NAME, staged.as_json())
        return staged


def _known(store: Store) -> dict[str, StagedFile]:
    """What earlier runs have brought, from the last finished one and from one that was killed."""
    finished = json.loads(store.read(STAGED_NAME) or b'{"files": []}')
    entries = [finished, *notes(store)]
    return {file["name"]: StagedFile(**file) for entry in entries for file in entry["files"]}


def _refuse_foreign(store: Store, sources: Sequence[Source], known: dict[str, StagedFile]) -> None:
    there = {file.name for file in store.files_in("")}
    foreign = sorted(there & {source.name for source in sources} - known.keys())
    if foreign:
        raise BadInput(
            f"{store.url}: already has {foreign[0]}, which was not staged there; "
            "name another directory, or pass --overwrite to replace it"
        )


def _unchanged(
    store: Store, sources: Sequence[Source], known: dict[str, StagedFile], tell: Progress
) -> dict[str, StagedFile]:
    there = {file.name: file for file in store.files_in("")}
    candidates = [
        known[source.name]
        for source in sources
        if source.name in there and source.name in known and known[source.name].mark == _mark(source)
    ]
    meter = Meter(tell, "checking", sum(file.bytes for file in candidates))
    return {file.name: file for file in candidates if same(there[file.name], file.bytes, file.sha256, meter)}


def _copy(store: Store, sources: Sequence[Source], promised: dict[str, str], tell: Progress) -> list[StagedFile]:
    sizes = [source.size for source in sources]
    meter = Meter(tell, "writing", None if None in sizes else sum(size or 0 for size in sizes))
    copied: list[StagedFile] = []
    noted, last = 0, monotonic()
    with copier(1) as copies:
        for source in sources:
            copied.append(_copy_one(store, source, promised, copies, meter))
            if monotonic() - last > _SECONDS_BETWEEN_NOTES:
                store.note({"files": [asdict(file) for file in copied[noted:]]})
                noted, last = len(copied), monotonic()
    return copied


def _copy_one(store: Store, source: Source, promised: dict[str, str], copies: Copier, meter: Meter) -> StagedFile:
    with store.draft(source.name) as sink:
        size, sha256 = copies.copy(source.chunks(), sink, meter)
    source.refuse_change()
    if promised.get(source.name, sha256) != sha256:
        raise NotPossible(f"{source.path}: is not what its split's {NAME} says; split the data again")
    store.publish(source.name)
    return StagedFile(source.name, size, sha256, _mark(source))


def _mark(source: Source) -> str:
    return f"{source.size}:{source.mark}"


def _promised(source: str) -> dict[str, str]:
    """The checksums of this part, where the source is DEST/<part>/data of a split that is complete."""
    fs, path = filesystem(source)
    cut = re.fullmatch(r"(.*)/(\d+)/data/?", path)
    if not cut or not fs.exists(f"{cut[1]}/{NAME}"):
        return {}
    try:
        manifest = Manifest.from_json(json.loads(fs.cat_file(f"{cut[1]}/{NAME}")))
    except (ValueError, KeyError, TypeError):
        return {}
    return {file.name: file.sha256 for part in manifest.parts if part.part == int(cut[2]) for file in part.files}
