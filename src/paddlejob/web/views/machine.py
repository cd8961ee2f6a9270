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
class Queue:
    kind: str
    name: str
    detail: str


@dataclass(frozen=True)
class MachineInfo:
    name: str
    title: str
    note: str = ""
    resources: list[Resource] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    queues: list[Queue] = field(default_factory=list)


@dataclass(frozen=True)
class Usage:
    cpu: float | None = None
    """CPUs in use; None until two readings are known."""
    memory: int | None = None
    """Bytes."""
    gpu: float | None = None
    """Percent of its GPUs, where the driver tells."""
