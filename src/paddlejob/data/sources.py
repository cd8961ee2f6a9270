"""Finding the source files and reading ranges of them, wherever fsspec can reach."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from paddlejob.data.drivers import filesystem, is_web, words
from paddlejob.data.local_files import LocalFiles
from paddlejob.data.newlines import CHUNK
from paddlejob.errors import BadInput, NotPossible, PaddleJobError

WORK_DIR = ".pdj-data"
STAGED_NAME = ".pdj-staged.json"
_OURS = {WORK_DIR, STAGED_NAME}
_CHANGE_MARKS = (
    "ETag", "etag", "mtime", "LastModified", "last_modified", "Last-Modified", "modificationTime", "modified",
    "created",
)  # fmt: skip


@dataclass(frozen=True)
class Source:
    """One file to read; `name` is its path below the directory that was named."""

    name: str
    path: str
    fs: Any
    size: int | None
    mark: str
    """Changes when the file does: an ETag or a modification time."""

    @property
    def is_local(self) -> bool:
        return isinstance(self.fs, LocalFiles)

    @property
    def seeks(self) -> bool:
        """Servers of plain HTTP need not honour ranges, so they are only ever read from front to back."""
        return not is_web(self.fs)

    @property
    def shown(self) -> str:
        """The path as it may stand in a message."""
        return without_secrets(self.path)

    def chunks(self, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        """The bytes from `start` on; `length` of them, or all that follow."""
        left = length if length is not None or self.size is None else self.size - start
        with _readable(self.shown), self._open(start) as file:
            while left is None or left > 0:
                chunk = file.read(CHUNK if left is None else min(CHUNK, left))
                if not chunk:
                    break
                yield chunk
                if left is not None:
                    left -= len(chunk)
        if left:
            raise NotPossible(
                f"{self.shown}: ended {left} bytes too early; run the same command again once it is at rest and whole"
            )

    def _open(self, start: int) -> Any:
        if is_web(self.fs):
            from paddlejob.data.web import Page

            return Page(self.fs, self.path, self.size, self.mark)
        file = self.fs.open(self.path, "rb", block_size=8 * CHUNK)
        file.seek(start)
        return file

    def refuse_change(self) -> None:
        """Raise if the file is not the one that was found."""
        with _readable(self.shown):
            self.fs.invalidate_cache(self.path)
            stamp = _stamp(self.fs.info(self.path))
        if stamp != (self.size, self.mark):
            raise NotPossible(f"{self.shown}: changed while it was read; run again once it is at rest")


@contextmanager
def _readable(path: str) -> Iterator[None]:
    try:
        yield
    except (PaddleJobError, GeneratorExit):
        raise
    except PermissionError as error:
        raise BadInput(f"{path}: may not be read; check its permissions or your credentials") from error
    # Drivers raise errors of their own libraries (aiohttp, botocore), which are not all OSErrors.
    except Exception as error:
        raise NotPossible(f"{path}: could not be read: {words(error)}; run the same command again to go on") from error


def find(url: str) -> list[Source]:
    """Every file that `url` names, sorted by name: a file, a glob or a directory."""
    fs, path = filesystem(url)
    shown = without_secrets(url)
    try:
        found = _look(fs, path)
    except PaddleJobError:
        raise
    except PermissionError as error:
        where = f" (at {error.filename})" if error.filename not in (None, path) else ""
        raise BadInput(f"{shown}: may not be read{where}; check its permissions or your credentials") from error
    except FileNotFoundError as error:
        if (reason := _web_reason(error)) is None:
            raise BadInput(f"{shown}: there is no such file or directory") from error
        raise NotPossible(f"{shown}: cannot be reached: {words(reason)}") from error
    except Exception as error:
        raise NotPossible(f"{shown}: cannot be reached: {words(error)}") from error
    if not found:
        raise BadInput(f"{shown}: names no file; give a file, a glob that matches, or a directory with files")
    return sorted(found, key=lambda source: source.name)


def _web_reason(error: FileNotFoundError) -> BaseException | None:
    """Why a page could not be had, where it is not that there is none: fsspec says so of every failure."""
    reason = error.__cause__
    from_web = type(reason).__module__.startswith("aiohttp")
    return reason if from_web and getattr(reason, "status", None) not in (404, 410) else None


def tree(fs: Any, path: str) -> list[Source]:
    """Every file below a directory, which need not be there."""
    return _sources(fs, fs.find(path, detail=True), path) if fs.exists(path) else []


def one_file(fs: Any, directory: str, name: str) -> Source:
    path = f"{directory}/{name}"
    return _source(fs, path, fs.info(path), directory)


def is_below(name: str) -> bool:
    """Whether a name, put after a directory, names something in it."""
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts


def is_number(name: str) -> bool:
    """Whether a name is 0, 1, 2 ..., written as parts are."""
    return name.isascii() and name.isdecimal() and name == str(int(name))


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


def _look(fs: Any, path: str) -> list[Source]:
    if any(sign in path for sign in ("*[" if is_web(fs) else "*?[")) and not fs.exists(path):
        infos = fs.glob(path, detail=True)
        fixed = path[: min(path.index(sign) for sign in "*?[" if sign in path)]
        return _sources(fs, infos, fixed.rpartition("/")[0])
    info = fs.info(path)
    if info["type"] == "directory":
        return tree(fs, path)
    return [_source(fs, path, info, path.rpartition("/")[0])]


def _sources(fs: Any, infos: dict[str, Any], base: str) -> list[Source]:
    files = {path: info for path, info in infos.items() if info["type"] == "file"}
    found = [_source(fs, path, info, base) for path, info in files.items()]
    return [source for source in found if not _OURS & set(PurePosixPath(source.name).parts)]


def _source(fs: Any, path: str, info: dict[str, Any], base: str) -> Source:
    name = path.removeprefix(base)
    if is_web(fs):
        name = unquote(name.partition("?")[0])
    name = name.strip("/")
    if not is_below(name):
        raise BadInput(f"{path}: has no usable file name; name a file or a directory of files")
    size, mark = _stamp(info)
    return Source(name, path, fs, size, mark)


def _stamp(info: dict[str, Any]) -> tuple[int | None, str]:
    mark = next((info[key] for key in _CHANGE_MARKS if info.get(key) is not None), "")
    # Some drivers give a number where they list files and a date where they are asked for one.
    return info.get("size"), str(mark.timestamp() if isinstance(mark, datetime) else mark)
