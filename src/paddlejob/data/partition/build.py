"""Builds the layout of a split: unpacks, counts, cuts and shuffles as the request demands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import PurePosixPath
from random import Random

from paddlejob.data.drivers.source import Source
from paddlejob.data.drivers.unpack import make_seekable
from paddlejob.data.manifest import Request
from paddlejob.data.partition.cuts import Piece, byte_pieces, file_pieces
from paddlejob.data.partition.layouts import Layout, Pieces, ShuffledLines
from paddlejob.data.partition.lines import LineIndex, line_pieces, read_header
from paddlejob.data.partition.shuffle import Shuffled, permute
from paddlejob.data.preconditions import check_free_space
from paddlejob.data.progress import Meter, Progress
from paddlejob.data.stores.base import Store
from paddlejob.errors import BadInput


def build_layout(
    store: Store, sources: list[Source], request: Request, pieces: list[list[Piece]] | None, progress: Progress
) -> Layout:
    """Build the layout of a request; `pieces` are the cuts if an earlier run has already computed them."""
    if request.by == "files":
        order = _file_order(len(sources), request.seed)
        return Pieces(sources, sources, list(file_pieces([s.size for s in sources], order, request.parts)))
    seekable = make_seekable(sources, store.scratch / "plain", request.by == "lines", progress)
    headers = [read_header(source, request.header) for source in seekable]
    if pieces:
        return Pieces(seekable, sources, pieces, headers)
    if request.by == "bytes":
        pieces = list(byte_pieces([source.size or 0 for source in seekable], request.parts))
    else:
        meter = Meter(progress, "counting", sum(source.size or 0 for source in seekable))
        indexes = [LineIndex(source, meter) for source in seekable]
        if request.shuffle:
            return _shuffle(store, sources, seekable, indexes, headers, request, progress)
        pieces = list(line_pieces(indexes, request.parts, request.header))
    store.append_journal({"pieces": [[asdict(piece) for piece in part] for part in pieces]})
    return Pieces(seekable, sources, pieces, headers)


def _shuffle(
    store: Store,
    originals: list[Source],
    seekable: list[Source],
    indexes: list[LineIndex],
    headers: list[bytes],
    request: Request,
    progress: Progress,
) -> ShuffledLines:
    header = _common_header(seekable, headers)
    size = sum(index.size for index in indexes) - sum(map(len, headers))
    records = sum(max(index.records - request.header, 0) for index in indexes)
    check_free_space(store, size, scratch=size)
    buckets = store.scratch / "partial"
    buckets.mkdir(exist_ok=True)
    lines = Shuffled(buckets, request.seed or 0, size, records)
    lines.scatter(seekable, [len(found) for found in headers], Meter(progress, "shuffling", size))
    for source in originals:
        source.check_unchanged()
    return ShuffledLines(_shuffled_name(seekable), lines, size, request.parts, header)


def _common_header(sources: list[Source], headers: list[bytes]) -> bytes:
    """Return the header that all files share; empty files have none."""
    found = {header.removesuffix(b"\n"): source for source, header in zip(sources, headers, strict=True) if header}
    if len(found) > 1:
        one, other, *_ = found.values()
        raise BadInput(f"{other.shown}: its header differs from that of {one.shown}; shuffle such files separately")
    return next(iter(found)) + b"\n" if found else b""


def _file_order(count: int, seed: int | None) -> list[int]:
    """Return the files in their own order, or in the random order of a seed."""
    order = list(range(count))
    if seed is not None:
        permute(order, Random(f"{seed}:files"))
    return order


def _shuffled_name(sources: Sequence[Source]) -> str:
    """Return the name of the only source, or `shuffled` with the common extension if lines of several are mixed."""
    if len(sources) == 1:
        return sources[0].name
    suffixes = {PurePosixPath(source.name).suffix for source in sources}
    return "shuffled" + (suffixes.pop() if len(suffixes) == 1 else "")
