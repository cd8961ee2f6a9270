"""Finding the source files and reading ranges of them, wherever fsspec can reach."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from fsspec import AbstractFileSystem
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from paddlejob.data.newlines import CHUNK
from paddlejob.errors import BadInput, NotPossible, PaddleJobError

WORK_DIR = ".pdj-data"
STAGED_NAME = ".pdj-staged.json"
_OURS = {WORK_DIR, STAGED_NAME}
_CHANGE_MARKS = ("ETag", "etag", "mtime", "LastModified", "last_modified", "modified", "created")


@dataclass(frozen=True)
class Source:
    """One file to read; `name` is its path below the directory that was named."""

    name: str
    path: str
    fs: AbstractFileSystem
    size: int | None
    mark: str
    """Changes when the file does: an ETag or a modification time."""

    @property
    def is_local(self) -> bool:
        return isinstance(self.fs, LocalFileSystem)

    @property
    def seeks(self) -> bool:
        """Servers of plain HTTP need not honour ranges, so they are only ever read from front to back."""
        return not _is_web(self.fs)

    def open(self) -> IO[bytes]:
        if self.is_local:
            return Path(self.path).open("rb", buffering=0)
        block = 8 * CHUNK if self.seeks else 0
        opened: IO[bytes] = self.fs.open(self.path, "rb", block_size=block)
        return opened

    def chunks(self, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        """The bytes from `start` on; `length` of them, or all that follow."""
        left = length
        with _readable(self.path), self.open() as file:
            if start:
                file.seek(start)
            while left is None or left > 0:
                chunk = file.read(CHUNK if left is None else min(CHUNK, left))
                if not chunk:
                    break
                yield chunk
                if left is not None:
                    left -= len(chunk)
        if left:
            raise NotPossible(f"{self.path}: became shorter while it was read; run again once it is at rest")

    def refuse_change(self) -> None:
        """Raise if the file is not the one that was found."""
        with _readable(self.path):
            self.fs.invalidate_cache(self.path)
            stamp = _stamp(self.fs.info(self.path))
        if stamp != (self.size, self.mark):
            raise NotPossible(f"{self.path}: changed while it was read; run again once it is at rest")


@contextmanager
def _readable(path: str) -> Iterator[None]:
    try:
        yield
    except (PaddleJobError, GeneratorExit):
        raise
    # Drivers raise errors of their own libraries (aiohttp, botocore), which are not all OSErrors.
    except Exception as error:
        raise NotPossible(f"{path}: could not be read: {str(error) or type(error).__name__}") from error


def filesystem(url: str) -> tuple[AbstractFileSystem, str]:
    try:
        fs, path = url_to_fs(url)
    except ImportError as error:
        raise BadInput(f"{url}: {error}") from error
    except ValueError as error:
        raise BadInput(f"{url}: {error}; use a path or a URL that fsspec knows, such as s3://") from error
    return fs, str(path)


def find(url: str) -> list[Source]:
    """Every file that `url` names, sorted by name: a file, a glob or a directory."""
    fs, path = filesystem(url)
    try:
        found = _look(fs, path)
    except FileNotFoundError as error:
        raise BadInput(f"{url}: there is no such file or directory") from error
    except PermissionError as error:
        raise BadInput(f"{url}: may not be read; check its permissions or your credentials") from error
    except OSError as error:
        raise NotPossible(f"{url}: cannot be reached: {error}") from error
    if not found:
        raise BadInput(f"{url}: names no file; give a file, a glob that matches, or a directory with files")
    return sorted(found, key=lambda source: source.name)


def tree(fs: AbstractFileSystem, path: str) -> list[Source]:
    """Every file below a directory, which need not be there."""
    return _sources(fs, fs.find(path, detail=True), path) if fs.exists(path) else []


def digest(sources: Sequence[Source]) -> str:
    """Equal for equal names, sizes and change marks."""
    summary = hashlib.sha256()
    for source in sources:
        summary.update(json.dumps([source.name, source.size, source.mark]).encode() + b"\n")
    return summary.hexdigest()


def without_secrets(url: str) -> str:
    """The URL without user, password and query, which may hold credentials."""
    cut = urlsplit(url)
    if not cut.netloc:
        return url
    return urlunsplit((cut.scheme, cut.netloc.rpartition("@")[2], cut.path, "", ""))


def _look(fs: AbstractFileSystem, path: str) -> list[Source]:
    if any(sign in path for sign in ("*[" if _is_web(fs) else "*?[")) and not fs.exists(path):
        infos = fs.glob(path, detail=True)
        fixed = path[: min(path.index(sign) for sign in "*?[" if sign in path)]
        return _sources(fs, infos, fixed.rpartition("/")[0])
    info = fs.info(path)
    if info["type"] == "directory":
        return tree(fs, path)
    return [_source(fs, path, info, path.rpartition("/")[0])]


def _sources(fs: AbstractFileSystem, infos: dict[str, Any], base: str) -> list[Source]:
    files = {path: info for path, info in infos.items() if info["type"] == "file"}
    found = [_source(fs, path, info, base) for path, info in files.items()]
    return [source for source in found if not _OURS & set(PurePosixPath(source.name).parts)]


def _source(fs: AbstractFileSystem, path: str, info: dict[str, Any], base: str) -> Source:
    name = path.removeprefix(base).strip("/")
    if _is_web(fs):
        name = unquote(name.partition("?")[0])
    if not name or ".." in PurePosixPath(name).parts:
        raise BadInput(f"{path}: has no usable file name; name a file or a directory of files")
    size, mark = _stamp(info)
    return Source(name, path, fs, size, mark)


def _stamp(info: dict[str, Any]) -> tuple[int | None, str]:
    mark = next((info[key] for key in _CHANGE_MARKS if info.get(key) is not None), "")
    # Some drivers give a number where they list files and a date where they are asked for one.
    return info.get("size"), str(mark.timestamp() if isinstance(mark, datetime) else mark)


def _is_web(fs: AbstractFileSystem) -> bool:
    # By name: importing the class would import aiohttp, which takes longer than splitting a small file.
    return "http" in fs.protocol
