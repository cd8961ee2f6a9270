"""Any other file system that fsspec can write to, as a place to write to."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from paddlejob.data.journal import JOURNAL, line
from paddlejob.data.sources import WORK_DIR, Source, tree


class RemoteStore:
    """Anything else that fsspec writes: one file at a time, the manifest last.

    Stores whose uploads appear only when they are committed are written to directly; the others by way of a
    draft that is moved.
    """

    _COMMITS = frozenset({"s3", "s3a", "gs", "gcs"})

    def __init__(self, url: str, fs: Any, path: str) -> None:
        self.url = url
        self.is_local = False
        self._fs, self._root = fs, path.rstrip("/")
        self._drafts = f"{self._root}/{WORK_DIR}/drafts"
        protocols = {fs.protocol} if isinstance(fs.protocol, str) else set(fs.protocol)
        self._direct = bool(protocols & self._COMMITS)
        self._open: dict[str, Any] = {}
        self._notes = b""
        self.scratch = Path(tempfile.gettempdir())

    def read(self, name: str) -> bytes | None:
        try:
            return bytes(self._fs.cat_file(f"{self._root}/{name}"))
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        with self.draft(name) as file:
            file.write(content)
        self.publish(name)

    def files_in(self, name: str) -> list[Source]:
        self._fs.invalidate_cache()
        return tree(self._fs, f"{self._root}/{name}".rstrip("/"))

    def draft(self, name: str) -> IO[bytes]:
        if self._direct:
            file = self._fs.open(f"{self._root}/{name}", "wb", autocommit=False)
            self._open[name] = file
        else:
            path = f"{self._drafts}/{name}"
            self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
            file = self._fs.open(path, "wb")
        opened: IO[bytes] = file
        return opened

    def publish(self, name: str) -> None:
        if self._direct:
            self._commit(name)
            return
        drafts = f"{self._drafts}/{name}"
        if not self._fs.exists(drafts):
            return
        if self._fs.isdir(drafts):
            self.remove(name)
        for path in self._fs.find(drafts):
            final = self._root + path.removeprefix(self._drafts)
            self._fs.makedirs(final.rpartition("/")[0], exist_ok=True)
            self._fs.mv(path, final)

    def _commit(self, name: str) -> None:
        written = {n for n in self._open if n == name or n.startswith(f"{name}/")}
        if name not in written:
            for stale in {f"{name}/{source.name}" for source in self.files_in(name)} - written:
                self.remove(stale)
        for whole in sorted(written):
            self._open.pop(whole).commit()

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._fs.rm(f"{self._root}/{name}", recursive=True)

    def note(self, entry: dict[str, Any]) -> None:
        self._notes += line(entry)
        self.write(JOURNAL, self._notes)

    def renote(self, entries: list[dict[str, Any]]) -> None:
        self._notes = b"".join(map(line, entries))
        self.write(JOURNAL, self._notes)

    def forget(self) -> None:
        self.remove(WORK_DIR)

    def drop_drafts(self) -> None:
        for file in self._open.values():
            file.discard()
        self._open.clear()
        self.remove(f"{WORK_DIR}/drafts")

    def drop_scratch(self) -> None:
        """It is new for each run."""

    def room_for(self, size: int) -> bool:
        return True

    @contextmanager
    def locked(self) -> Iterator[None]:
        with tempfile.TemporaryDirectory(prefix="pdj-data-") as scratch:
            self.scratch = Path(scratch)
            yield
