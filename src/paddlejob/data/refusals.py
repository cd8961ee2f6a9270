"""What is refused before anything is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from paddlejob.data.drivers import filesystem
from paddlejob.data.local_files import LocalFiles
from paddlejob.data.sources import Source
from paddlejob.data.stores import Store
from paddlejob.errors import BadInput, NotPossible

IsWritten = Callable[[str, PurePosixPath], bool]
"""Whether a file of that name makes something be written at that place below the destination."""


def refuse_overlap(source: str, sources: Sequence[Source], dest: str, is_written: IsWritten) -> None:
    """A destination inside the source would be read as source by the next run; a source must not be overwritten."""
    (here, path), (there, target) = filesystem(source), filesystem(dest)
    if here != there:
        return
    goal = _real(there, target)
    if goal.is_relative_to(_real(here, path)) and here.isdir(path):
        raise BadInput(f"{dest}: lies inside the source {source}; name a directory outside of it")
    for found in sources:
        place = _real(here, found.path)
        if place.is_relative_to(goal) and is_written(found.name, place.relative_to(goal)):
            raise BadInput(f"{dest}: the source {found.shown} is where its copy would go; name another directory")


def in_a_part(name: str, place: PurePosixPath) -> bool:
    """Whether a split writes there."""
    return re.match(r"\d+/data/", str(place)) is not None


def at_its_name(name: str, place: PurePosixPath) -> bool:
    """Whether staging writes there."""
    return place == PurePosixPath(name)


def refuse_full_disk(store: Store, size: int, scratch: int = 0) -> None:
    if not store.room_for(size, scratch):
        raise NotPossible(
            f"{store.url}: {size + scratch} more bytes do not fit; free some space and run it again to go on"
        )


def refuse_too_few(source: str, records: int, parts: int, by: str) -> None:
    if records < parts:
        raise BadInput(
            f"{source}: has {records} {by}, too few for {parts} parts; ask for fewer parts, "
            "or pass --allow-empty to have empty ones"
        )


def _real(fs: Any, path: str) -> PurePosixPath:
    return PurePosixPath(Path(path).resolve() if isinstance(fs, LocalFiles) else path)
