"""The jobs on this machine, stored as files: they survive a crash, and every command sees the same."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from paddlejob.api.types import PaddleJob, Phase, Status
from paddlejob.engine.backend import Key
from paddlejob.errors import BadInput
from paddlejob.local.files import read_json, write_json
from paddlejob.local.options import RunOptions
from paddlejob.local.records import PodRecord
from paddlejob.locks import ProcessLock, is_locked, locked
from paddlejob.plan import times

Document = dict[str, Any]
RUNNER_LOCK = "host.lock"


def state_directory() -> Path:
    given = os.environ.get("PADDLEJOB_STATE")
    if given:
        return Path(given).expanduser().absolute()
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "paddlejob"


class JobFolder:
    """The files of one job."""

    def __init__(self, root: Path, key: Key) -> None:
        self.key = key
        self.path = root.joinpath("jobs", *key)
        self._cached: tuple[int, int, Document] | None = None

    def document(self) -> Document | None:
        """The job without its status; the file is read again only after a change."""
        path = self.path / "job.json"
        try:
            stat = path.stat()
        except FileNotFoundError:
            return None
        if self._cached and self._cached[:2] == (stat.st_mtime_ns, stat.st_ino):
            return self._cached[2]
        found: Document | None = read_json(path)
        if found is not None:
            self._cached = (stat.st_mtime_ns, stat.st_ino, found)
        return found

    def job(self) -> PaddleJob | None:
        document = self.document()
        if document is None:
            return None
        return PaddleJob.model_validate({**document, "status": read_json(self.path / "status.json") or {}})

    def options(self) -> RunOptions:
        return RunOptions.from_json(read_json(self.path / "run.json"))

    def pods(self) -> list[PodRecord]:
        return [PodRecord.from_json(stored) for stored in read_json(self.path / "pods.json") or []]

    def events(self) -> list[dict[str, Any]]:
        try:
            lines = (self.path / "events.jsonl").read_text().splitlines()
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines if line.endswith("}")]

    def log(self, attempt: int, pod: str, container: str = "") -> Path:
        name = f"{pod}.{container}.log" if container else f"{pod}.log"
        return self.path / "logs" / f"attempt-{attempt}" / name

    def write_status(self, status: Status) -> None:
        write_json(self.path / "status.json", status.model_dump(mode="json"), padded=True)

    def write_pods(self, records: list[PodRecord]) -> None:
        write_json(self.path / "pods.json", [record.to_json() for record in records])

    def write_document(self, document: Document) -> None:
        write_json(self.path / "job.json", document)

    def add_event(self, event: dict[str, Any]) -> None:
        with (self.path / "events.jsonl").open("a") as file:
            file.write(json.dumps(event, ensure_ascii=False) + "\n")

    def changing(self) -> AbstractContextManager[None]:
        """A lock to hold while the job is read, changed and written."""
        return locked(self.path / "change.lock")

    @property
    def has_runner(self) -> bool:
        """Whether a living process runs this job."""
        return is_locked(self.path / RUNNER_LOCK)

    def runner_lock(self) -> ProcessLock:
        return ProcessLock(self.path / RUNNER_LOCK)

    def remove(self) -> None:
        """Renamed first, so that no other process sees half a job."""
        renamed = self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex[:8]}")
        try:
            self.path.rename(renamed)
        except FileNotFoundError:
            return
        shutil.rmtree(renamed, ignore_errors=True)


class Store:
    def __init__(self, root: Path | None = None) -> None:
        self.root = root or state_directory()

    def folder(self, key: Key) -> JobFolder:
        return JobFolder(self.root, key)

    def folders(self) -> Iterator[JobFolder]:
        """All jobs by namespace and name."""
        for path in sorted(self.root.glob("jobs/*/*/job.json")):
            if not path.parent.name.startswith("."):
                yield self.folder((path.parent.parent.name, path.parent.name))

    def claim(self, namespace: str, name: str) -> Path:
        """The directory of a PersistentVolumeClaim; it is kept when jobs are deleted."""
        return self.root / "claims" / namespace / name

    def stage(self) -> Path:
        """An empty directory in which mounts are prepared."""
        path = self.root / "stage"
        path.mkdir(parents=True, exist_ok=True)
        return path

    def begin(self, document: Document, options: RunOptions, now: float) -> tuple[JobFolder, ProcessLock]:
        """Store a new job, replacing one of its name that has no runner; returns it with the lock of its runner."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        given = document["metadata"]
        folder = self.folder((given.get("namespace") or "default", given["name"]))
        with locked(self.root / "begin.lock"):
            if folder.has_runner:
                name = folder.key[1]
                raise BadInput(
                    f"job {name} is already running; follow it with `pdj logs -f {name}`, end it with "
                    f"`pdj delete {name}`, or give this job another name"
                )
            try:
                self._create(folder, document, options, now)
                lock = folder.runner_lock()
                lock.acquire()
            except OSError:
                folder.remove()
                raise
        return folder, lock

    def _create(self, folder: JobFolder, document: Document, options: RunOptions, now: float) -> None:
        folder.remove()
        (folder.path / "logs").mkdir(parents=True)
        metadata = {
            **document["metadata"],
            "namespace": folder.key[0],
            "uid": str(uuid.uuid4()),
            "generation": 1,
            "creationTimestamp": times.format(now),
        }
        folder.write_status(Status())
        write_json(folder.path / "run.json", options.to_json())
        (folder.path / "run.json").chmod(0o600)  # It holds Secrets and the user's environment.
        folder.write_document({**document, "metadata": metadata})

    def prune(self, now: float) -> None:
        """Remove finished jobs whose ttlSecondsAfterFinished is over."""
        for folder in self.folders():
            job = folder.job()
            if job and not folder.has_runner and job.status.finished and _expired(job, now):
                folder.remove()


def _expired(job: PaddleJob, now: float) -> bool:
    ttl = job.spec.ttlSecondsAfterFinished
    return ttl is not None and now >= times.parse(job.status.completionTime) + ttl


def at_rest(job: PaddleJob) -> bool:
    """Whether the job needs no runner: it has finished, or it is suspended."""
    return job.status.finished or (job.spec.suspend and job.status.phase is Phase.SUSPENDED)
