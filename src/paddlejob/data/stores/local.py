"""The store for a local directory or a mounted volume."""

from __future__ import annotations

import errno
import io
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from paddlejob.data.drivers.discovery import one_file, tree
from paddlejob.data.drivers.local_files import LocalFiles
from paddlejob.data.drivers.source import Source
from paddlejob.data.journal import JOURNAL, WORK_DIR, format_entries
from paddlejob.data.stores.base import is_part_number
from paddlejob.data.stores.lock import exclusive
from paddlejob.errors import BadInput

_WRITEBACK_BYTES = 16 << 20


class LocalStore:
    """Writes a part to a draft, syncs it, and renames it as a whole."""

    def __init__(self, url: str, path: str, durable: bool) -> None:
        self.url = url
        self.is_local = True
        self._durable = durable
        self._root = Path(path)
        self._work = self._root / WORK_DIR
        self._drafts = self._work / "drafts"
        self.scratch = self._work / "scratch"

    def read(self, name: str) -> bytes | None:
        try:
            return (self._root / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        with self.draft(name) as file:
            file.write(content)
        self.publish(name)

    def list_files(self, name: str) -> list[Source]:
        return tree(LocalFiles(), str(self._root / name))

    def part_numbers(self) -> list[int]:
        return sorted(int(found.name) for found in self._root.iterdir() if is_part_number(found.name))

    def find_files(self, names: Iterable[str]) -> dict[str, Source]:
        existing = [name for name in names if (self._root / name).is_file()]
        return {name: one_file(LocalFiles(), str(self._root), name) for name in existing}

    def occupied(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if os.path.lexists(self._root / name) and not self._is_directory(name)]

    def directories(self, names: Iterable[str]) -> dict[str, list[str]]:
        return {
            name: [path.relative_to(self._root).as_posix() for path in (self._root / name).rglob("*")]
            for name in names
            if self._is_directory(name)
        }

    def _is_directory(self, name: str) -> bool:
        path = self._root / name
        return path.is_dir() and not path.is_symlink()

    def draft(self, name: str) -> IO[bytes]:
        path = self._drafts / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return _Draft(io.FileIO(path, "wb"))

    def publish(self, name: str) -> None:
        draft, final = self._drafts / name, self._root / name
        if not draft.exists():
            draft.mkdir(parents=True)
        if self._durable:
            _sync_tree(draft)
        final.parent.mkdir(parents=True, exist_ok=True)
        old = self._work / "old" / name
        if draft.is_dir() and final.exists():
            old.parent.mkdir(parents=True, exist_ok=True)
            self._rename(final, old)
        self._rename(draft, final)
        if self._durable:
            _sync(final.parent)
        shutil.rmtree(old, ignore_errors=True)

    def _rename(self, path: Path, to: Path) -> None:
        try:
            path.replace(to)
        except OSError as error:
            if error.errno == errno.EXDEV:
                raise BadInput(
                    f"{self.url}: {to} is on another file system than the directory itself, so files cannot move to "
                    "it; mount that file system elsewhere, or use it as DEST"
                ) from error
            raise

    def remove(self, name: str) -> None:
        path = self._root / name
        if self._is_directory(name):
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def remove_empty(self, name: str) -> None:
        path = self._root / name
        for directory in (*sorted(path.rglob("*"), reverse=True), path):
            directory.rmdir()

    def append_journal(self, entry: dict[str, Any]) -> None:
        with (self._root / JOURNAL).open("ab") as file:
            file.write(format_entries(entry))

    def rewrite_journal(self, entries: list[dict[str, Any]]) -> None:
        self.write(JOURNAL, format_entries(*entries))

    def discard_journal(self) -> None:
        self.remove(JOURNAL)

    def begin(self) -> None:
        """Do nothing: the directory is locked."""

    def _remove_drafts(self) -> None:
        for leftover in (self._drafts, self._work / "old", self.scratch / "partial"):
            shutil.rmtree(leftover, ignore_errors=True)

    def clear_scratch(self) -> None:
        shutil.rmtree(self.scratch / "plain", ignore_errors=True)

    def has_space_for(self, size: int, scratch: int = 0) -> bool:
        return shutil.disk_usage(self._root).free >= size + scratch

    @contextmanager
    def locked(self) -> Iterator[None]:
        existed = self._root.is_dir()
        try:
            with exclusive(self._work / "lock", self.url):
                try:
                    self._remove_drafts()
                    yield
                finally:
                    self._remove_drafts()
                    if not (self._root / JOURNAL).exists():
                        shutil.rmtree(self.scratch, ignore_errors=True)
        finally:
            if not existed:
                with suppress(OSError):
                    self._root.rmdir()


class _Draft(io.BufferedWriter):
    """A file whose writeback starts while it is written, so that the final fsync takes little time."""

    def __init__(self, raw: io.FileIO) -> None:
        super().__init__(raw)
        self._written = self._started = 0

    def write(self, data: Any) -> int:
        count = super().write(data)
        self._written += count
        if self._written - self._started >= _WRITEBACK_BYTES:
            self._start_writeback()
        return count

    def _start_writeback(self) -> None:
        # On Linux this starts writing dirty pages to disk without waiting for them.
        if hasattr(os, "posix_fadvise"):
            with suppress(OSError):
                length = self._written - self._started
                os.posix_fadvise(self.fileno(), self._started, length, os.POSIX_FADV_DONTNEED)
        self._started = self._written


def _sync_tree(path: Path) -> None:
    for below in path.rglob("*") if path.is_dir() else ():
        _sync(below)
    _sync(path)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
