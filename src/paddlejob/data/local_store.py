"""A directory on this machine, or on a volume that is mounted here, as a place to write to."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from fsspec.implementations.local import LocalFileSystem

from paddlejob.data.journal import JOURNAL, line
from paddlejob.data.sources import WORK_DIR, Source, tree
from paddlejob.errors import NotPossible


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
        return tree(LocalFileSystem(), str(self._root / name))

    def draft(self, name: str) -> IO[bytes]:
        path = self._drafts / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("wb")

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
            final.rename(old)
        draft.replace(final)
        if self._durable:
            _sync(final.parent)
        shutil.rmtree(old, ignore_errors=True)

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

    def drop_drafts(self) -> None:
        for leftover in (self._drafts, self._work / "old", self.scratch / "passing"):
            shutil.rmtree(leftover, ignore_errors=True)

    def drop_scratch(self) -> None:
        shutil.rmtree(self.scratch / "plain", ignore_errors=True)

    def room_for(self, size: int) -> bool:
        return shutil.disk_usage(self._root).free >= size

    @contextmanager
    def locked(self) -> Iterator[None]:
        was_there = self._root.is_dir()
        self._work.mkdir(parents=True, exist_ok=True)
        with (self._work / "lock").open("wb") as file:
            self._lock(file)
            try:
                yield
            finally:
                if not (self._root / JOURNAL).exists():
                    shutil.rmtree(self._work, ignore_errors=True)
                    if not was_there:
                        with suppress(OSError):
                            self._root.rmdir()

    def _lock(self, file: IO[bytes]) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise NotPossible(f"{self.url}: another pdj is writing here; wait until it has ended") from error
            # Some network volumes have no locks at all; there the user has to keep runs apart.


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
