"""A job of this machine by its files, as people see it."""

from __future__ import annotations

from collections.abc import Callable

from paddlejob.api.types import Metadata, PaddleJob, Phase, Spec
from paddlejob.local.engine_error import ENGINE_ERROR
from paddlejob.local.state.files import DamagedFile
from paddlejob.local.state.records import PodRecord
from paddlejob.local.state.store import JobFolder, is_inactive
from paddlejob.targets.views import DAMAGED, EventView, JobView, PodView

INTERRUPTED = (
    "the engine that ran this job was killed, and its processes with it; "
    "run `pdj resume {job}` to continue or `pdj delete {job}` to remove the job and its logs"
)


def stored_view(folder: JobFolder, flags_for: Callable[[str], str]) -> JobView | None:
    """None if the job has been removed; the flags select its namespace in commands."""
    # Asked first: an engine that ends writes the last status before it lets go of the job.
    runs, host, flags = folder.has_runner, folder.other_host, flags_for(folder.key[0])
    try:
        job, document = folder.job(), folder.document()
    except DamagedFile as error:
        return _damaged_view(folder, error, flags)
    if job is None or document is None:
        return None
    damage = _damaged_options(folder, job)
    if damage and not runs:
        return _damaged_view(folder, damage, flags)
    if not runs and job.status.phase is not Phase.COMPLETED:
        job = _without_processes(job)
    phase, note = str(job.status.phase or "Created"), ""
    if damage:
        note = f"{damage}, so the job cannot be resumed once it stops; let it end, then start it with `pdj run`"
    if job.metadata.deletionTimestamp:
        phase = "Deleting"
    elif not is_inactive(job) and not runs:
        failed = f"{job.status.message}; continue with `pdj resume {job.name}{flags}`"
        note = failed if job.status.reason == ENGINE_ERROR else INTERRUPTED.format(job=f"{job.name}{flags}")
        phase = "Interrupted"
    elif host and not job.status.finished:
        resume = f"continue it here with `pdj resume {job.name}{flags}`"
        note = f"on {host}: {job.status.headline or 'not on this machine'}; {folder.take_over(resume)}"
    pods = [_pod_view(record, phase == "Interrupted", bool(host)) for record in folder.pods()]
    status = job.status.model_dump(mode="json", exclude_defaults=True)
    return JobView(
        job=job,
        document={**document, "status": {**status, "pods": [pod.as_data() for pod in pods]}},
        phase=phase,
        note=note,
        pods=pods,
        events=[EventView(**event) for event in folder.events()],
        flags=flags,
        host=host,
        damaged=damage is not None,
    )


def _damaged_view(folder: JobFolder, error: DamagedFile, flags: str) -> JobView:
    """What can be said about a job whose files cannot be read."""
    namespace, name = folder.key
    job = PaddleJob(metadata=Metadata(name=name, namespace=namespace), spec=Spec())
    note = f"{error}; remove the job and its logs with `pdj delete {name}{flags}`, or start it again with `pdj run`"
    document = job.model_dump(mode="json", include={"apiVersion", "kind", "metadata"}, exclude_defaults=True)
    return JobView(
        job=job,
        document={"apiVersion": job.apiVersion, "kind": job.kind, **document, "status": {"message": note}},
        phase=DAMAGED,
        note=note,
        pods=[_pod_view(record, not folder.has_runner, bool(folder.other_host)) for record in folder.pods()],
        events=[EventView(**event) for event in folder.events()],
        flags=flags,
        damaged=True,
    )


def _damaged_options(folder: JobFolder, job: PaddleJob) -> DamagedFile | None:
    """Whether the options of the run are damaged. A job that has ended does not need them."""
    if job.status.finished:
        return None
    try:
        folder.options()
    except DamagedFile as error:
        return error
    return None


def _without_processes(job: PaddleJob) -> PaddleJob:
    """The job with no replica running: the processes ended with their engine."""
    roles = {role: job.status.role(role) for role in job.spec.roles}
    counts = {
        role.value: status.model_copy(update={"running": 0, "ready": f"0/{job.spec.roles[role].replicas}"})
        for role, status in roles.items()
    }
    return job.model_copy(update={"status": job.status.model_copy(update=counts)})


def _pod_view(record: PodRecord, interrupted: bool, elsewhere: bool) -> PodView:
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
        pid=0 if interrupted or elsewhere or not active else record.pid,
    )
