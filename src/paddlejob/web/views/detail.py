"""A job as its page shows it."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import orjson

from paddlejob.api.types import Phase
from paddlejob.client.describe.next_step import next_step
from paddlejob.targets.views import EventView, JobView, PodView, Usage
from paddlejob.web.views.attempts import Attempt, attempts_of
from paddlejob.web.views.commands import Command, commands
from paddlejob.web.views.row import Row, moment, row_of

EVENTS = 200
HIDDEN = ("managedFields",)


@dataclass(frozen=True)
class Replica:
    name: str
    role: str
    index: int
    state: str
    attempt: int
    where: str
    """The node, or the process on this machine."""
    address: str
    exit_code: int | None
    note: str
    usage: Usage | None


@dataclass(frozen=True)
class Detail:
    row: Row
    reason: str
    message: str
    next: str
    attempt: int
    goodput: int | None
    checkpoint: int | None
    metrics: dict[str, float | str]
    last_output: float | None
    replicas: list[Replica]
    events: list[EventView]
    attempts: list[Attempt]
    commands: list[Command]
    workers: int
    file: str


def detail_of(target: str, view: JobView, usage: dict[str, Usage], read_only: bool) -> Detail:
    status = view.job.status
    progress = status.progress
    return Detail(
        row=row_of(target, view),
        reason=status.reason,
        message=view.note or status.message,
        next=next_step(view, _failed_pod(view)),
        attempt=status.attempt,
        goodput=status.goodput,
        checkpoint=progress.checkpointStep if progress else None,
        metrics={**progress.metrics, **progress.nonFinite} if progress else {},
        last_output=moment(progress.lastOutputTime) if progress else None,
        replicas=[_replica(pod, usage.get(pod.name)) for pod in view.pods],
        events=view.events[-EVENTS:],
        attempts=attempts_of(view),
        commands=commands(
            view, resizable=view.job.spec.elastic >= 1 or status.phase is Phase.SUSPENDED, read_only=read_only
        ),
        workers=view.job.spec.worker.replicas if view.job.spec.worker else 0,
        file=job_file(view.document),
    )


def job_file(document: dict[str, Any]) -> str:
    """The job without its status, as YAML."""
    metadata = {key: value for key, value in document.get("metadata", {}).items() if key not in HIDDEN}
    shown = {key: value for key, value in document.items() if key != "status"} | {"metadata": metadata}
    return _as_yaml(orjson.dumps(shown))


@functools.lru_cache(64)
def _as_yaml(document: bytes) -> str:
    """A page asks for the same file twice a second, and YAML takes milliseconds."""
    from paddlejob.client.describe.formats import to_yaml

    return to_yaml(orjson.loads(document))


def _replica(pod: PodView, usage: Usage | None) -> Replica:
    where = pod.node or (f"pid {pod.pid}" if pod.pid else "")
    return Replica(
        pod.replica, pod.role, pod.index, pod.state, pod.attempt, where, pod.address, pod.exit_code, pod.note, usage
    )


def _failed_pod(view: JobView) -> PodView | None:
    return next((pod for pod in view.pods if view.names(pod)), None)
