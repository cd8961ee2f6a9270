"""Jobs on this machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from paddlejob.api.types import Metadata, PaddleJob, Phase, Spec
from paddlejob.client.targets.first_worker_file import read_first_worker
from paddlejob.client.targets.remembered import Remembered, read_remembered
from paddlejob.client.targets.target import (
    DELETE_TIMEOUT,
    EventView,
    JobView,
    LastOutput,
    LogChoice,
    LogLine,
    PodView,
    no_such_job,
    require_unfinished,
)
from paddlejob.engine.backend import Key
from paddlejob.errors import BadInput, NotPossible
from paddlejob.local.engine_error import ENGINE_ERROR
from paddlejob.local.runtime.env import kill_leftovers
from paddlejob.local.state.changes import change_spec, mark_for_deletion
from paddlejob.local.state.files import DamagedFile
from paddlejob.local.state.history import History
from paddlejob.local.state.logs import follow_logs
from paddlejob.local.state.records import PodRecord
from paddlejob.local.state.store import JobFolder, Store, is_inactive
from paddlejob.plan import names

INTERRUPTED = (
    "the engine that ran this job was killed, and its processes with it; "
    "run `pdj resume {job}` to continue or `pdj delete {job}` to remove the job"
)


DAMAGED = "Damaged"


class LocalTarget:
    default_namespace = names.DEFAULT_NAMESPACE
    remembered_namespace = ""
    title = "this machine"

    def __init__(self, store: Store | None = None) -> None:
        self.store = store or Store()
        self._remembered = _remembered()

    def flags(self, namespace: str) -> str:
        """What a command needs that would otherwise use the remembered target."""
        return (" --local" if self._remembered.cluster else "") + self._namespace_flag(namespace)

    def start_command(self, namespace: str = "") -> str:
        return f"pdj run FILE{self._namespace_flag(namespace or self.default_namespace)}"

    def _namespace_flag(self, namespace: str) -> str:
        expected = self._remembered.local_namespace or names.DEFAULT_NAMESPACE
        return "" if namespace == expected else f" -n {namespace}"

    def require_readable(self) -> None:
        """Raise OSError if jobs or former runs cannot be listed: they would look as if there were none."""
        for top in ("jobs", "history"):
            for namespace in _entries(self.store.root / top):
                _entries(namespace)

    def jobs(self, namespace: str | None) -> list[JobView]:
        self.require_readable()
        self.store.prune(time.time())
        views = (self.view(folder) for folder in self.store.folders() if namespace in (None, folder.key[0]))
        return [view for view in views if view]

    def find(self, key: Key) -> JobView | None:
        return self.view(self.store.folder(key))

    def job(self, namespace: str, name: str) -> JobView:
        view = self.find((namespace, name))
        if view is None:
            others = [folder.key[1] for folder in self.store.folders() if folder.key[0] == namespace]
            raise no_such_job(self, namespace, name, others)
        return view

    def logs(self, namespace: str, name: str, choice: LogChoice) -> Iterator[bytes]:
        return follow_logs(self._run(namespace, name, choice.run), choice)

    def _run(self, namespace: str, name: str, number: int) -> JobFolder:
        """The files of the present run, or of a former one."""
        folder, history = self.store.folder((namespace, name)), History(self.store.root, (namespace, name))
        if not number or (folder.path.exists() and history.number_of(folder.path) == number):
            self.job(namespace, name)
            return folder
        runs = {run.number: run.path for run in history.runs()}
        if number not in runs:
            known = ", ".join(map(str, runs)) or "none"
            raise BadInput(
                f"run {number} of job {name} is not kept; kept former runs: {known} (`pdj list --history` lists them)"
            )
        return JobFolder(self.store.root, (namespace, name), runs[number])

    def first_worker_log(self, namespace: str, name: str, follow: bool) -> Iterator[LogLine]:
        self.job(namespace, name)
        return read_first_worker(self.store.folder((namespace, name)), follow)

    def last_output(self, view: JobView) -> LastOutput | None:
        logs = [(pod, Path(pod.log).stat()) for pod in view.pods if pod.log and Path(pod.log).is_file()]
        written = [LastOutput(pod.replica, stat.st_mtime) for pod, stat in logs if stat.st_size]
        return max(written, key=lambda output: output.time, default=None)

    def delete(self, namespace: str, name: str, wait: bool) -> str:
        folder = self.store.folder((namespace, name))
        if not folder.path.exists():
            self.job(namespace, name)
        History(self.store.root, (namespace, name)).forget()
        if folder.has_runner:
            _request_deletion(folder)
        deadline = time.monotonic() + DELETE_TIMEOUT
        while folder.has_runner:
            if not wait:
                return f"{name} is being deleted"
            if time.monotonic() > deadline:
                command = f"pdj get {name}{self.flags(namespace)}"
                raise BadInput(f"job {name} is still stopping after {DELETE_TIMEOUT:.0f} s; check `{command}`")
            time.sleep(0.05)
        if folder.path.exists():
            kill_leftovers(folder)
            folder.remove()
        return f"{name} deleted"

    def change(self, namespace: str, name: str, **fields: Any) -> None:
        """The engine that runs the job picks up the change; suspend and resume start one if none runs."""
        view = self.job(namespace, name)
        if view.phase == DAMAGED or (view.damaged and "suspend" in fields):
            raise NotPossible(view.note)
        require_unfinished(view)
        folder = self.store.folder((namespace, name))
        change_spec(folder, **fields)
        job = folder.job()
        if "suspend" in fields and job and not is_inactive(job):
            self._start_engine(folder)

    def _start_engine(self, folder: JobFolder) -> None:
        from paddlejob.local.runner import start_detached

        lock = folder.runner_lock()
        if lock.acquire():
            kill_leftovers(folder)
            start_detached(self.store, [(folder, lock)])

    def view(self, folder: JobFolder) -> JobView | None:
        """A job by its files; None if it has been removed."""
        # Asked first: an engine that ends writes the last status before it lets go of the job.
        runs = folder.has_runner
        try:
            job, document = folder.job(), folder.document()
        except DamagedFile as error:
            return self._damaged_view(folder, error)
        if job is None or document is None:
            return None
        damage = _damaged_options(folder, job)
        if damage and not runs:
            return self._damaged_view(folder, damage)
        if not runs and job.status.phase is not Phase.COMPLETED:
            job = _without_processes(job)
        phase, note = str(job.status.phase or "Created"), ""
        if damage:
            note = f"{damage}, so the job cannot be resumed once it stops; let it end, then start it with `pdj run`"
        if job.metadata.deletionTimestamp:
            phase = "Deleting"
        elif not is_inactive(job) and not runs:
            command = f"{job.name}{self.flags(job.namespace)}"
            failed = f"{job.status.message}; continue with `pdj resume {command}`"
            note = failed if job.status.reason == ENGINE_ERROR else INTERRUPTED.format(job=command)
            phase = "Interrupted"
        pods = [_pod_view(record, interrupted=phase == "Interrupted") for record in folder.pods()]
        status = job.status.model_dump(mode="json", exclude_defaults=True)
        return JobView(
            job=job,
            document={**document, "status": {**status, "pods": [pod.as_data() for pod in pods]}},
            phase=phase,
            note=note,
            pods=pods,
            events=[EventView(**event) for event in folder.events()],
            flags=self.flags(job.namespace),
            damaged=damage is not None,
        )

    def _damaged_view(self, folder: JobFolder, error: DamagedFile) -> JobView:
        """What can be said about a job whose files cannot be read."""
        namespace, name = folder.key
        flags = self.flags(namespace)
        job = PaddleJob(metadata=Metadata(name=name, namespace=namespace), spec=Spec())
        note = f"{error}; remove the job with `pdj delete {name}{flags}`, or start it again with `pdj run`"
        document = job.model_dump(mode="json", include={"apiVersion", "kind", "metadata"}, exclude_defaults=True)
        return JobView(
            job=job,
            document={"apiVersion": job.apiVersion, "kind": job.kind, **document, "status": {"message": note}},
            phase=DAMAGED,
            note=note,
            pods=[_pod_view(record, interrupted=not folder.has_runner) for record in folder.pods()],
            events=[EventView(**event) for event in folder.events()],
            flags=flags,
            damaged=True,
        )


def _remembered() -> Remembered:
    """A file that is damaged stops no job: the commands that choose a target report it."""
    try:
        return read_remembered()
    except BadInput:
        return Remembered()


def _entries(path: Path) -> list[Path]:
    try:
        return list(path.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _damaged_options(folder: JobFolder, job: PaddleJob) -> DamagedFile | None:
    """Whether the options of the run are damaged. A job that has ended does not need them."""
    if job.status.finished:
        return None
    try:
        folder.options()
    except DamagedFile as error:
        return error
    return None


def _request_deletion(folder: JobFolder) -> None:
    """Ask the engine of the job to remove it. Without a document it does the same, so a damaged one is removed."""
    try:
        mark_for_deletion(folder, time.time())
    except DamagedFile as error:
        error.path.unlink(missing_ok=True)


def _without_processes(job: PaddleJob) -> PaddleJob:
    """The job with no replica running: the processes ended with their engine."""
    roles = {role: job.status.role(role) for role in job.spec.roles}
    counts = {
        role.value: status.model_copy(update={"running": 0, "ready": f"0/{job.spec.roles[role].replicas}"})
        for role, status in roles.items()
    }
    return job.model_copy(update={"status": job.status.model_copy(update=counts)})


def _pod_view(record: PodRecord, interrupted: bool) -> PodView:
    active = record.state in ("Pending", "Waiting", "Running")
    return PodView(
        name=record.name,
        role=record.role,
        index=record.index,
        state="Stopped" if interrupted and active else record.state,
        attempt=record.attempt,
        address=record.address,
        exit_code=record.exit_code,
        log=record.log,
        note=record.note,
        pid=0 if interrupted or not active else record.pid,
    )
