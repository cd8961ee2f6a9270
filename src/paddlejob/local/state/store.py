"""The jobs on this machine, stored as files: they survive a crash, and every command sees the same."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from paddlejob.api.types import PaddleJob, Phase, Status
from paddlejob.engine.backend import Key
from paddlejob.errors import BadInput, NotPossible
from paddlejob.home import home_directory
from paddlejob.local.options import RunOptions
from paddlejob.local.state.files import DamagedFile, encode_json, read_json, replace_file, write_json
from paddlejob.local.state.history import NUMBER, History
from paddlejob.local.state.records import PodRecord
from paddlejob.local.state.runner_lock import RECORD, RunnerLock, other_host, runs_here
from paddlejob.locks import locked
from paddlejob.logs.files import append_lines
from paddlejob.plan import names, times

Document = dict[str, Any]
PRIVATE = ("jobs", "history", "claims", "host", "interpreters", "stage")
"""What only the user may read, whoever may read the directory around it: Secrets, environments, logs and volumes; and
what containers execute, which nobody else may change."""
LONGEST = 255
"""Bytes that the name of a file can have."""
MOST_EVENT_BYTES = 500_000
"""Then the older half is dropped: a view reads them all, and a job of weeks may restart thousands of times."""


def state_directory() -> Path:
    given = os.environ.get("PADDLEJOB_STATE")
    if given:
        return _directory(Path(given).expanduser().absolute())
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else home_directory() / ".local" / "state") / "paddlejob"


def _directory(path: Path) -> Path:
    """The path, unless it is, or leads through, something else than a directory."""
    existing = next((one for one in (path, *path.parents) if one.exists()), path)
    if existing.is_dir():
        return path
    raise BadInput(f"PADDLEJOB_STATE is {path}, but {existing} is not a directory; name a directory, or unset it")


def file_name(name: str, what: str = "name") -> str:
    """The name, if it can be that of one file in a directory; so no name leads out of the store."""
    if not name or name.startswith(".") or "/" in name or "\0" in name or len(name.encode(errors="replace")) > LONGEST:
        raise BadInput(f"{name[:LONGEST]!r} is not a valid {what}; use lower-case letters, digits and '-'")
    return name


class JobFolder:
    """The files of one job."""

    def __init__(self, root: Path, key: Key, path: Path | None = None) -> None:
        """In the directory of the present job, or of a previous run."""
        self.key = key
        namespace, name = key
        self.path = path or root / "jobs" / file_name(namespace, "namespace") / file_name(name)
        self._cached: tuple[int, int, Document] | None = None
        self._status: Status | None = None

    def document(self) -> Document | None:
        """The job without its status; the file is read again only after a change. Raises DamagedFile."""
        path = self.path / "job.json"
        try:
            stat = path.stat()
        except FileNotFoundError:
            return None
        if self._cached and self._cached[:2] == (stat.st_mtime_ns, stat.st_ino):
            return self._cached[2]
        try:
            found = _document(path)
        except DamagedFile:
            if self._cached is None:
                raise
            found = self._cached[2]
        if found is not None:
            self._cached = (stat.st_mtime_ns, stat.st_ino, found)
        return found

    def job(self) -> PaddleJob | None:
        """Raises DamagedFile, unless this process knows what was in the damaged file."""
        document = self.document()
        return None if document is None else PaddleJob.model_validate({**document, "status": self._read_status()})

    def _read_status(self) -> Status:
        path = self.path / "status.json"
        try:
            return Status.model_validate(read_json(path) or {})
        except (DamagedFile, ValidationError):
            if self._status is None:
                raise DamagedFile(path) from None
            with suppress(OSError):
                self.write_status(self._status)
            return self._status

    def options(self) -> RunOptions:
        """Raises DamagedFile."""
        path = self.path / "run.json"
        try:
            return TypeAdapter(RunOptions).validate_python(RunOptions.from_json(read_json(path)).to_json())
        except (TypeError, ValueError, AttributeError):
            raise DamagedFile(path) from None

    def pods(self) -> list[PodRecord]:
        """Records that are damaged are left out."""
        try:
            stored = read_json(self.path / "pods.json")
        except DamagedFile:
            return []
        records = []
        for one in stored if isinstance(stored, list) else []:
            with suppress(TypeError, KeyError, AttributeError):
                records.append(PodRecord.from_json(one))
        return records

    def pod_uids(self) -> set[str]:
        """Also of pods whose records are lost: each has a directory."""
        own = self.path / "pods"
        return {record.uid for record in self.pods()} | (
            {path.name for path in own.iterdir()} if own.is_dir() else set()
        )

    def events(self) -> list[dict[str, Any]]:
        """Lines that are damaged are left out."""
        try:
            lines = (self.path / "events.jsonl").read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return []
        return [event for line in lines if (event := _event(line))]

    def log(self, attempt: int, pod: str, container: str = "") -> Path:
        name = f"{pod}.{file_name(container)}.log" if container else f"{pod}.log"
        return self.path / "logs" / f"attempt-{attempt}" / file_name(name)

    def write_status(self, status: Status) -> None:
        write_json(self.path / "status.json", status.model_dump(mode="json"), padded=True)
        self._status = status

    def write_pods(self, records: list[PodRecord]) -> None:
        write_json(self.path / "pods.json", [record.to_json() for record in records])

    def write_document(self, document: Document) -> None:
        write_json(self.path / "job.json", document)

    def add_event(self, now: float, reason: str, message: str, *, warning: bool = False) -> None:
        event = {"time": times.format(now), "reason": reason, "message": message}
        line = encode_json(event | ({"warning": True} if warning else {})) + b"\n"
        if append_lines(self.path / "events.jsonl", line) > MOST_EVENT_BYTES:
            self._drop_older_events()

    def _drop_older_events(self) -> None:
        path = self.path / "events.jsonl"
        newer = path.read_bytes()[-MOST_EVENT_BYTES // 2 :]
        replace_file(path, newer.partition(b"\n")[2])

    def changing(self) -> AbstractContextManager[None]:
        """A lock to hold while the job is read, changed and written."""
        return locked(self.path / "change.lock")

    @property
    def has_runner(self) -> bool:
        """Whether a living process runs this job; of one on another machine, whether it has not said that it ended."""
        return bool(self.other_host) or self.runs_here

    @property
    def runs_here(self) -> bool:
        """Whether a living process of this machine runs this job."""
        return runs_here(self.path)

    @property
    def other_host(self) -> str:
        """The name of another machine that runs this job; else empty."""
        return other_host(self.path)

    def runner_lock(self) -> RunnerLock:
        return RunnerLock(self.path)

    def take_over(self, command: str) -> str:
        """How to run the job here although another machine did, with this command."""
        host = self.other_host
        return f"if {host} no longer runs it, remove {self.path / RECORD}, then {command}"

    def remove(self) -> None:
        """Renamed first, so that no other process sees half a job."""
        renamed = self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex[:8]}")
        try:
            self.path.rename(renamed)
        except FileNotFoundError:
            return
        shutil.rmtree(renamed, ignore_errors=True)


def _document(path: Path) -> Document | None:
    found: Document | None = read_json(path)
    if found is None and not path.exists():
        return None
    try:
        PaddleJob.model_validate(found)
    except ValidationError:
        raise DamagedFile(path) from None
    return found


def _event(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
        return {"time": str(found["time"]), "reason": str(found["reason"]), "message": str(found["message"])} | (
            {"warning": True} if found.get("warning") else {}
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


class JobStore:
    def __init__(self, root: Path | None = None) -> None:
        self.root = root or state_directory()

    def folder(self, key: Key) -> JobFolder:
        return JobFolder(self.root, key)

    def folders(self) -> Iterator[JobFolder]:
        """All jobs by namespace and name."""
        for path in sorted(self.root.glob("jobs/*/*/job.json")):
            namespace, name = path.parts[-3:-1]
            if not namespace.startswith(".") and not name.startswith("."):
                yield self.folder((namespace, name))

    def claim(self, namespace: str, name: str) -> Path:
        """The directory of a PersistentVolumeClaim; it is kept when jobs are deleted."""
        return self.root / "claims" / file_name(namespace, "namespace") / file_name(name)

    def stage(self) -> Path:
        """An empty directory in which mounts are prepared."""
        path = self.root / "stage"
        path.mkdir(parents=True, exist_ok=True)
        return path

    def begin(self, document: Document, options: RunOptions, now: float) -> tuple[JobFolder, RunnerLock]:
        """Store a new job, and keep one of its name as a previous run; returns it with the lock of its runner."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in PRIVATE:
            _make_private(self.root / name)
        given = document["metadata"]
        folder = self.folder((given.get("namespace") or "default", given["name"]))
        with locked(self.root / "begin.lock"):
            if folder.has_runner:
                raise _already_running(folder)
            stored, run = _stored(document, folder.key[0], now), options.to_json()
            json.dumps([stored, run])  # Fails before the previous run of this name is moved.
            number = History(self.root, folder.key).keep(folder.path)
            try:
                (folder.path / "logs").mkdir(parents=True)
            except FileExistsError:
                # Another machine, where locks do not reach that far.
                raise _already_running(folder) from None
            try:
                return folder, _create(folder, stored, run, number)
            except OSError:
                folder.remove()
                raise

    def prune(self, now: float) -> None:
        """Remove finished jobs whose ttlSecondsAfterFinished is over."""
        for folder in self.folders():
            try:
                job = folder.job()
            except DamagedFile:
                continue
            if job and not folder.has_runner and job.status.finished and _expired(job, now):
                folder.remove()


def _make_private(path: Path) -> None:
    path.mkdir(exist_ok=True)
    try:
        path.chmod(0o700)
    except PermissionError:
        raise NotPossible(
            f"{path} belongs to another user, who could read and change your jobs; set PADDLEJOB_STATE to a directory "
            "of your own"
        ) from None


def _stored(document: Document, namespace: str, now: float) -> Document:
    added = {
        "namespace": namespace,
        "uid": str(uuid.uuid4()),
        "generation": 1,
        "creationTimestamp": times.format(now),
    }
    return {**document, "metadata": {**document["metadata"], **added}}


def _create(folder: JobFolder, stored: Document, run: dict[str, Any], number: int) -> RunnerLock:
    """Its runner comes before the file that shows it to others."""
    lock = folder.runner_lock()
    lock.acquire()
    (folder.path / NUMBER).write_text(f"{number}\n")
    folder.write_status(Status())
    write_json(folder.path / "run.json", run)
    (folder.path / "run.json").chmod(0o600)  # It holds Secrets and the user's environment.
    folder.write_document(stored)
    return lock


def _already_running(folder: JobFolder) -> BadInput:
    job, host = names.in_command(*folder.key), folder.other_host
    return BadInput(
        f"job {folder.key[1]} is already running{f' on {host}' if host else ''}; follow it with `pdj logs -f {job}`, "
        f"stop it with `pdj suspend {job}`, or give this job another name"
        + (f"; {folder.take_over('try again')}" if host else "")
    )


def _expired(job: PaddleJob, now: float) -> bool:
    ttl = job.spec.ttlSecondsAfterFinished
    return ttl is not None and now >= times.parse(job.status.completionTime) + ttl


def is_inactive(job: PaddleJob) -> bool:
    """Whether the job needs no runner: it has finished, or it is suspended."""
    return job.status.finished or (job.spec.suspend and job.status.phase is Phase.SUSPENDED)
