"""Any other file system that fsspec can write to, as a place to write to."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast
from uuid import uuid4

from paddlejob.data.drivers import reached
from paddlejob.data.journal import JOURNAL, line
from paddlejob.data.sources import WORK_DIR, Source, is_number, tree
from paddlejob.data.upload import Upload
from paddlejob.errors import NotPossible, PaddleJobError

_OWNER = f"{WORK_DIR}/owner"
_COMMITS = frozenset({"s3", "s3a", "gs", "gcs"})
"""Their uploads appear when they are committed, so they are written to directly; to the others by way of a draft."""
_RENAMES_DIRECTORIES = frozenset({"webhdfs", "hdfs"})
"""In one step. On the others files are moved one by one."""


class RemoteStore:
    """Anything else that fsspec writes. There are no locks: a run that finds that a later one has begun gives way."""

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
        self._notes = b""
        self.scratch = Path(tempfile.gettempdir())

    def read(self, name: str) -> bytes | None:
        try:
            with reached(self.url):
                return bytes(self._fs.cat_file(f"{self._root}/{name}"))
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        with self.draft(name) as file:
            file.write(content)
        self.publish(name)

    def files_in(self, name: str) -> list[Source]:
        with reached(self.url):
            self._fs.invalidate_cache()
            return tree(self._fs, f"{self._root}/{name}".rstrip("/"))

    def numbers(self) -> list[int]:
        with reached(self.url):
            self._fs.invalidate_cache()
            there = self._fs.ls(self._root, detail=False) if self._fs.exists(self._root) else []
        names = [path.rstrip("/").rpartition("/")[2] for path in there]
        return sorted(int(name) for name in names if is_number(name))

    def files_named(self, names: Iterable[str]) -> dict[str, Source]:
        wanted = set(names)
        return {source.name: source for source in self.files_in("") if source.name in wanted}

    def draft(self, name: str) -> IO[bytes]:
        with reached(self.url):
            if self._direct:
                file = self._fs.open(f"{self._root}/{name}", "wb", autocommit=False)
                self._uploads[name] = Upload(file, self.url)
                return cast(IO[bytes], self._uploads[name])
            path = f"{self._drafts}/{name}"
            self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
            return cast(IO[bytes], Upload(self._fs.open(path, "wb"), self.url))

    def publish(self, name: str) -> None:
        self._give_way()
        with reached(self.url):
            if self._direct:
                self._commit(name)
            elif self._fs.exists(draft := f"{self._drafts}/{name}"):
                self._move(draft, name)

    def _give_way(self) -> None:
        if self.read(_OWNER) != self._run.encode():
            raise NotPossible(f"{self.url}: another pdj has begun to write here; wait until it has ended")

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
            for stale in {f"{name}/{source.name}" for source in self.files_in(name)} - written:
                self.remove(stale)
        for whole in sorted(written):
            self._uploads.pop(whole).commit()

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError), reached(self.url):
            self._fs.rm(f"{self._root}/{name}", recursive=True)

    def note(self, entry: dict[str, Any]) -> None:
        self._notes += line(entry)
        self.write(JOURNAL, self._notes)

    def renote(self, entries: list[dict[str, Any]]) -> None:
        self._notes = b"".join(map(line, entries))
        self.write(JOURNAL, self._notes)

    def forget(self) -> None:
        self._give_way()
        self.remove(WORK_DIR)

    def begin(self) -> None:
        self.remove(f"{WORK_DIR}/drafts")
        with reached(self.url):
            if not self._direct:  # There it would make a bucket, which is not ours to make.
                self._fs.makedirs(f"{self._root}/{WORK_DIR}", exist_ok=True)
            self._fs.pipe_file(f"{self._root}/{_OWNER}", self._run.encode())

    def drop_scratch(self) -> None:
        """It is new for each run."""

    def room_for(self, size: int, scratch: int = 0) -> bool:
        return shutil.disk_usage(self.scratch).free >= scratch

    @contextmanager
    def locked(self) -> Iterator[None]:
        with tempfile.TemporaryDirectory(prefix="pdj-data-") as scratch:
            self.scratch = Path(scratch)
            try:
                yield
            finally:
                self._drop_drafts()

    def _drop_drafts(self) -> None:
        """As far as it can be done: a store that is out of reach must not hide why the run has failed."""
        with suppress(PaddleJobError, OSError):
            for upload in self._uploads.values():
                upload.discard()
            if self.read(_OWNER) == self._run.encode():
                self.remove(f"{WORK_DIR}/drafts" if self.read(JOURNAL) is not None else WORK_DIR)
