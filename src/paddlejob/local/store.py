"""What is known of the jobs on this machine, as files: it survives a crash, and every command sees the same."""

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
from paddlejob.local.files import LifeLock, is_held, locked, read_json, write_json
from paddlejob.local.options import RunOptions
from paddlejob.plan import times

Document = dict[str, Any]


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
        """The job without its status. Read again only when it was changed."""
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

    def pods(self) -> list[dict[str, Any]]:
        return read_json(self.path / "pods.json") or []

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

    def write_pods(self, pods: list[dict[str, Any]]) -> None:
        write_json(self.path / "pods.json", pods)

    def write_document(self, document: Document) -> None:
        write_json(self.path / "job.json", document)

    def add_event(self, event: dict[str, Any]) -> None:
        with (self.path / "events.jsonl").open("a") as file:
            file.write(json.dumps(event, ensure_ascii=False) + "\n")

    def changing(self) -> AbstractContextManager[None]:
        """Held while the job is read, changed and written."""
        return locked(self.path / "change.lock")

    @property
    def hosted(self) -> bool:
        """Whether a process lives that runs this job."""
        return is_held(self.path / "host.lock")

    def host_lock(self) -> LifeLock:
        return LifeLock(self.path / "host.lock")

    def remove(self) -> None:
        """Moved away first, so that nobody sees half a job."""
        doomed = self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex[:8]}")
        try:
            self.path.rename(doomed)
        except FileNotFoundError:
            return
        shutil.rmtree(doomed, ignore_errors=True)


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
        """The directory of a PersistentVolumeClaim; it outlives all jobs."""
        return self.root / "claims" / namespace / name

    def stage(self) -> Path:
        """An empty directory for mounts to be prepared in."""
        path = self.root / "stage"
        path.mkdir(parents=True, exist_ok=True)
        return path

    def begin(self, document: Document, options: RunOptions, now: float) -> tuple[JobFolder, LifeLock]:
        """Write down a new job, in the place of an ended one of its name; the lock is that of whoever runs it."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        given = document["metadata"]
        folder = self.folder((given.get("namespace") or "default", given["name"]))
        with locked(self.root / "begin.lock"):
            if folder.hosted:
                name = folder.key[1]
                raise BadInput(
                    f"job {name} is running already; `pdj logs -f {name}` shows it, `pdj delete {name}` ends it, "
                    "or give this one another name"
                )
            try:
                self._create(folder, document, options, now)
                lock = folder.host_lock()
                lock.take()
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
        folder.write_document({**document, "metadata": metadata})

    def prune(self, now: float) -> None:
        """Remove finished jobs that should be gone by their ttlSecondsAfterFinished."""
        for folder in self.folders():
            job = folder.job()
            if job and not folder.hosted and job.status.finished and _expired(job, now):
                folder.remove()


def _expired(job: PaddleJob, now: float) -> bool:
    ttl = job.spec.ttlSecondsAfterFinished
    return ttl is not None and now >= times.parse(job.status.completionTime) + ttl


def at_rest(job: PaddleJob) -> bool:
    """Nothing is to be done for this job, so nobody need live for it."""
    return job.status.finished or (job.spec.suspend and job.status.phase is Phase.SUSPENDED)
