"""What an earlier run has left at the destination, and what of it can be kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from paddlejob.data.cuts import Piece
from paddlejob.data.manifest import NAME, Manifest, Part
from paddlejob.data.progress import Meter, Progress
from paddlejob.data.sources import Source
from paddlejob.data.stores import Store, notes
from paddlejob.errors import BadInput


@dataclass(frozen=True)
class Earlier:
    """Parts that are complete and match, and the cuts if they were already found."""

    kept: dict[int, Part] = field(default_factory=dict)
    pieces: list[list[Piece]] | None = None


def look_back(store: Store, request: dict[str, Any], overwrite: bool, tell: Progress) -> Earlier:
    """Take up an earlier run of the same request; refuse (or, to overwrite, remove) anything else."""
    noted, manifest = notes(store), _manifest(store)
    if noted and noted[0].get("request") == request:
        pieces = [entry["pieces"] for entry in noted if "pieces" in entry]
        parts = [Part.from_json(entry) for entry in noted if "part" in entry]
        kept = _matching(store, parts, tell)
        store.begin()
        store.renote([noted[0], *({"pieces": found} for found in pieces), *(p.as_json() for p in kept.values())])
        return Earlier(kept, [[Piece(**piece) for piece in part] for part in pieces[0]] if pieces else None)
    if not noted and manifest and manifest.request == request:
        kept = _matching(store, manifest.parts, tell)
        store.begin()
        store.renote([{"request": request}, *(part.as_json() for part in kept.values())])
        return Earlier(kept)
    _make_way(store, request, noted, manifest, overwrite)
    store.renote([{"request": request}])
    return Earlier()


def same(source: Source, size: int, sha256: str, meter: Meter) -> bool:
    """Whether a file that was written earlier is still what it was."""
    if source.size != size:
        return False
    digest = hashlib.sha256()
    for chunk in source.chunks():
        digest.update(chunk)
        meter.add(len(chunk))
    return digest.hexdigest() == sha256


def _matching(store: Store, parts: Iterable[Part], tell: Progress) -> dict[int, Part]:
    found = {part.part: part for part in parts}
    meter = Meter(tell, "checking", sum(part.bytes for part in found.values()))
    return {number: part for number, part in sorted(found.items()) if _whole(store, part, meter)}


def _whole(store: Store, part: Part, meter: Meter) -> bool:
    there = {source.name: source for source in store.files_in(f"{part.part}/data")}
    return there.keys() == {file.name for file in part.files} and all(
        same(there[file.name], file.bytes, file.sha256, meter) for file in part.files
    )


def _manifest(store: Store) -> Manifest | None:
    content = store.read(NAME)
    if content is None:
        return None
    try:
        return Manifest.from_json(json.loads(content))
    except (ValueError, KeyError, TypeError):
        return Manifest({}, ())


def _make_way(
    store: Store,
    request: dict[str, Any],
    noted: list[dict[str, Any]],
    manifest: Manifest | None,
    overwrite: bool,
) -> None:
    unfinished = noted[0].get("request", {}) if noted else {}
    finished = manifest.request if manifest else {}
    most = max(r.get("parts", 0) for r in (request, unfinished, finished))
    there = [number for number in store.numbers() if number < most]
    in_the_way = [f"{number}/data" for number in there if store.files_in(f"{number}/data")]
    if (in_the_way or noted or manifest) and not overwrite:
        raise BadInput(
            f"{store.url}: {_what_is_there(noted, unfinished, finished, in_the_way)}; "
            "name another directory, or pass --overwrite to replace it"
        )
    store.begin()
    for name in (NAME, *in_the_way):
        store.remove(name)
    store.drop_scratch()


def _what_is_there(
    noted: list[dict[str, Any]], unfinished: Mapping[str, Any], finished: Mapping[str, Any], in_the_way: list[str]
) -> str:
    for words, request in (("an unfinished split", unfinished), ("the split", finished)):
        if request:
            asked = f"{request['source']} by {request['by']} into {request['parts']}"
            return f"holds {words} of {asked}, which is not the same"
    if noted:
        return "holds an unfinished `pdj data stage`"
    return f"already has {in_the_way[0]}" if in_the_way else f"has a {NAME} of something else"
