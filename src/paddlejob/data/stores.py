"""Where parts and files are written, so that each is seen whole or not at all.

A store is a directory. Everything unfinished lives in its hidden work directory, which a killed run leaves
behind for the next one and a finished run removes. `draft` opens a file there; `publish` makes a draft
directory, or one drafted file, appear under its real name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

from fsspec.implementations.local import LocalFileSystem

from paddlejob.data.journal import JOURNAL, entries
from paddlejob.data.local_store import LocalStore
from paddlejob.data.remote_store import RemoteStore
from paddlejob.data.sources import WORK_DIR, Source, filesystem
from paddlejob.errors import BadInput, NotPossible


class Store(Protocol):
    url: str
    is_local: bool
    scratch: Path
    """A directory on this machine for what need not outlive the run."""

    def read(self, name: str) -> bytes | None: ...

    def write(self, name: str, content: bytes) -> None: ...

    def files_in(self, name: str) -> list[Source]: ...

    def draft(self, name: str) -> IO[bytes]: ...

    def publish(self, name: str) -> None: ...

    def remove(self, name: str) -> None: ...

    def note(self, entry: dict[str, Any]) -> None: ...

    def renote(self, entries: list[dict[str, Any]]) -> None: ...

    def forget(self) -> None:
        """Leave nothing for a next run to take up."""

    def drop_drafts(self) -> None: ...

    def drop_scratch(self) -> None: ...

    def room_for(self, size: int) -> bool: ...


@contextmanager
def opened(url: str, durable: bool = True) -> Iterator[Store]:
    """The store at `url`, ours alone until the block ends, with nothing half written in it.

    `durable` files are on disk, not only in the system's cache, before they are seen.
    """
    fs, path = filesystem(url)
    store: LocalStore | RemoteStore
    store = LocalStore(url, path, durable) if isinstance(fs, LocalFileSystem) else RemoteStore(url, fs, path)
    try:
        with store.locked():
            store.drop_drafts()
            store.scratch.mkdir(parents=True, exist_ok=True)
            try:
                yield store
            finally:
                store.drop_drafts()
    except (NotADirectoryError, FileExistsError) as error:
        raise BadInput(f"{url}: is not a directory; name a directory, which is made if need be") from error
    except PermissionError as error:
        raise BadInput(f"{url}: may not be written; check its permissions or your credentials") from error
    except OSError as error:
        raise NotPossible(f"{url}: {error.strerror or error}; run the same command again to go on") from error


def notes(store: Store) -> list[dict[str, Any]]:
    """What an unfinished run has left."""
    return entries(store.read(JOURNAL) or b"")


def finish(store: Store, name: str, document: dict[str, Any]) -> None:
    """Write the manifest, which says that all is there, and remove what was only needed on the way."""
    store.write(name, json.dumps(document, indent=1).encode() + b"\n")
    store.remove(WORK_DIR)
