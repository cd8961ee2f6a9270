"""Where parts and files are written, so that each is seen whole or not at all.

A store is a directory. Everything unfinished lives in its hidden work directory, which a killed run leaves
behind for the next one and a finished run removes. `draft` opens a file there; `publish` makes a draft
directory, or one drafted file, appear under its real name.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

from paddlejob.data.drivers import filesystem, is_web
from paddlejob.data.journal import JOURNAL, entries
from paddlejob.data.local_files import LocalFiles
from paddlejob.data.local_store import LocalStore
from paddlejob.data.remote_store import RemoteStore
from paddlejob.data.sources import Source
from paddlejob.errors import BadInput, NotPossible

_MAKE_ROOM = "free some space, then run the same command again to go on"
_ADVICE = {
    errno.ENOSPC: _MAKE_ROOM,
    errno.EDQUOT: _MAKE_ROOM,
    errno.EFBIG: "allow larger files, or ask for more parts",
    errno.EROFS: "name a directory that can be written",
}


class Store(Protocol):
    url: str
    is_local: bool
    scratch: Path
    """A directory on this machine for what need not outlive the run."""

    def read(self, name: str) -> bytes | None: ...

    def write(self, name: str, content: bytes) -> None: ...

    def files_in(self, name: str) -> list[Source]: ...

    def numbers(self) -> list[int]:
        """The directories 0, 1, 2 ... that are there, of parts or not."""

    def files_named(self, names: Iterable[str]) -> dict[str, Source]:
        """Those of the files that are there."""

    def draft(self, name: str) -> IO[bytes]: ...

    def publish(self, name: str) -> None: ...

    def remove(self, name: str) -> None: ...

    def note(self, entry: dict[str, Any]) -> None: ...

    def renote(self, entries: list[dict[str, Any]]) -> None: ...

    def forget(self) -> None:
        """Leave nothing for a next run to take up."""

    def begin(self) -> None:
        """To be called before anything is changed: where there are no locks, other runs now give way to this one."""

    def drop_scratch(self) -> None: ...

    def room_for(self, size: int, scratch: int = 0) -> bool: ...


@contextmanager
def opened(url: str, durable: bool = True) -> Iterator[Store]:
    """The store at `url`, ours alone until the block ends, with nothing half written in it.

    `durable` files are on disk, not only in the system's cache, before they are seen.
    """
    fs, path = filesystem(url)
    if is_web(fs):
        raise BadInput(f"{url}: a web server can be read but not written; name a directory or another store")
    store: LocalStore | RemoteStore
    store = LocalStore(url, path, durable) if isinstance(fs, LocalFiles) else RemoteStore(url, fs, path)
    try:
        with store.locked():
            store.scratch.mkdir(parents=True, exist_ok=True)
            yield store
    except (NotADirectoryError, FileExistsError) as error:
        raise BadInput(
            f"{error.filename or url}: is not a directory; name a directory, which is made if need be"
        ) from error
    except PermissionError as error:
        raise BadInput(f"{url}: may not be written; check its permissions or your credentials") from error
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0, "run the same command again to go on")
        raise NotPossible(f"{url}: {error.strerror or error}; {advice}") from error


def notes(store: Store) -> list[dict[str, Any]]:
    """What an unfinished run has left."""
    return entries(store.read(JOURNAL) or b"")


def finish(store: Store, name: str, document: dict[str, Any]) -> None:
    """Write the manifest, which says that all is there, and remove what was only needed on the way."""
    store.write(name, json.dumps(document, indent=1).encode() + b"\n")
    store.forget()
