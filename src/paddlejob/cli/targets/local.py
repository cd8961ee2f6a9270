"""Jobs on this machine, for the verbs that look at jobs and change them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from paddlejob.api.types import PaddleJob, Phase
from paddlejob.cli.targets.target import EventView, JobView, LogChoice, PodView
from paddlejob.engine.backend import Key
from paddlejob.errors import BadInput
from paddlejob.local.changes import change_spec, mark_for_deletion
from paddlejob.local.logs import follow_logs
from paddlejob.local.records import PodRecord
from paddlejob.local.runtime.env import kill_leftovers
from paddlejob.local.store import JobFolder, Store, at_rest

INTERRUPTED = (
    "the engine that ran this job was killed, and its processes with it; `pdj resume {name}` lets it go on, "
    "`pdj delete {name}` removes it"
)
GONE_WITHIN = 120.0


class LocalTarget:
    default_namespace = "default"
    begin = "pdj run FILE"

    def __init__(self, store: Store | None = None) -> None:
        self.store = store or Store()

    def flags(self, namespace: str) -> str:
        return "" if namespace == self.default_namespace else f" -n {namespace}"

    def jobs(self, namespace: str | None) -> list[JobView]:
        self.store.prune(time.time())
        found = (self._view(folder) for folder in self.store.folders() if namespace in (None, folder.key[0]))
        return [view for view in found if view]

    def find(self, key: Key) -> JobView | None:
        return self._view(self.store.folder(key))

    def job(self, namespace: str, name: str) -> JobView:
        view = self.find((namespace, name))
        if view is None:
            raise BadInput(f"there is no job {name} in namespace {namespace}; {self._others(namespace)}")
        return view

    def logs(self, namespace: str, name: str, choice: LogChoice) -> Iterator[bytes]:
        self.job(namespace, name)
        return follow_logs(self.store.folder((namespace, name)), choice)

    def delete(self, namespace: str, name: str, wait: bool) -> str:
        self.job(namespace, name)
        folder = self.store.folder((namespace, name))
        if folder.has_runner:
            mark_for_deletion(folder, time.time())
        ends = time.monotonic() + GONE_WITHIN
        while folder.has_runner:
            if not wait:
                return f"job {name} is being deleted"
            if time.monotonic() > ends:
                raise BadInput(f"job {name} is still ending after {GONE_WITHIN:.0f} s; look at `pdj get {name}`")
            time.sleep(0.05)
        if folder.path.exists():
            kill_leftovers(folder)
            folder.remove()
        return f"job {name} is deleted"

    def change(self, namespace: str, name: str, **fields: Any) -> None:
        """Whoever runs the job notices. Where nobody does, suspending and resuming start a new engine for it."""
        view = self.job(namespace, name)
        if view.job.status.finished:
            raise BadInput(f"job {name} has ended ({view.phase}) and cannot be changed; run it again")
        folder = self.store.folder((namespace, name))
        change_spec(folder, **fields)
        job = folder.job()
        if "suspend" in fields and job and not at_rest(job):
            self._see_to_it(folder)

    def _see_to_it(self, folder: JobFolder) -> None:
        from paddlejob.local.runner import start_detached

        lock = folder.runner_lock()
        if lock.acquire():
            kill_leftovers(folder)
            start_detached(self.store, [(folder, lock)])

    def _view(self, folder: JobFolder) -> JobView | None:
        job = folder.job()
        document = folder.document()
        if job is None or document is None:
            return None
        if not folder.has_runner and job.status.phase is not Phase.COMPLETED:
            job = _without_processes(job)
        phase, note = str(job.status.phase or "Created"), ""
        if job.metadata.deletionTimestamp:
            phase = "Deleting"
        elif not at_rest(job) and not folder.has_runner:
            phase, note = "Interrupted", INTERRUPTED.format(name=job.name)
        return JobView(
            job=job,
            document={**document, "status": job.status.model_dump(mode="json", exclude_defaults=True)},
            phase=phase,
            note=note,
            pods=[_pod(record, interrupted=bool(note)) for record in folder.pods()],
            events=[EventView(**event) for event in folder.events()],
            flags=self.flags(job.namespace),
        )

    def _others(self, namespace: str) -> str:
        names = [folder.key[1] for folder in self.store.folders() if folder.key[0] == namespace]
        return f"there are: {', '.join(names)}" if names else "there is none yet (`pdj run FILE` starts one)"


def _without_processes(job: PaddleJob) -> PaddleJob:
    """What the last status counted as running has ended with its engine."""
    known = {role: job.status.role(role) for role in job.spec.roles}
    counts = {
        role.value: one.model_copy(update={"running": 0, "ready": f"0/{one.replicas}"}) for role, one in known.items()
    }
    return job.model_copy(update={"status": job.status.model_copy(update=counts)})


def _pod(record: PodRecord, interrupted: bool) -> PodView:
    lives = record.state in ("Pending", "Waiting", "Running")
    return PodView(
        name=record.name,
        role=record.role,
        index=record.index,
        state="Stopped" if interrupted and lives else record.state,
        attempt=record.attempt,
        address=record.address,
        exit_code=record.exit_code,
        message=record.message,
        log=record.log,
        started=record.started,
        ended=record.ended,
    )
