"""Checks that reject a run before it writes anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, get_args

from paddlejob.data.drivers.local_files import LocalFiles
from paddlejob.data.drivers.resolve import filesystem
from paddlejob.data.drivers.source import Source
from paddlejob.data.drivers.urls import redact
from paddlejob.data.manifest import By
from paddlejob.data.stores.base import Store
from paddlejob.errors import BadInput, NotPossible

MAX_PARTS = 100_000

WritesTo = Callable[[str, PurePosixPath], bool]
"""Whether a source file of this name causes a write to this path below the destination."""


def check_options(parts: int, by: str, shuffle: bool, header: int) -> None:
    if not 1 <= parts <= MAX_PARTS:
        raise BadInput(f"parts: {parts} is outside 1 to {MAX_PARTS}; choose a value in that range")
    if by not in get_args(By):
        raise BadInput(f"by: {by!r} is not supported; use lines, files or bytes")
    if by == "bytes" and shuffle:
        raise BadInput("shuffle cannot be combined with --by bytes; use --by lines or --by files")
    if header < 0:
        raise BadInput(f"header: {header} is negative; specify the number of header lines")
    if header and by != "lines":
        raise BadInput(f"header cannot be combined with --by {by}; use --by lines")


def check_overlap(source: str, sources: Sequence[Source], dest: str, writes_to: WritesTo) -> None:
    """Reject a destination that the next run would read as source, and a source that would be overwritten."""
    (source_fs, source_path), (dest_fs, dest_path) = filesystem(source), filesystem(dest)
    if source_fs != dest_fs:
        return
    root = _resolve(dest_fs, dest_path)
    if root.is_relative_to(_resolve(source_fs, source_path)) and source_fs.isdir(source_path):
        raise BadInput(f"{redact(dest)} is inside the source {redact(source)}; choose a directory outside it")
    for found in sources:
        path = _resolve(source_fs, found.path)
        if path.is_relative_to(root) and writes_to(found.name, path.relative_to(root)):
            raise BadInput(f"{redact(dest)}: the source {found.shown} would be overwritten; choose another directory")


def split_writes_to(name: str, path: PurePosixPath) -> bool:
    return re.match(r"\d+/data/", str(path)) is not None


def stage_writes_to(name: str, path: PurePosixPath) -> bool:
    return path == PurePosixPath(name)


def check_free_space(store: Store, size: int, scratch: int = 0) -> None:
    if not store.has_space_for(size, scratch):
        raise NotPossible(
            f"{store.url}: not enough space for {size + scratch} more bytes; "
            "free some space, then run the same command again to resume"
        )


def check_enough_records(source: str, records: int, parts: int, by: str) -> None:
    if records < parts:
        raise BadInput(
            f"{redact(source)} has {records} {by}, too few for {parts} parts; ask for fewer parts, "
            "or pass --allow-empty to allow empty parts"
        )


def _resolve(fs: Any, path: str) -> PurePosixPath:
    return PurePosixPath(Path(path).resolve() if isinstance(fs, LocalFiles) else path)
