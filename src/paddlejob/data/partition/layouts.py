"""The files that each part of a split consists of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
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

    def __init__(
        self,
        sources: Sequence[Source],
        originals: Sequence[Source],
        pieces: list[list[Piece]],
        headers: Sequence[bytes] = (),
    ) -> None:
        self._sources, self._originals = sources, originals
        self._headers = headers or [b""] * len(sources)
        self._pieces = [part or self._empty() for part in pieces]
        everything = [piece for part in self._pieces for piece in part]
        lengths = [piece.length for piece in everything]
        self.records = sum(piece.records for piece in everything)
        repeated = sum(len(self._headers[piece.source]) for piece in everything)
        self.size = None if None in lengths else sum(length or 0 for length in lengths) + repeated

    def files(self, part: int) -> Iterator[Content]:
        for piece in self._pieces[part]:
            source, header = self._sources[piece.source], self._headers[piece.source]
            body = source.chunks(piece.start, piece.length)
            yield Content(source.name, piece.records, chain([header], body) if header else body)
            self._originals[piece.source].check_unchanged()

    def _empty(self) -> list[Piece]:
        """An empty part of a single file contains that file without records, so that a program can open it."""
        return [Piece(0, 0, 0, 0)] if len(self._sources) == 1 else []


class ShuffledLines:
    """Parts cut from all lines in random order; each part is one file."""

    def __init__(self, name: str, lines: Shuffled, size: int, parts: int, header: bytes = b"") -> None:
        self._name, self._lines, self._parts, self._header = name, lines, parts, header
        self.records, self.size = lines.records, size + parts * len(header)

    def files(self, part: int) -> Iterator[Content]:
        body = self._lines.part(part, self._parts)
        chunks = chain([self._header], body) if self._header else body
        yield Content(self._name, self._lines.records_in(part, self._parts), chunks)
