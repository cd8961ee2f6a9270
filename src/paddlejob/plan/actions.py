"""What a plan may ask for. A backend carries each out, in order, after the status has been reported."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from paddlejob.api.types import Status
from paddlejob.plan.world import Pod


class Kind(StrEnum):
    POD = "Pod"
    SERVICE = "Service"
    ENVIRONMENT = "ConfigMap"
    POD_GROUP = "PodGroup"


@dataclass(frozen=True)
class Create:
    """Make an object that the job owns. That it exists already, ours and current, is success."""

    kind: Kind
    name: str
    manifest: dict[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Delete:
    """Remove this very object (its uid), at once if `force`. That it is gone already is success."""

    kind: Kind
    name: str
    uid: str
    because: str
    force: bool = False


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


@dataclass(frozen=True)
class RecordEvent:
    """Tell people, as an event on the job."""

    reason: str
    message: str
    warning: bool = False


@dataclass(frozen=True)
class DropFinalizer:
    """Take a finalizer of another operator off the job."""

    name: str


@dataclass(frozen=True)
class DeleteJob:
    because: str


Action = Create | Delete | Wake | Stop | RecordEvent | DropFinalizer | DeleteJob


@dataclass(frozen=True)
class Plan:
    status: Status
    actions: tuple[Action, ...] = ()
    wake_at: float | None = None
    """When to plan again even if nothing happens."""
