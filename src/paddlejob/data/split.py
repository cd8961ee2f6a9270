"""Cutting training data into even parts: DEST/<part>/data, and DEST/manifest.json when all are there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import PurePosixPath
from random import Random
from typing import Any, Literal, get_args

from paddlejob.data.copying import Copier, copier
from paddlejob.data.cuts import byte_pieces, file_pieces
from paddlejob.data.earlier import Earlier, look_back
from paddlejob.data.layouts import Layout, Pieces, ShuffledLines
from paddlejob.data.lines import LineIndex, line_pieces
from paddlejob.data.manifest import NAME, VERSION, File, Manifest, Part
from paddlejob.data.progress import Meter, Progress, silent
from paddlejob.data.refusals import in_a_part, refuse_full_disk, refuse_overlap, refuse_too_few
from paddlejob.data.shuffle import Shuffled, mix
from paddlejob.data.sources import Source, digest, find, without_secrets
from paddlejob.data.stores import Store, finish, opened
from paddlejob.data.unpack import plain
from paddlejob.errors import BadInput

By = Literal["lines", "files", "bytes"]
MOST_PARTS = 100_000


def split(
    source: str,
    dest: str,
    parts: int,
    by: By = "lines",
    shuffle: bool = False,
    seed: int = 0,
    *,
    allow_empty: bool = False,
    overwrite: bool = False,
    progress: Progress = silent,
) -> Manifest:
    """Split `source` into `parts` even parts under `dest`; run again after a kill, it goes on.

    Numbers of records (lines, files or bytes) differ by at most one between parts. Without `shuffle` the
    order is kept. The same source, options and seed give the same bytes.
    """
    _refuse_nonsense(parts, by, shuffle)
    sources = find(source)
    refuse_overlap(source, sources, dest, in_a_part)
    if by == "files" and not allow_empty:
        refuse_too_few(source, len(sources), parts, by)
    request = {
        "source": without_secrets(source),
        "sourceDigest": digest(sources),
        "parts": parts,
        "by": by,
        "shuffle": shuffle,
        "seed": seed if shuffle else None,
        "version": VERSION,
    }
    with opened(dest) as store:
        earlier = look_back(store, request, overwrite, progress)
        if len(earlier.kept) < parts:
            store.remove(NAME)
            layout = _checked_layout(store, sources, request, earlier, allow_empty, progress)
            # Two at a time keep both a disk and a processor busy. Other stores need not be thread-safe, and each
            # lane of a shuffle would hold a bucket in memory.
            alone = shuffle or not store.is_local or not all(found.is_local for found in sources)
            written = _write(store, layout, parts, earlier, 1 if alone else 2, progress)
        else:
            written = earlier.kept
        manifest = Manifest(request, tuple(written[part] for part in range(parts)), tuple(earlier.kept))
        finish(store, NAME, manifest.as_json())
        return manifest


def _checked_layout(
    store: Store,
    sources: list[Source],
    request: dict[str, Any],
    earlier: Earlier,
    allow_empty: bool,
    tell: Progress,
) -> Layout:
    try:
        layout = _layout(store, sources, request, earlier, tell)
        if not allow_empty:
            refuse_too_few(request["source"], layout.records, request["parts"], request["by"])
    except BadInput:
        store.forget()
        raise
    return layout


def _layout(store: Store, sources: list[Source], request: dict[str, Any], earlier: Earlier, tell: Progress) -> Layout:
    by, parts = request["by"], request["parts"]
    if by == "files":
        order = _order(len(sources), request["seed"])
        return Pieces(sources, sources, list(file_pieces([s.size for s in sources], order, parts)))
    readable = plain(sources, store.scratch / "plain", by == "lines", tell)
    if earlier.pieces:
        return Pieces(readable, sources, earlier.pieces)
    if by == "bytes":
        pieces = list(byte_pieces([source.size or 0 for source in readable], parts))
    else:
        meter = Meter(tell, "counting", sum(source.size or 0 for source in readable))
        indexes = [LineIndex(source, meter) for source in readable]
        if request["shuffle"]:
            return _shuffled(store, sources, readable, indexes, request, tell)
        pieces = list(line_pieces(indexes, parts))
    store.note({"pieces": [[asdict(piece) for piece in part] for part in pieces]})
    return Pieces(readable, sources, pieces)


def _shuffled(
    store: Store,
    originals: list[Source],
    readable: list[Source],
    indexes: list[LineIndex],
    request: dict[str, Any],
    tell: Progress,
) -> ShuffledLines:
    size = sum(index.size for index in indexes)
    refuse_full_disk(store, size, scratch=size)
    buckets = store.scratch / "passing"
    buckets.mkdir(exist_ok=True)
    lines = Shuffled(buckets, request["seed"], indexes)
    lines.scatter(readable, Meter(tell, "shuffling", size))
    for source in originals:
        source.refuse_change()
    return ShuffledLines(_common_name(readable), lines, size, request["parts"])


def _write(store: Store, layout: Layout, parts: int, earlier: Earlier, lanes: int, tell: Progress) -> dict[int, Part]:
    kept = sum(part.bytes for part in earlier.kept.values())
    if layout.size is not None:
        refuse_full_disk(store, layout.size - kept)
    meter = Meter(tell, "writing", None if layout.size is None else layout.size - kept)
    written = dict(earlier.kept)
    missing = [number for number in range(parts) if number not in written]
    with copier(lanes) as copies:
        written |= copies.each(lambda number: _write_part(store, layout, number, copies, meter), missing)
    return written


def _write_part(store: Store, layout: Layout, number: int, copier: Copier, meter: Meter) -> Part:
    files = []
    for name, records, chunks in layout.files(number):
        with store.draft(f"{number}/data/{name}") as sink:
            size, sha256 = copier.copy(chunks, sink, meter)
        files.append(File(name, size, records, sha256))
    part = Part(number, tuple(sorted(files, key=lambda file: file.name)))
    # Noted before it is seen, so that every part that is seen can be checked by the next run.
    store.note(part.as_json())
    store.publish(f"{number}/data")
    return part


def _refuse_nonsense(parts: int, by: str, shuffle: bool) -> None:
    if not 1 <= parts <= MOST_PARTS:
        raise BadInput(f"parts: is {parts}; ask for 1 to {MOST_PARTS}")
    if by not in get_args(By):
        raise BadInput(f"by: is {by!r}; use lines, files or bytes")
    if by == "bytes" and shuffle:
        raise BadInput("shuffle: has no meaning for single bytes; use it with --by lines or --by files")


def _order(count: int, seed: int | None) -> list[int]:
    """The files as they are, or in the random order of a seed."""
    order = list(range(count))
    if seed is not None:
        mix(order, Random(f"{seed}:files"))
    return order


def _common_name(sources: Sequence[Source]) -> str:
    """One source's own name; for several, whose lines are mixed, one that says so."""
    if len(sources) == 1:
        return sources[0].name
    suffixes = {PurePosixPath(source.name).suffix for source in sources}
    return "shuffled" + (suffixes.pop() if len(suffixes) == 1 else "")
