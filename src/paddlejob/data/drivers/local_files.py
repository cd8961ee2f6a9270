"""Local files behind the interface of an fsspec driver, without the time that importing fsspec takes.

Symbolic links are followed, so a tree of links to files is a tree of files. A file that cannot be read is an error and
never skipped silently.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import IO, Any

from paddlejob.errors import BadInput

_PREFIXES = ("file://", "local://")


def is_local(url: str) -> bool:
    """Whether a path or URL refers to a file on this machine."""
    return "::" not in url and ("://" not in url or url.startswith(_PREFIXES))


def local_path(url: str) -> str:
    for prefix in _PREFIXES:
        url = url.removeprefix(prefix)
    return os.path.abspath(os.path.expanduser(url))  # noqa: PTH100, PTH111 - Path keeps "..", which a URL may contain


@dataclass(frozen=True)
class LocalFiles:
    protocol = ("file", "local")

    def info(self, path: str) -> dict[str, Any]:
        return _info(path, Path(path).stat())

    def exists(self, path: str) -> bool:
        return Path(path).exists()

    def isdir(self, path: str) -> bool:
        return Path(path).is_dir()

    def glob(self, path: str, detail: bool = True) -> dict[str, dict[str, Any]]:
        # Path.glob does not accept absolute patterns.
        found = glob(path, recursive=True, include_hidden=True)  # noqa: PTH207
        return {one: _info(one, _stat(Path(one))) for one in found}

    def find(self, path: str, detail: bool = True) -> dict[str, dict[str, Any]]:
        """Return every file below a directory."""
        return {info["name"]: info for info in _walk(path, ())}

    def open(self, path: str, mode: str = "rb", block_size: int = 0) -> IO[bytes]:
        return Path(path).open("rb", buffering=0)

    def cat_file(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def invalidate_cache(self, path: str | None = None) -> None:
        """Do nothing: nothing is cached."""


def _walk(path: str, above: tuple[tuple[int, int], ...]) -> Iterator[dict[str, Any]]:
    current = Path(path).stat()
    if (current.st_dev, current.st_ino) in above:
        raise BadInput(f"{path} is a link to a directory above it, which makes an endless loop; remove the link")
    with os.scandir(path) as entries:
        for entry in entries:
            found = _stat(entry)
            if stat.S_ISDIR(found.st_mode):
                yield from _walk(entry.path, (*above, (current.st_dev, current.st_ino)))
            else:
                yield _info(entry.path, found)


def _stat(found: os.DirEntry[str] | Path) -> os.stat_result:
    try:
        return found.stat()
    except FileNotFoundError as error:
        raise BadInput(f"{os.fspath(found)} is a broken link; repair or remove it") from error


def _info(path: str, found: os.stat_result) -> dict[str, Any]:
    if stat.S_ISDIR(found.st_mode):
        return {"name": path, "type": "directory", "size": 0}
    if not stat.S_ISREG(found.st_mode):
        raise BadInput(f"{path} is neither a file nor a directory; copy its content to a regular file first")
    return {"name": path, "type": "file", "size": found.st_size, "mtime": found.st_mtime_ns}
