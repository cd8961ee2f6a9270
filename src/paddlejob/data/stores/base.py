"""The interface of a store: a directory whose parts and files appear complete, or not at all.

Everything unfinished lives in a hidden work directory, which a killed run leaves behind for the next one and a finished
run removes. `draft` opens a file there; `publish` makes a draft directory, or one drafted file, appear under its final
name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, Protocol

from paddlejob.data.drivers.source import Source
from paddlejob.data.journal import JOURNAL, parse_entries


class Store(Protocol):
    url: str
    """As it may appear in a message."""
    is_local: bool
    scratch: Path
    """A local directory for temporary files of this run."""

    def read(self, name: str) -> bytes | None: ...

    def write(self, name: str, content: bytes) -> None: ...

    def list_files(self, name: str) -> list[Source]:
        """Return every file below the directory `name`."""

    def find_files(self, names: Iterable[str]) -> dict[str, Source]:
        """Return those of the named files that exist."""

    def occupied(self, names: Iterable[str]) -> list[str]:
        """Return those of the names under which something other than a directory exists."""

    def directories(self, names: Iterable[str]) -> dict[str, list[str]]:
        """Return those of the names that are directories, with the names of everything below each."""

    def part_numbers(self) -> list[int]:
        """Return the existing directories named 0, 1, 2 and so on, whether or not they are parts."""

    def draft(self, name: str) -> IO[bytes]: ...

    def publish(self, name: str) -> None: ...

    def remove(self, name: str) -> None: ...

    def remove_empty(self, name: str) -> None:
        """Remove a directory that contains nothing but empty directories; fail if it contains a file."""

    def append_journal(self, entry: dict[str, Any]) -> None: ...

    def rewrite_journal(self, entries: list[dict[str, Any]]) -> None: ...

    def discard_journal(self) -> None:
        """Leave nothing for a later run to resume."""

    def begin(self) -> None:
        """Take over the store before the first change; without locks, earlier runs stop when they notice."""

    def clear_scratch(self) -> None: ...

    def has_space_for(self, size: int, scratch: int = 0) -> bool: ...


def read_journal(store: Store) -> list[dict[str, Any]]:
    """Return the entries that an unfinished run left."""
    return parse_entries(store.read(JOURNAL) or b"")


def complete(store: Store, name: str, document: dict[str, Any]) -> None:
    """Write the record that shows that everything is there, and remove what is no longer needed."""
    store.write(name, json.dumps(document, indent=1).encode() + b"\n")
    store.discard_journal()


def is_part_number(name: str) -> bool:
    """Whether a name is 0, 1, 2 and so on, as directories of parts are named."""
    return name.isascii() and name.isdecimal() and name == str(int(name))
