"""The records at the destination: manifest.json of a split, and .pdj-staged.json of staged files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

By = Literal["lines", "files", "bytes"]
VERSION = 1
MANIFEST = "manifest.json"
STAGED = ".pdj-staged.json"


@dataclass(frozen=True)
class Request:
    """What a split was asked to do, and with which source; equal requests produce equal parts."""

    source: str
    source_digest: str
    parts: int
    by: By
    seed: int | None
    """None: keep the order."""
    header: int = 0
    """Lines at the start of each source file that are repeated in each part."""

    @property
    def shuffle(self) -> bool:
        return self.seed is not None

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "sourceDigest": self.source_digest,
            "parts": self.parts,
            "by": self.by,
            "shuffle": self.shuffle,
            "seed": self.seed,
            "version": VERSION,
            # Absent without a header, so that splits of 0.1 still compare equal.
            **({"header": self.header} if self.header else {}),
        }


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
    """The parts of a complete split."""

    request: Mapping[str, Any]
    """The request as JSON, because a manifest may come from another version."""
    parts: tuple[Part, ...]
    kept: tuple[int, ...] = field(default=(), compare=False)
    """Parts that this run found complete and did not write again; not stored in the file."""

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


@dataclass(frozen=True)
class StagedFile:
    name: str
    bytes: int
    sha256: str
    mark: str
    """Size and change mark of the source; a source that has changed since is copied again."""


@dataclass(frozen=True)
class Staged:
    """The files that a run has staged."""

    source: str
    files: tuple[StagedFile, ...]
    kept: tuple[str, ...] = field(default=(), compare=False)
    """Files that this run found complete and did not copy again; not stored in the file."""

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    def as_json(self) -> dict[str, Any]:
        files = [asdict(file) for file in self.files]
        return {"version": 1, "source": self.source, "bytes": self.bytes, "files": files}
