"""Resuming an earlier run: what it left at the destination, and which parts can be kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from paddlejob.data.drivers.source import Source
from paddlejob.data.manifest import MANIFEST, Manifest, Part, Request
from paddlejob.data.partition.cuts import Piece
from paddlejob.data.progress import Meter, Progress
from paddlejob.data.stores.base import Store, read_journal
from paddlejob.errors import BadInput


@dataclass(frozen=True)
class Resumed:
    """Parts that are complete and match their checksums, and the cuts if they were already computed."""

    kept: dict[int, Part] = field(default_factory=dict)
    pieces: list[list[Piece]] | None = None


@dataclass(frozen=True)
class _Found:
    """What an earlier run left at the destination."""

    journal: list[dict[str, Any]]
    manifest: Manifest | None

    @property
    def unfinished(self) -> dict[str, Any]:
        return dict(self.journal[0].get("request", {})) if self.journal else {}

    @property
    def finished(self) -> dict[str, Any]:
        return dict(self.manifest.request) if self.manifest else {}


def resume(store: Store, request: Request, overwrite: bool, progress: Progress) -> Resumed:
    """Resume an earlier run of the same request; reject anything else, or remove it if `overwrite` is set."""
    found, wanted = _Found(read_journal(store), _read_manifest(store)), request.as_json()
    if found.unfinished == wanted:
        return _resume_unfinished(store, found.journal, progress)
    if not found.journal and found.manifest and found.finished == wanted:
        kept = _verified_parts(store, found.manifest.parts, progress)
        store.begin()
        store.rewrite_journal([{"request": wanted}, *(part.as_json() for part in kept.values())])
        return Resumed(kept)
    _clear(store, request, found, overwrite)
    store.rewrite_journal([{"request": wanted}])
    return Resumed()


def matches(source: Source, size: int, sha256: str, meter: Meter) -> bool:
    """Whether a file that was written earlier still has this size and checksum."""
    if source.size != size:
        return False
    digest = hashlib.sha256()
    for chunk in source.chunks():
        digest.update(chunk)
        meter.add(len(chunk))
    return digest.hexdigest() == sha256


def _resume_unfinished(store: Store, journal: list[dict[str, Any]], progress: Progress) -> Resumed:
    pieces = [entry["pieces"] for entry in journal if "pieces" in entry]
    kept = _verified_parts(store, (Part.from_json(entry) for entry in journal if "part" in entry), progress)
    store.begin()
    store.rewrite_journal(
        [journal[0], *({"pieces": found} for found in pieces), *(part.as_json() for part in kept.values())]
    )
    return Resumed(kept, [[Piece(**piece) for piece in part] for part in pieces[0]] if pieces else None)


def _verified_parts(store: Store, parts: Iterable[Part], progress: Progress) -> dict[int, Part]:
    found = {part.part: part for part in parts}
    meter = Meter(progress, "checking", sum(part.bytes for part in found.values()))
    return {number: part for number, part in sorted(found.items()) if _is_intact(store, part, meter)}


def _is_intact(store: Store, part: Part, meter: Meter) -> bool:
    found = {source.name: source for source in store.list_files(f"{part.part}/data")}
    return found.keys() == {file.name for file in part.files} and all(
        matches(found[file.name], file.bytes, file.sha256, meter) for file in part.files
    )


def _read_manifest(store: Store) -> Manifest | None:
    content = store.read(MANIFEST)
    if content is None:
        return None
    try:
        return Manifest.from_json(json.loads(content))
    except (ValueError, KeyError, TypeError):
        return Manifest({}, ())


def _clear(store: Store, request: Request, found: _Found, overwrite: bool) -> None:
    parts = max(request.parts, found.unfinished.get("parts", 0), found.finished.get("parts", 0))
    numbers = [number for number in store.part_numbers() if number < parts]
    existing = [f"{number}/data" for number in numbers if store.list_files(f"{number}/data")]
    if (existing or found.journal or found.manifest) and not overwrite:
        raise BadInput(
            f"{store.url}: {_describe(found, existing)}; choose another directory, or pass --overwrite to replace it"
        )
    store.begin()
    for name in (MANIFEST, *existing):
        store.remove(name)
    store.clear_scratch()


def _describe(found: _Found, existing: list[str]) -> str:
    for kind, request in (("an unfinished split", found.unfinished), ("a split", found.finished)):
        if request:
            return f"contains {kind} of {request['source']} by {request['by']} into {request['parts']}, which differs"
    if found.journal:
        return "contains an unfinished `pdj data stage`"
    return f"already contains {existing[0]}" if existing else f"contains a {MANIFEST} that is not of a split"
