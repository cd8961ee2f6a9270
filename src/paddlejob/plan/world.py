"""The view of the world that a decision is made from: what exists for one job, cut down to what matters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from paddlejob.api.types import Role


class PodPhase(StrEnum):
    """How far the training container of a pod has come."""

    PENDING = "Pending"
    WAITING = "Waiting"
    """Everything is ready but the job's environment."""
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class Pod:
    name: str
    uid: str
    role: Role
    index: int
    attempt: int
    phase: PodPhase = PodPhase.PENDING
    address: str = ""
    node: str = ""
    created: float = 0.0
    deletion_due: float | None = None
    """Set once the pod is being deleted: when it should be gone."""
    exit_code: int | None = None
    message: str = ""
    """Last words of a container that ended, or why one does not start."""
    reason: str = ""
    """One word: why it is not running (Unschedulable, ErrImagePull ...), or how it ended (OOMKilled, Evicted ...)."""
    disrupted: bool = False
    """Ended, or about to end, for a reason outside the program: eviction, preemption, a lost node."""
    build: str = ""
    woken: int = 0
    woken_at: float = 0.0
    stopping: bool = False
    lingers: bool = False
    """Containers beside the training one may still run."""

    @property
    def deleting(self) -> bool:
        return self.deletion_due is not None

    @property
    def ended(self) -> bool:
        return self.phase in (PodPhase.SUCCEEDED, PodPhase.FAILED)


@dataclass(frozen=True, slots=True)
class PodGroup:
    name: str
    uid: str
    ours: bool
    phase: str = ""
    message: str = ""
    members: int | None = None
    """How many pods it waits for."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """Something that could not be done, and what was said to that."""

    name: str
    """Of the object that was to be created, else of the action."""
    reason: str
    message: str
    at: float
    due: float
    """When it is tried again."""
    times: int = 1


@dataclass(frozen=True, slots=True)
class World:
    pods: tuple[Pod, ...] = ()
    environments: Mapping[int, str] = field(default_factory=dict)
    """Attempts whose environment exists, and its uid."""
    services: Mapping[str, str] = field(default_factory=dict)
    """Services by name, and their uids."""
    pod_groups: tuple[PodGroup, ...] = ()
    gang_scheduler: bool = True
    """Whether pod groups are known here at all."""
    rejections: tuple[Rejection, ...] = ()
    stop_when_finished: bool = False
    """Whether pods that stay after the end of the job are stopped, so that none of them runs on."""

    def rejection_of(self, name: str) -> Rejection | None:
        return next((one for one in self.rejections if one.name == name), None)
