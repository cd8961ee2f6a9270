"""A job in a queue of Kueue: its Workload, and what Kueue assigned to its pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paddlejob.contract import ANNOTATION_WORKLOAD, LABEL_POD_SET, TOPOLOGY_GATE

ADMITTED, QUOTA_RESERVED, EVICTED = "Admitted", "QuotaReserved", "Evicted"
PODS_READY, FINISHED, REQUEUED = "PodsReady", "Finished", "Requeued"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a Workload."""

    type: str
    true: bool
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What the pods of one role were admitted with."""

    count: int
    flavors: tuple[str, ...] = ()
    updates: tuple[PodUpdate, ...] = ()
    """Changes by admission checks."""
    has_topology: bool = False
    """Whether Kueue chooses the nodes of the pods."""


@dataclass(frozen=True, slots=True)
class PodUpdate:
    """What is added to a pod, so that it runs where its quota is."""

    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    scheduling_gates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    uid: str
    version: str = ""
    """Its resource version."""
    queue: str = ""
    build: str = ""
    """The mark of the spec that it was made from."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """By role: how many pods it was made for."""
    fewest: int | None = None
    """The fewest workers that the job accepts; None: all of them."""
    priority_class: str = ""
    active: bool = True
    deleting: bool = False
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    checks: tuple[str, ...] = ()
    """The messages of admission checks that are not ready."""
    assignments: Mapping[str, Assignment] = field(default_factory=dict)
    """By role."""
    reclaimable: Mapping[str, int] = field(default_factory=dict)
    """By role: how many pods need their quota no longer."""

    def is_true(self, condition: str) -> bool:
        found = self.conditions.get(condition)
        return found is not None and found.true

    @property
    def has_quota(self) -> bool:
        """Whether quota is reserved, even if the job has to stop."""
        return self.is_true(QUOTA_RESERVED)

    @property
    def may_run(self) -> bool:
        stopped = self.is_true(EVICTED) or self.is_true(FINISHED) or self.deleting or not self.active
        return self.is_true(ADMITTED) and not stopped


@dataclass(frozen=True, slots=True)
class Priority:
    """The priority of a Workload and the class that it comes from, which may be Kueue's or that of pods."""

    name: str
    value: int
    of_pods: bool = False


@dataclass(frozen=True, slots=True)
class Queueing:
    """What Kueue says about one job."""

    version: str = ""
    """The version of its API that the server serves; empty if Kueue is not installed."""
    workload: Workload | None = None
    flavors: Mapping[str, PodUpdate] = field(default_factory=dict)
    """What the flavors of the assignments add to pods, as far as they can be read."""
    priority: Priority | None = None
    error: str = ""
    """Why the priority class of the job or a flavor cannot be read, and what to do about it."""

    def update_of(self, role: str) -> PodUpdate | None:
        """What is added to the pods of a role; None if nothing was assigned."""
        found = self.workload.assignments.get(role) if self.workload else None
        if found is None or self.workload is None:
            return None
        gates = (TOPOLOGY_GATE,) if found.has_topology else ()
        parts = [*(self.flavors[name] for name in found.flavors if name in self.flavors), *found.updates]
        return PodUpdate(
            node_selector={key: value for part in parts for key, value in part.node_selector.items()},
            tolerations=tuple(one for part in parts for one in part.tolerations),
            labels={LABEL_POD_SET: role} | {key: value for part in parts for key, value in part.labels.items()},
            annotations={ANNOTATION_WORKLOAD: self.workload.name}
            | {key: value for part in parts for key, value in part.annotations.items()},
            scheduling_gates=gates,
        )
