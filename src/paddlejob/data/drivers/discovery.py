"""Finds the source files that a path, glob or URL refers to."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

from paddlejob.data.drivers.errors import describe
from paddlejob.data.drivers.resolve import filesystem, is_web
from paddlejob.data.drivers.source import Source, size_and_mark
from paddlejob.data.drivers.urls import is_below, redact
from paddlejob.data.journal import WORK_DIR
from paddlejob.data.manifest import STAGED
from paddlejob.errors import BadInput, NotPossible, PaddleJobError

_OURS = {WORK_DIR, STAGED}


def find(url: str) -> list[Source]:
    """Return every file that `url` (a file, a glob or a directory) refers to, sorted by name."""
    fs, path = filesystem(url)
    shown = redact(url)
    try:
        found = _find(fs, path)
    except PaddleJobError:
        raise
    except PermissionError as error:
        where = f" (at {error.filename})" if error.filename not in (None, path) else ""
        raise BadInput(f"{shown}: permission denied{where}; check its permissions or your credentials") from error
    except FileNotFoundError as error:
        if (reason := _web_reason(error)) is None:
            raise BadInput(f"{shown}: no such file or directory; check the path") from error
        raise NotPossible(f"{shown}: request failed: {describe(reason)}") from error
    except Exception as error:
        raise NotPossible(f"{shown}: request failed: {describe(error)}") from error
    if not found:
        raise BadInput(f"{shown}: no files found; specify a file, a glob that matches, or a directory with files")
    return sorted(found, key=lambda source: source.name)


def tree(fs: Any, path: str) -> list[Source]:
    """Return every file below a directory; none if the directory does not exist."""
    return _sources(fs, fs.find(path, detail=True), path) if fs.exists(path) else []


def one_file(fs: Any, directory: str, name: str) -> Source:
    path = f"{directory}/{name}"
    return _source(fs, path, fs.info(path), directory)


def _web_reason(error: FileNotFoundError) -> BaseException | None:
    """Return why a request failed, unless the page does not exist: fsspec raises FileNotFoundError either way."""
    reason = error.__cause__
    from_web = type(reason).__module__.startswith("aiohttp")
    return reason if from_web and getattr(reason, "status", None) not in (404, 410) else None


def _find(fs: Any, path: str) -> list[Source]:
    if any(sign in path for sign in ("*[" if is_web(fs) else "*?[")) and not fs.exists(path):
        infos = fs.glob(path, detail=True)
        fixed = path[: min(path.index(sign) for sign in "*?[" if sign in path)]
        return _sources(fs, infos, fixed.rpartition("/")[0])
    info = fs.info(path)
    if info["type"] == "directory":
        return tree(fs, path)
    named = path.partition("?")[0] if is_web(fs) else path
    return [_source(fs, path, info, named.rpartition("/")[0])]


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
        raise BadInput(f"{redact(path)} has no usable file name; specify a file or a directory with files")
    size, mark = size_and_mark(info)
    return Source(name, path, fs, size, mark)
