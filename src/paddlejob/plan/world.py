"""What a plan is made from: the state of everything that belongs to one job, reduced to what decisions need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from paddlejob.api.reasons import Reason
from paddlejob.api.types import Role
from paddlejob.plan.workload import Queueing

UNSCHEDULABLE = Reason.UNSCHEDULABLE
"""The reason of a pod that fits on no node."""
GATED = Reason.SCHEDULING_GATED
"""The reason of a pod whose scheduling gates were not removed yet."""
OUT_OF_TIME = "DeadlineExceeded"
"""The reason of a pod that reached the activeDeadlineSeconds of its template."""
NODE_LOST = Reason.NODE_LOST
"""The reason of a pod that Kubernetes gave up because its node does not respond."""


class PodPhase(StrEnum):
    """The state of a pod's training container."""

    PENDING = "Pending"
    WAITING = "Waiting"
    """Ready to start; only the environment of the job is missing."""
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
    """The last output of a container that ended, or why one does not start."""
    reason: str = ""
    """Why it is not running (Unschedulable, ErrImagePull ...) or how it ended (OOMKilled, Evicted ...)."""
    disrupted: bool = False
    """Ended, or about to end, for a reason outside the program: eviction, preemption, a lost node."""
    build: str = ""
    woken: int = 0
    woken_at: float = 0.0
    stopping: bool = False
    lingers: bool = False
    """Containers other than the training container may still run."""
    containers_ended: bool = False
    """Its kubelet reports that none of its containers runs any more; until the pod is gone it may take seconds."""
    scheduling_since: float = 0.0
    """When it was scheduled to its node, or first found to fit on none; 0 if unknown."""
    nominated: bool = False
    """Pods of lower priority are being preempted to make a node free for it."""
    initializing: bool = False
    """An init container is running."""
    init_ended: float = 0.0
    """When its last init container that ended did so, had the first started with the pod's placement."""
    init_failed: bool = False
    """An init container failed, so the training container never starts."""
    initialized: bool = False
    """It has init containers, and all have succeeded."""
    unsure: bool = False
    """Its kubelet could not find out in time whether what its environment comes from exists."""
    replacement: int = 0
    """How many pods of this replica were replaced before it in its attempt."""
    dns_name: str = ""
    """Its name in the domain of the Services of its namespace; empty without a Service."""
    built: int = 0
    """The attempt in which it was built, if it is part of a later one that began in place; else 0."""
    held: bool = False
    """Its program has ended, and its agent waits for orders."""

    @property
    def deleting(self) -> bool:
        return self.deletion_due is not None

    @property
    def placed(self) -> bool:
        """Whether it has a node."""
        return bool(self.node or self.address)

    @property
    def has_sidecars_left(self) -> bool:
        """Whether containers still run although the training container has ended."""
        return self.ended and self.lingers and not self.containers_ended

    @property
    def ended(self) -> bool:
        return self.phase in (PodPhase.SUCCEEDED, PodPhase.FAILED)


class NodeState(StrEnum):
    READY = "Ready"
    NOT_READY = "NotReady"
    """Its kubelet responds and reports a problem."""
    UNREACHABLE = "Unreachable"
    """The node controller has heard nothing from its kubelet for its grace period."""
    GONE = "Gone"
    """Deleted, or tainted as out of service: nothing runs there."""


@dataclass(frozen=True, slots=True)
class PodGroup:
    name: str
    uid: str
    owned: bool
    """Whether the operator created it for the job; otherwise it is the user's."""
    phase: str = ""
    message: str = ""
    members: int | None = None
    """How many pods the group waits for."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """An action that the backend rejected. When it is tried again is for the planner to decide."""

    name: str
    """Of the object that was to be created, else of the action."""
    reason: str
    message: str
    at: float
    times: int = 1
    """How many times in a row."""


@dataclass(frozen=True, slots=True)
class LogReading:
    """What the logs of one attempt tell: the progress that worker 0 printed, and when any worker last printed."""

    attempt: int
    step: int | None = None
    total_steps: int | None = None
    epoch: int | None = None
    total_epochs: int | None = None
    checkpoint: int | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    non_finite: Mapping[str, str] = field(default_factory=dict)
    """Metrics that are not a finite number: nan, inf or -inf."""
    highest: int | None = None
    """The highest step of the attempt; the newest may be lower."""
    step_at: float | None = None
    """When the highest step last rose."""
    ahead_since: float | None = None
    """When the attempt reached the highest step of the attempts before it."""
    last_output: float | None = None
    """When a worker last printed a line; None if not known."""
    steps_per_second: float | None = None
    steps_left: int | None = None
    silent_seconds: float | None = None
    """For how long all workers are known to have printed nothing; None if they could not all be looked at."""
    last_lines: str = ""
    draws_bar: bool = False
    """Whether worker 0 has rewritten a line with carriage returns, as a progress bar does."""
    processes: str = ""
    """What the processes of silent workers do, where the engine can tell."""
    pattern_too_slow: bool = False
    """Whether spec.progress.pattern is not used any more, because it takes too long."""

    @property
    def has_metrics(self) -> bool:
        return bool(self.metrics or self.non_finite)


class AgentState(StrEnum):
    """What an agent says about the program in its pod."""

    RUNNING = "running"
    EXITED = "exited"
    """It failed by itself, and nothing of it is left."""
    STOPPED = "stopped"
    """It was ended by order, and nothing of it is left."""


@dataclass(frozen=True, slots=True)
class AgentReport:
    attempt: int
    state: AgentState
    exit_status: int | None = None
    output: str = ""
    """The last lines of a program that failed."""


@dataclass(frozen=True, slots=True)
class AgentChannel:
    """What pods need so that their agents reach the operator."""

    url: str
    ca: str
    """The certificate by which they know it, as PEM."""
    files: Mapping[str, str] = field(repr=False)
    """Of the agent: the content of each, by its path in the directory of the agent."""
    since: float = 0.0
    """When it was opened; agents need a moment to connect."""


@dataclass(frozen=True, slots=True)
class World:
    pods: tuple[Pod, ...] = ()
    environments: Mapping[int, str] = field(default_factory=dict)
    """The attempts whose environment exists, and the uid of each."""
    services: Mapping[str, str] = field(default_factory=dict)
    """Services by name, and the uid of each."""
    pod_groups: tuple[PodGroup, ...] = ()
    gang_scheduler: bool = True
    """Whether pod groups are available."""
    stop_when_finished: bool = False
    """Whether pods that remain after the job has completed must stop: on this machine nothing outlives its job."""
    rejections: tuple[Rejection, ...] = ()
    logs: LogReading | None = None
    log_unread: bool = False
    """Whether worker 0 may have printed what was not read yet and still can be. An attempt does not end before."""
    nodes: Mapping[str, NodeState] = field(default_factory=dict)
    """The state of nodes, as far as it is known. Only those of pods that should be gone are looked at."""
    domains: Mapping[str, str] = field(default_factory=dict)
    """The domains of nodes in the job's topology, as far as they are known. Only those that decide are looked at."""
    one_machine: bool = False
    """Whether there is only one node, which cannot be avoided."""
    queueing: Queueing | None = None
    """Kueue; None on this machine, where the queue of a job has no meaning."""

    channel: AgentChannel | None = None
    """Where agents reach the operator; None if they cannot."""
    agents: Mapping[str, AgentReport] = field(default_factory=dict)
    """What the agents that are connected report, by the uids of their pods."""
    agent_configs: frozenset[str] = frozenset()
    """The names of the ConfigMaps from which pods get their agents."""

    def rejection_of(self, name: str) -> Rejection | None:
        return next((one for one in self.rejections if one.name == name), None)
