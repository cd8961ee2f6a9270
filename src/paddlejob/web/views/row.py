"""A job as a row of the job list, in the form that the page gets as JSON."""

from __future__ import annotations

from dataclasses import dataclass

from paddlejob.api.types import PaddleJob, Phase
from paddlejob.plan import times
from paddlejob.targets.views import JobView

MESSAGE_LIMIT = 300
Key = tuple[str, str]


@dataclass(frozen=True)
class Row:
    target: str
    namespace: str
    name: str
    phase: str
    mode: str = ""
    message: str = ""
    """Why it waits, or how it ended; empty while it runs."""
    ready: dict[str, str] | None = None
    """Running and desired replicas by role."""
    progress: str = ""
    fraction: float | None = None
    eta: float | None = None
    loss: float | str | None = None
    restarts: int = 0
    disruptions: int = 0
    created: float | None = None
    started: float | None = None
    ended: float | None = None
    spark: tuple[float, ...] = ()
    """Values of the loss from the beginning to now."""
    queue: str = ""
    """Of the scheduler: volcano/QUEUE or kueue/NAMESPACE/QUEUE."""


def row_of(target: str, view: JobView, spark: tuple[float, ...] = ()) -> Row:
    job, status = view.job, view.job.status
    progress = status.progress
    running = status.phase is Phase.RUNNING and not view.note
    return Row(
        target=target,
        namespace=job.namespace,
        name=job.name,
        phase=view.phase,
        mode=str(job.mode) if job.spec.roles else "",
        message="" if running else view.headline[:MESSAGE_LIMIT],
        ready={str(role): status.role(role).ready for role in job.spec.roles},
        progress=progress.summary if progress else "",
        fraction=fraction_of(job),
        eta=moment(progress.eta) if progress and running else None,
        loss=loss_of(job),
        restarts=status.restarts,
        disruptions=status.disruptions,
        created=moment(job.metadata.creationTimestamp),
        started=moment(status.startTime),
        ended=moment(status.completionTime),
        spark=spark,
        queue=view.queue,
    )


def fraction_of(job: PaddleJob) -> float | None:
    """How much of the training is done, from 0 to 1, where it is known."""
    progress = job.status.progress
    if job.status.phase is Phase.COMPLETED:
        return 1.0
    if progress is None:
        return None
    if progress.step is not None and progress.totalSteps:
        return min(1.0, progress.step / progress.totalSteps)
    if progress.epoch is not None and progress.totalEpochs:
        return min(1.0, progress.epoch / progress.totalEpochs)
    return None


def loss_of(job: PaddleJob) -> float | str | None:
    progress = job.status.progress
    if progress is None:
        return None
    return progress.nonFinite.get("loss", progress.metrics.get("loss"))


def moment(text: str | None) -> float | None:
    """A time as seconds since the epoch; None if there is none, or none that can be read."""
    try:
        return times.parse(text) if text else None
    except ValueError:
        return None
