"""Splits training data into even parts: DEST/<part>/data, and DEST/manifest.json once all parts are there."""

from __future__ import annotations

from paddlejob.data.copying import Copier
from paddlejob.data.drivers.discovery import find
from paddlejob.data.drivers.source import Source, digest
from paddlejob.data.drivers.urls import redact
from paddlejob.data.manifest import MANIFEST, By, File, Manifest, Part, Request
from paddlejob.data.partition.build import build_layout
from paddlejob.data.partition.layouts import Layout
from paddlejob.data.preconditions import (
    check_enough_records,
    check_free_space,
    check_options,
    check_overlap,
    split_writes_to,
)
from paddlejob.data.progress import Meter, Progress, silent
from paddlejob.data.resume import Resumed, resume
from paddlejob.data.stores.base import Store, complete
from paddlejob.data.stores.factory import open_store
from paddlejob.errors import BadInput


def split(
    source: str,
    dest: str,
    parts: int,
    by: By = "lines",
    shuffle: bool = False,
    seed: int = 0,
    *,
    header: int = 0,
    allow_empty: bool = False,
    overwrite: bool = False,
    progress: Progress = silent,
) -> Manifest:
    """Split `source` into `parts` even parts under `dest`; called again after a kill, resume.

    The numbers of records (lines, files or bytes) differ by at most one between parts. Without `shuffle` the order is
    kept. The first `header` lines of each file are repeated in each part and not counted. The same source, options and
    seed produce the same bytes.
    """
    check_options(parts, by, shuffle, header)
    sources = find(source)
    check_overlap(source, sources, dest, split_writes_to)
    if by == "files" and not allow_empty:
        check_enough_records(source, len(sources), parts, by)
    request = Request(redact(source), digest(sources), parts, by, seed if shuffle else None, header)
    with open_store(dest) as store:
        resumed = resume(store, request, overwrite, progress)
        written = dict(resumed.kept)
        if len(written) < parts:
            store.remove(MANIFEST)
            layout = _checked_layout(store, sources, request, resumed, allow_empty, progress)
            written |= _write_missing(store, layout, request, resumed, _worker_count(store, sources, shuffle), progress)
        manifest = Manifest(request.as_json(), tuple(written[part] for part in range(parts)), tuple(resumed.kept))
        complete(store, MANIFEST, manifest.as_json())
        return manifest


def _checked_layout(
    store: Store, sources: list[Source], request: Request, resumed: Resumed, allow_empty: bool, progress: Progress
) -> Layout:
    try:
        layout = build_layout(store, sources, request, resumed.pieces, progress)
        if not allow_empty:
            check_enough_records(request.source, layout.records, request.parts, request.by)
    except BadInput:
        store.discard_journal()
        raise
    return layout


def _worker_count(store: Store, sources: list[Source], shuffle: bool) -> int:
    """Two workers keep both disk and processor busy; remote drivers need not be thread-safe.

    Each worker of a shuffle would hold a bucket in memory.
    """
    return 2 if not shuffle and store.is_local and all(source.is_local for source in sources) else 1


def _write_missing(
    store: Store, layout: Layout, request: Request, resumed: Resumed, workers: int, progress: Progress
) -> dict[int, Part]:
    kept = sum(part.bytes for part in resumed.kept.values())
    if layout.size is not None:
        check_free_space(store, layout.size - kept)
    meter = Meter(progress, "writing", None if layout.size is None else layout.size - kept)
    missing = [number for number in range(request.parts) if number not in resumed.kept]
    with Copier(workers) as copier:
        return copier.map(lambda number: _write_part(store, layout, number, copier, meter), missing)


def _write_part(store: Store, layout: Layout, number: int, copier: Copier, meter: Meter) -> Part:
    files = []
    for name, records, chunks in layout.files(number):
        with store.draft(f"{number}/data/{name}") as sink:
            size, sha256 = copier.copy(chunks, sink, meter)
        files.append(File(name, size, records, sha256))
    part = Part(number, tuple(sorted(files, key=lambda file: file.name)))
    # Recorded before it becomes visible, so that the next run can check every visible part.
    store.append_journal(part.as_json())
    store.publish(f"{number}/data")
    return part
