"""What a machine or cluster has, who holds it, and what replicas use of it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Resource:
    name: str
    capacity: float
    held: float
    used: float | None
    holders: dict[str, float]


@dataclass(frozen=True)
class Node:
    name: str
    state: str
    capacity: dict[str, float]
    held: dict[str, float]


@dataclass(frozen=True)
class GpuInfo:
    index: str
    name: str
    holder: str = ""
    """The job and the replica that it is assigned to."""
    percent: float | None = None
    memory: int | None = None
    capacity: int | None = None


@dataclass(frozen=True)
class Queue:
    """A queue of a scheduler, and the jobs that wait in it."""

    kind: str
    name: str
    state: str = ""
    resources: dict[str, tuple[float, float | None]] = field(default_factory=dict)
    """What is in use, and the most that may be; None: no limit."""
    pending: int = 0
    running: int = 0
    waiting: list[str] = field(default_factory=list)
    """PaddleJobs, oldest first."""


@dataclass(frozen=True)
class MachineInfo:
    name: str
    title: str
    note: str = ""
    resources: list[Resource] = field(default_factory=list)
    gpus: list[GpuInfo] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    queues: list[Queue] = field(default_factory=list)
