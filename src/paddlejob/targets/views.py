"""Jobs, their pods and what those use, as people see them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from paddlejob import contract
from paddlejob.api.types import PaddleJob, Phase
from paddlejob.plan.manifests.pod_group import is_gang


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
    """The phase of the status, or one of the states that only a target knows (PHASES)."""
    note: str = ""
    """What the status does not say: the engine was killed, or no operator watches the namespace."""
    pods: list[PodView] = field(default_factory=list)
    events: list[EventView] = field(default_factory=list)
    flags: str = ""
    """The flags that select this job's target and namespace, with a leading space."""
    qualified: bool = False
    """Whether the output names a job of the same name in another namespace."""

    host: str = ""
    """Another machine that runs the job, where several share the files of their jobs."""
    damaged: bool = False
    """A file of the job is damaged; the note names it."""

    @property
    def title(self) -> str:
        program = self.job.metadata.annotations.get(contract.ANNOTATION_PROGRAM)
        name = f"{self.job.namespace}/{self.job.name}" if self.qualified else self.job.name
        return f"{name} ({program})" if program else name

    @property
    def headline(self) -> str:
        """The note, or the first line of the status message."""
        return self.note or self.job.status.headline

    @property
    def queue(self) -> str:
        """Of the scheduler: volcano/QUEUE or kueue/NAMESPACE/QUEUE."""
        job = self.job
        if name := job.metadata.labels.get(contract.LABEL_QUEUE):
            return f"kueue/{job.namespace}/{name}"
        if not job.spec.roles or not is_gang(job):
            return ""
        policy = job.spec.schedulingPolicy
        return f"volcano/{(policy and policy.queue) or 'default'}"

    def names(self, pod: PodView) -> bool:
        """Whether the status message names the pod."""
        headline = self.job.status.headline
        return pod.name in headline.split() or f" ({pod.role} {pod.index}, " in headline

    @property
    def quoted(self) -> list[PodView]:
        """Whose log to show: the replica that the status names first, then one that failed, then the first worker."""

        def rank(pod: PodView) -> tuple[bool, bool, bool, int]:
            return not self.names(pod), pod.state != "Failed", pod.role != "worker", pod.index

        return sorted(self.pods, key=rank)

    def hides_framework(self, pod: PodView) -> bool:
        """Whether lines of the framework are left out of a pod's log: where progress is known, they are noise."""
        progress = self.job.status.progress
        known = progress and (progress.summary or progress.metrics or progress.nonFinite)
        return bool(known) and pod.state != "Failed"


DAMAGED = "Damaged"
PHASES = ("Created", *Phase, "Interrupted", "Deleting", DAMAGED)
"""All that a view may show as the phase of a job."""
ENDED = ("Completed", "Failed", "Suspended", "Interrupted", DAMAGED)


def has_ended(view: JobView) -> bool:
    """Whether nothing will change by itself. A job that was just resumed is called suspended until that is noticed."""
    resumed = view.phase == "Suspended" and not view.job.spec.suspend
    return view.phase in ENDED and not resumed


@dataclass(frozen=True)
class Usage:
    cpu: float | None = None
    """CPUs in use; None until two readings are known."""
    memory: int | None = None
    """Bytes."""
    gpu: float | None = None
    """Percent of its GPUs, where the driver reports it."""
    gpu_memory: int | None = None
    """Bytes."""
