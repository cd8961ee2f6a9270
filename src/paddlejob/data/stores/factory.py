"""Opens the store for a path or URL, and translates the errors of writing to it."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from paddlejob.data.drivers.errors import describe
from paddlejob.data.drivers.local_files import LocalFiles
from paddlejob.data.drivers.resolve import filesystem, is_web
from paddlejob.data.drivers.urls import redact
from paddlejob.data.stores.base import Store
from paddlejob.data.stores.local import LocalStore
from paddlejob.data.stores.remote import RemoteStore
from paddlejob.errors import BadInput, NotPossible

_FREE_SPACE = "free some space, then run the same command again to resume"
_REMEDIES = {
    errno.ENOSPC: _FREE_SPACE,
    errno.EDQUOT: _FREE_SPACE,
    errno.EFBIG: "raise the file size limit, or ask for more parts",
    errno.EROFS: "choose a writable directory",
}


@contextmanager
def open_store(url: str, durable: bool = True) -> Iterator[Store]:
    """Open the store at `url` exclusively, without leftovers of an interrupted write.

    `durable` files are on disk, and not only in the page cache, before they become visible.
    """
    fs, path = filesystem(url)
    shown = redact(url)
    if is_web(fs):
        raise BadInput(f"{shown}: web servers are read-only; choose a directory or another store")
    store: LocalStore | RemoteStore
    store = LocalStore(shown, path, durable) if isinstance(fs, LocalFiles) else RemoteStore(shown, fs, path)
    try:
        with store.locked():
            store.scratch.mkdir(parents=True, exist_ok=True)
            yield store
    except (NotADirectoryError, FileExistsError) as error:
        raise BadInput(
            f"{error.filename or shown} is not a directory; choose a directory (it is created if it does not exist)"
        ) from error
    except PermissionError as error:
        raise BadInput(f"{shown}: permission denied; check its permissions or your credentials") from error
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0, "run the same command again to resume")
        raise NotPossible(f"{shown}: {describe(error)}; {remedy}") from error
