"""A directory on this machine, or on a volume that is mounted here, as a place to write to."""

from __future__ import annotations

import errno
import io
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from paddlejob.data.journal import JOURNAL, line
from paddlejob.data.local_files import LocalFiles
from paddlejob.data.local_lock import alone
from paddlejob.data.sources import WORK_DIR, Source, is_number, one_file, tree
from paddlejob.errors import BadInput

_HANDED_OVER_AT_ONCE = 16 << 20


class LocalStore:
    """A directory on this machine: fsync, then one rename for a whole part."""

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

    def files_in(self, name: str) -> list[Source]:
        return tree(LocalFiles(), str(self._root / name))

    def numbers(self) -> list[int]:
        return sorted(int(found.name) for found in self._root.iterdir() if is_number(found.name))

    def files_named(self, names: Iterable[str]) -> dict[str, Source]:
        there = [name for name in names if (self._root / name).is_file()]
        return {name: one_file(LocalFiles(), str(self._root), name) for name in there}

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
                    f"{self.url}: {to} is on another file system than the directory itself, so that nothing can appear "
                    "there whole; mount that file system elsewhere, or name it as DEST"
                ) from error
            raise

    def remove(self, name: str) -> None:
        path = self._root / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def note(self, entry: dict[str, Any]) -> None:
        with (self._root / JOURNAL).open("ab") as file:
            file.write(line(entry))

    def renote(self, entries: list[dict[str, Any]]) -> None:
        self.write(JOURNAL, b"".join(map(line, entries)))

    def forget(self) -> None:
        self.remove(JOURNAL)

    def begin(self) -> None:
        """Nobody else is here: the directory is locked."""

    def _drop_drafts(self) -> None:
        for leftover in (self._drafts, self._work / "old", self.scratch / "passing"):
            shutil.rmtree(leftover, ignore_errors=True)

    def drop_scratch(self) -> None:
        shutil.rmtree(self.scratch / "plain", ignore_errors=True)

    def room_for(self, size: int, scratch: int = 0) -> bool:
        return shutil.disk_usage(self._root).free >= size + scratch

    @contextmanager
    def locked(self) -> Iterator[None]:
        was_there = self._root.is_dir()
        try:
            with alone(self._work / "lock", self.url):
                try:
                    self._drop_drafts()
                    yield
                finally:
                    self._drop_drafts()
                    if not (self._root / JOURNAL).exists():
                        shutil.rmtree(self.scratch, ignore_errors=True)
        finally:
            if not was_there:
                with suppress(OSError):
                    self._root.rmdir()


class _Draft(io.BufferedWriter):
    """A file that goes to disk while it is written, so that little is left to wait for when it is to be seen."""

    def __init__(self, raw: io.FileIO) -> None:
        super().__init__(raw)
        self._written = self._handed_over = 0

    def write(self, data: Any) -> int:
        count = super().write(data)
        self._written += count
        if self._written - self._handed_over >= _HANDED_OVER_AT_ONCE:
            self._hand_over()
        return count

    def _hand_over(self) -> None:
        # On Linux this begins to write out what is not on disk yet, and does not wait for it.
        if hasattr(os, "posix_fadvise"):
            with suppress(OSError):
                length = self._written - self._handed_over
                os.posix_fadvise(self.fileno(), self._handed_over, length, os.POSIX_FADV_DONTNEED)
        self._handed_over = self._written


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
