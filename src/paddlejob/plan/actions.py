"""What a plan may ask for. A backend carries out the actions in order, after the status has been reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from paddlejob.api.types import Status
from paddlejob.plan.workload import Condition, Workload
from paddlejob.plan.world import Pod

Manifest = dict[str, Any]


class Kind(StrEnum):
    POD = "Pod"
    SERVICE = "Service"
    ENVIRONMENT = "ConfigMap"
    POD_GROUP = "PodGroup"
    WORKLOAD = "Workload"


@dataclass(frozen=True)
class Create:
    """Create an object that the job owns. It is a success if the object exists, is the job's and is current."""

    kind: Kind
    name: str
    source: Manifest | Callable[[], Manifest] = field(repr=False)
    """The manifest, or what builds it: those of 6,000 pods take 2 s and 100 MiB, so each is built when it is sent."""

    @property
    def manifest(self) -> Manifest:
        return self.source if isinstance(self.source, dict) else self.source()


@dataclass(frozen=True)
class Delete:
    """Delete the object with this uid, immediately if `force`. It is a success if the object is gone already."""

    kind: Kind
    name: str
    uid: str
    because: str
    force: bool = False
    grace: int | None = None
    """Seconds that a pod has to end, instead of those of its template."""


@dataclass(frozen=True)
class Wake:
    """Make the kubelet look at a waiting pod now instead of in 10-15 s."""

    pod: Pod
    times: int
    at: float


@dataclass(frozen=True)
class Stop:
    """End a pod's processes but keep the pod and its log."""

    pod: Pod
    because: str


class Order(StrEnum):
    STOP = "stop"
    """End the program."""
    START = "start"
    """Start the program again, once it has ended."""
    RELEASE = "release"
    """Exit as the program did, once it has ended."""


@dataclass(frozen=True)
class OrderAgents:
    """Tell the agents of pods what to do. It is handed over when each asks next; nothing is lost if it never does."""

    order: Order
    uids: tuple[str, ...]
    attempt: int
    """The attempt that begins. An agent that is in it already ignores the order."""
    grace: int = 0
    """Seconds between SIGTERM and SIGKILL."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that differ from those with which the pod was started."""


@dataclass(frozen=True)
class UpdateWorkload:
    """Write to the status of the job's Workload, if it has not changed since it was read."""

    workload: Workload
    conditions: tuple[Condition, ...] = ()
    reclaimable: Mapping[str, int] | None = None
    """How many pods of each role need their quota no longer; None leaves that as it is."""
    release: bool = False
    """Give the quota back: no pod of the job is left."""


@dataclass(frozen=True)
class ReadLog:
    """Read what worker 0 has printed since its log was last read. The world says when that is done, or given up."""

    attempt: int


@dataclass(frozen=True)
class RecordEvent:
    """Record an event on the job."""

    reason: str
    message: str
    warning: bool = False


@dataclass(frozen=True)
class DropFinalizer:
    """Remove a finalizer of another operator from the job."""

    name: str


@dataclass(frozen=True)
class DeleteJob:
    because: str


Action = (
    Create | Delete | Wake | Stop | OrderAgents | UpdateWorkload | ReadLog | RecordEvent | DropFinalizer | DeleteJob
)


@dataclass(frozen=True)
class Plan:
    status: Status
    actions: tuple[Action, ...] = ()
    wake_at: float | None = None
    """When to plan again even if nothing happens."""
