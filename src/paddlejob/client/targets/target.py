"""What verbs need from this machine or a cluster, and jobs as people see them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from paddlejob.api.types import PaddleJob
from paddlejob.client.targets.remembered import read_remembered
from paddlejob.client.targets.selection import selects_cluster
from paddlejob.errors import BadInput, NoSuchJob

if TYPE_CHECKING:
    from paddlejob.client.targets.cluster import ClusterTarget

DELETE_TIMEOUT = 120.0
MOST_NAMED = 10
"""Jobs that the error for a missing one lists."""


@dataclass(frozen=True)
class PodView:
    name: str
    role: str
    index: int
    state: str
    """Pending, Waiting, Running, Succeeded, Failed or Stopped."""
    attempt: int = 0
    address: str = ""
    exit_code: int | None = None
    log: str = ""
    """The log file, if there is one."""
    note: str = ""
    """What else is wrong with it: a sidecar that failed."""
    pid: int = 0
    """On this machine, the first process of its training container while that runs."""
    node: str = ""
    """On a cluster, the node that it runs on."""

    @property
    def replica(self) -> str:
        """The short name, such as worker-0."""
        return f"{self.role}-{self.index}"

    @property
    def exit_text(self) -> str:
        return "" if self.exit_code is None else str(self.exit_code)

    def as_data(self) -> dict[str, Any]:
        """For programs; without what is not known."""
        fields = {"name": self.name, "role": self.role, "index": self.index, "state": self.state}
        optional = {
            "attempt": self.attempt,
            "address": self.address,
            "pid": self.pid,
            "node": self.node,
            "log": self.log,
            "note": self.note,
        }
        fields |= {name: value for name, value in optional.items() if value}
        return fields if self.exit_code is None else {**fields, "exitCode": self.exit_code}


@dataclass(frozen=True)
class EventView:
    time: str
    reason: str
    message: str
    warning: bool = False


@dataclass(frozen=True)
class JobView:
    """A job as people see it."""

    job: PaddleJob
    document: dict[str, Any]
    """The stored object, including its status."""
    phase: str
    """The phase of the status, or a state that only the target knows: Interrupted, Deleting, Damaged."""
    note: str = ""
    """What the status does not say: the engine was killed, or no operator watches the namespace."""
    pods: list[PodView] = field(default_factory=list)
    events: list[EventView] = field(default_factory=list)
    flags: str = ""
    """The flags that select this job's target and namespace, with a leading space."""
    qualified: bool = False
    """Whether the output names a job of the same name in another namespace."""

    damaged: bool = False
    """A file of the job is damaged; the note names it."""

    @property
    def title(self) -> str:
        return f"{self.job.namespace}/{self.job.name}" if self.qualified else self.job.name

    @property
    def headline(self) -> str:
        """The note, or the first line of the status message."""
        return self.note or self.job.status.headline

    def names(self, pod: PodView) -> bool:
        """Whether the status message names the pod."""
        return pod.name in self.job.status.headline.split()


@dataclass(frozen=True)
class LastOutput:
    """When a replica last wrote to its log."""

    replica: str
    time: float


@dataclass(frozen=True)
class LogLine:
    """A line that the first worker of an attempt printed."""

    attempt: int
    text: str
    time: float | None = None
    """When it was printed, where that is known."""


@dataclass(frozen=True)
class LogChoice:
    """Which logs to print; by default those of all replicas in the latest attempt."""

    role: str = ""
    index: int | None = None
    attempt: int = 0
    container: str = ""
    follow: bool = False
    tail: int = -1
    """The last lines of each replica; of those that match, if there is a pattern."""
    since: float | None = None
    """Only what was written since this moment, in seconds since the epoch."""
    run: int = 0
    """A former run on this machine, by its number; 0: the present one."""
    pattern: re.Pattern[bytes] | None = None
    """Only lines in which this is found."""

    def shows(self, line: bytes) -> bool:
        return self.pattern is None or self.pattern.search(line) is not None


ENDED = ("Completed", "Failed", "Suspended", "Interrupted", "Damaged")


def has_ended(view: JobView) -> bool:
    """Whether nothing will change by itself. A job that was just resumed is called suspended until that is noticed."""
    resumed = view.phase == "Suspended" and not view.job.spec.suspend
    return view.phase in ENDED and not resumed


class Target(Protocol):
    default_namespace: str
    remembered_namespace: str
    """The namespace of `pdj target`, if this is its target; else empty."""

    @property
    def title(self) -> str:
        """The target as people call it."""

    def flags(self, namespace: str) -> str:
        """The flags that select this target and namespace, with a leading space; empty for the defaults."""

    def start_command(self, namespace: str = "") -> str:
        """The command that starts a job here, in a namespace other than the default."""

    def jobs(self, namespace: str | None) -> list[JobView]:
        """The jobs in a namespace, or in all namespaces."""

    def job(self, namespace: str, name: str) -> JobView:
        """One job; raises BadInput that lists the existing jobs if it does not exist."""

    def logs(self, namespace: str, name: str, choice: LogChoice) -> Iterator[bytes]:
        """The chosen logs, in pieces."""

    def first_worker_log(self, namespace: str, name: str, follow: bool) -> Iterator[LogLine]:
        """The lines of the first worker in all attempts that are kept; with `follow`, until the job ends."""

    def last_output(self, view: JobView) -> LastOutput | None:
        """The newest output of a job's replicas, if there is any."""

    def delete(self, namespace: str, name: str, wait: bool) -> str:
        """Delete the job and return a message for the user."""

    def change(self, namespace: str, name: str, **fields: Any) -> None:
        """Change fields of the spec; mappings are merged."""


def choose_target(cluster: bool | None = None, context: str = "") -> Target:
    """What the options select, else the remembered target, else this machine."""
    selected, remembered = selects_cluster(cluster, context), read_remembered()
    if selected or (selected is None and remembered.cluster):
        return cluster_target(context)
    from paddlejob.client.targets.local import LocalTarget

    target = LocalTarget()
    if remembered.local_namespace:
        target.default_namespace = target.remembered_namespace = remembered.local_namespace
    return target


def cluster_target(context: str = "") -> ClusterTarget:
    """The cluster of a context, by default the remembered one."""
    from paddlejob.client.targets.cluster import ClusterTarget

    remembered = read_remembered()
    chosen = context or remembered.context
    target = ClusterTarget(chosen)
    if remembered.cluster and remembered.namespace and chosen == remembered.context:
        target.default_namespace = target.remembered_namespace = remembered.namespace
    return target


def require_unfinished(view: JobView) -> None:
    """Raise BadInput if the job has ended: its spec can no longer change."""
    if view.job.status.finished:
        raise BadInput(f"job {view.job.name} has ended ({view.phase}) and cannot be changed; run it again")


def no_such_job(target: Target, namespace: str, name: str, others: list[str]) -> NoSuchJob:
    """The error for a job that does not exist."""
    close = difflib.get_close_matches(name, others, 1)
    if close:
        known = f"did you mean {close[0]}?"
    elif others:
        more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
        known = f"existing jobs: {', '.join(others[:MOST_NAMED])}{more}"
    else:
        known = f"start one with `{target.start_command(namespace)}`"
    return NoSuchJob(f"job {name} not found in namespace {namespace}; {known}")
