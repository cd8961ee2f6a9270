"""What a split has made, as it is written to DEST/manifest.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

VERSION = 1
NAME = "manifest.json"


@dataclass(frozen=True)
class File:
    """One file of a part; `name` is relative to DEST/<part>/data."""

    name: str
    bytes: int
    records: int
    sha256: str


@dataclass(frozen=True)
class Part:
    part: int
    files: tuple[File, ...]

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @property
    def records(self) -> int:
        return sum(file.records for file in self.files)

    def as_json(self) -> dict[str, Any]:
        return {
            "part": self.part,
            "path": f"{self.part}/data",
            "bytes": self.bytes,
            "records": self.records,
            "files": [asdict(file) for file in self.files],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Part:
        return cls(document["part"], tuple(File(**file) for file in document["files"]))


@dataclass(frozen=True)
class Manifest:
    """`request` says what was asked for and of which source; two equal requests give equal parts."""

    request: Mapping[str, Any]
    parts: tuple[Part, ...]
    kept: tuple[int, ...] = field(default=(), compare=False)
    """Parts that this run found complete and did not write again; not part of the file."""

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)

    @property
    def records(self) -> int:
        return sum(part.records for part in self.parts)

    def as_json(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "request": dict(self.request),
            "bytes": self.bytes,
            "records": self.records,
            "parts": [part.as_json() for part in self.parts],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Manifest:
        return cls(dict(document["request"]), tuple(Part.from_json(part) for part in document["parts"]))
