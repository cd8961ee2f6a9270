"""The files that each part of a split consists of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from paddlejob.data.drivers.source import Source
from paddlejob.data.partition.cuts import Piece
from paddlejob.data.partition.shuffle import Shuffled


class Content(NamedTuple):
    """A file of a part before it is written."""

    name: str
    records: int
    chunks: Iterable[bytes]


class Layout(Protocol):
    """The content of each part, and the totals of all parts."""

    @property
    def records(self) -> int: ...

    @property
    def size(self) -> int | None: ...

    def files(self, part: int) -> Iterator[Content]: ...


class Pieces:
    """Parts that consist of byte ranges of the source files, in order."""

    def __init__(self, sources: Sequence[Source], originals: Sequence[Source], pieces: list[list[Piece]]) -> None:
        self._sources, self._originals, self._pieces = sources, originals, pieces
        lengths = [piece.length for part in pieces for piece in part]
        self.records = sum(piece.records for part in pieces for piece in part)
        self.size = None if None in lengths else sum(length or 0 for length in lengths)

    def files(self, part: int) -> Iterator[Content]:
        for piece in self._pieces[part] or self._empty():
            source = self._sources[piece.source]
            yield Content(source.name, piece.records, source.chunks(piece.start, piece.length))
            self._originals[piece.source].check_unchanged()

    def _empty(self) -> list[Piece]:
        """An empty part of a single file contains that file, empty, so that a program can open it."""
        return [Piece(0, 0, 0, 0)] if len(self._sources) == 1 else []


class ShuffledLines:
    """Parts cut from all lines in random order; each part is one file."""

    def __init__(self, name: str, lines: Shuffled, size: int, parts: int) -> None:
        self._name, self._lines, self._parts = name, lines, parts
        self.records, self.size = lines.records, size

    def files(self, part: int) -> Iterator[Content]:
        yield Content(self._name, self._lines.records_in(part, self._parts), self._lines.part(part, self._parts))
