"""The store for any other file system that fsspec can write to."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast
from uuid import uuid4

from paddlejob.data.drivers.discovery import tree
from paddlejob.data.drivers.errors import translate_errors
from paddlejob.data.drivers.source import Source
from paddlejob.data.journal import JOURNAL, WORK_DIR, format_entries
from paddlejob.data.stores.base import is_part_number
from paddlejob.data.stores.upload import Upload
from paddlejob.errors import NotPossible, PaddleJobError

_OWNER = f"{WORK_DIR}/owner"
_COMMITS = frozenset({"s3", "s3a", "gs", "gcs"})
"""Uploads to these become visible when committed, so they need no drafts."""
_RENAMES_DIRECTORIES = frozenset({"webhdfs", "hdfs"})
"""Atomically. On other file systems, files are moved one by one."""


class RemoteStore:
    """Writes without locks: a run that finds that a later one has started stops."""

    def __init__(self, url: str, fs: Any, path: str) -> None:
        self.url = url
        self.is_local = False
        self._fs, self._root = fs, path.rstrip("/")
        self._run = uuid4().hex
        self._drafts = f"{self._root}/{WORK_DIR}/drafts/{self._run}"
        protocols = {fs.protocol} if isinstance(fs.protocol, str) else set(fs.protocol)
        self._direct = bool(protocols & _COMMITS)
        self._renames_directories = bool(protocols & _RENAMES_DIRECTORIES)
        self._uploads: dict[str, Upload] = {}
        self._journal = b""
        self.scratch = Path(tempfile.gettempdir())

    def read(self, name: str) -> bytes | None:
        try:
            with translate_errors(self.url):
                return bytes(self._fs.cat_file(f"{self._root}/{name}"))
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        with self.draft(name) as file:
            file.write(content)
        self.publish(name)

    def list_files(self, name: str) -> list[Source]:
        with translate_errors(self.url):
            self._fs.invalidate_cache()
            return tree(self._fs, f"{self._root}/{name}".rstrip("/"))

    def part_numbers(self) -> list[int]:
        with translate_errors(self.url):
            self._fs.invalidate_cache()
            paths = self._fs.ls(self._root, detail=False) if self._fs.exists(self._root) else []
        names = [path.rstrip("/").rpartition("/")[2] for path in paths]
        return sorted(int(name) for name in names if is_part_number(name))

    def find_files(self, names: Iterable[str]) -> dict[str, Source]:
        wanted = set(names)
        return {source.name: source for source in self.list_files("") if source.name in wanted}

    def occupied(self, names: Iterable[str]) -> list[str]:
        return list(self.find_files(names))

    def directories(self, names: Iterable[str]) -> dict[str, list[str]]:
        if self._direct:
            return {}  # Object stores have no directories that could block a file.
        with translate_errors(self.url):
            self._fs.invalidate_cache()
            exists = self._fs.exists(self._root)
            found = self._fs.find(self._root, withdirs=True, detail=True) if exists else {}
        kinds = {path.removeprefix(f"{self._root}/").rstrip("/"): info["type"] for path, info in found.items()}
        return {
            name: [path for path in kinds if path.startswith(f"{name}/")]
            for name in names
            if kinds.get(name) == "directory"
        }

    def draft(self, name: str) -> IO[bytes]:
        with translate_errors(self.url):
            if self._direct:
                file = self._fs.open(f"{self._root}/{name}", "wb", autocommit=False)
                self._uploads[name] = Upload(file, self.url)
                return cast(IO[bytes], self._uploads[name])
            path = f"{self._drafts}/{name}"
            self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
            return cast(IO[bytes], Upload(self._fs.open(path, "wb"), self.url))

    def publish(self, name: str) -> None:
        self._check_owner()
        with translate_errors(self.url):
            if self._direct:
                self._commit(name)
            elif self._fs.exists(draft := f"{self._drafts}/{name}"):
                self._move(draft, name)

    def _check_owner(self) -> None:
        if self.read(_OWNER) != self._run.encode():
            raise NotPossible(f"{self.url}: another pdj process has started writing here; wait for it to finish")

    def _move(self, draft: str, name: str) -> None:
        final = f"{self._root}/{name}"
        is_directory = self._fs.isdir(draft)
        if is_directory:
            self.remove(name)
        if is_directory and not self._renames_directories:
            moves = {path: final + path.removeprefix(draft) for path in self._fs.find(draft)}
        else:
            moves = {draft: final}
        for path, to in moves.items():
            self._fs.makedirs(to.rpartition("/")[0], exist_ok=True)
            self._fs.mv(path, to)

    def _commit(self, name: str) -> None:
        written = {n for n in self._uploads if n == name or n.startswith(f"{name}/")}
        if name not in written:
            for stale in {f"{name}/{source.name}" for source in self.list_files(name)} - written:
                self.remove(stale)
        for path in sorted(written):
            self._uploads.pop(path).commit()

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError), translate_errors(self.url):
            self._fs.rm(f"{self._root}/{name}", recursive=True)

    def remove_empty(self, name: str) -> None:
        below = self.directories([name]).get(name, [])
        for directory in (*sorted(below, reverse=True), name):
            with suppress(FileNotFoundError), translate_errors(self.url):
                self._fs.rmdir(f"{self._root}/{directory}")

    def append_journal(self, entry: dict[str, Any]) -> None:
        self._journal += format_entries(entry)
        self.write(JOURNAL, self._journal)

    def rewrite_journal(self, entries: list[dict[str, Any]]) -> None:
        self._journal = format_entries(*entries)
        self.write(JOURNAL, self._journal)

    def discard_journal(self) -> None:
        self._check_owner()
        self.remove(WORK_DIR)

    def begin(self) -> None:
        self.remove(f"{WORK_DIR}/drafts")
        with translate_errors(self.url):
            if not self._direct:  # It would create a bucket, which is up to the user.
                self._fs.makedirs(f"{self._root}/{WORK_DIR}", exist_ok=True)
            self._fs.pipe_file(f"{self._root}/{_OWNER}", self._run.encode())

    def clear_scratch(self) -> None:
        """Do nothing: each run has a scratch directory of its own."""

    def has_space_for(self, size: int, scratch: int = 0) -> bool:
        return shutil.disk_usage(self.scratch).free >= scratch

    @contextmanager
    def locked(self) -> Iterator[None]:
        with tempfile.TemporaryDirectory(prefix="pdj-data-") as scratch:
            self.scratch = Path(scratch)
            try:
                yield
            finally:
                self._remove_drafts()

    def _remove_drafts(self) -> None:
        """Remove what can be removed: an unreachable store must not hide why the run failed."""
        with suppress(PaddleJobError, OSError):
            for upload in self._uploads.values():
                upload.discard()
            if self.read(_OWNER) == self._run.encode():
                self.remove(f"{WORK_DIR}/drafts" if self.read(JOURNAL) is not None else WORK_DIR)
