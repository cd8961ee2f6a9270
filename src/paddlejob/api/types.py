"""The PaddleJob resource. The description of each field becomes the reference and `kubectl explain`."""

from __future__ import annotations

from enum import StrEnum
from itertools import takewhile
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, computed_field

from paddlejob import contract


class Role(StrEnum):
    """In the order in which pods are created."""

    PS = "ps"
    WORKER = "worker"
    HETER = "heter"


Slot = tuple[Role, int]
"""One replica of a job: its role and index."""


class Mode(StrEnum):
    PS = "PS"
    COLLECTIVE = "Collective"
    HETER = "Heter"
    SINGLE = "Single"


class Intranet(StrEnum):
    POD_IP = "PodIP"
    SERVICE = "Service"
    HOST = "Host"


class CleanPodPolicy(StrEnum):
    ALWAYS = "Always"
    NEVER = "Never"
    ON_FAILURE = "OnFailure"
    ON_COMPLETION = "OnCompletion"


OLD_POLICY_NAMES = {"OnFailed": "OnFailure", "Oncompletion": "OnCompletion"}


class Phase(StrEnum):
    PENDING = "Pending"
    STARTING = "Starting"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    SUSPENDED = "Suspended"
    COMPLETED = "Completed"
    FAILED = "Failed"


def deletes_pods(policy: CleanPodPolicy, phase: Phase) -> bool:
    """Whether pods are deleted when the job enters the phase."""
    match policy:
        case CleanPodPolicy.ALWAYS:
            return phase in (Phase.COMPLETED, Phase.FAILED)
        case CleanPodPolicy.ON_COMPLETION:
            return phase is Phase.COMPLETED
        case CleanPodPolicy.ON_FAILURE:
            return phase is Phase.FAILED
        case CleanPodPolicy.NEVER:
            return False


class Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class RoleSpec(Model):
    replicas: int = Field(1, ge=1, le=contract.MOST_REPLICAS, description="The number of pods of this role.")
    requests: int | None = Field(
        None, ge=1, le=contract.MOST_REPLICAS, description="The minimum number of replicas of an elastic job."
    )
    limits: int | None = Field(
        None, ge=1, le=contract.MOST_REPLICAS, description="The maximum number of replicas of an elastic job."
    )
    template: dict[str, Any] = Field(
        description="The pod template, as in any Kubernetes workload. The container named paddle trains; without one "
        "of that name, the first container does. restartPolicy is always Never: on failure the job restarts as a whole."
    )


class Topology(Model):
    preferred: str | None = Field(
        None,
        max_length=contract.LABEL_KEY_LIMIT,
        description="A node label, for example topology.kubernetes.io/zone. The pods are kept on nodes with the same "
        "value of it as far as they fit there.",
    )
    required: str | None = Field(
        None,
        max_length=contract.LABEL_KEY_LIMIT,
        description="A node label. All pods run on nodes with the same value of it, or the job waits.",
    )


class SchedulingPolicy(Model):
    minAvailable: int | None = Field(
        None, ge=1, description="The number of pods that must fit before any of them starts. Defaults to all pods."
    )
    queue: str | None = Field(None, description="The Volcano queue of the job.")
    priorityClass: str | None = Field(None, description="The priority class of the pod group.")
    minResources: dict[str, int | str] | None = Field(
        None, description="The resources that must be available before any pod starts."
    )
    topology: Topology | None = Field(
        None,
        description="Keeps the pods close to each other in the network; either preferred or required. Workers of a "
        "collective job get ranks in the order of their nodes. A policy with nothing else does not need Volcano.",
    )

    @property
    def is_gang(self) -> bool:
        """Whether all pods are to start together; an empty policy asks for that too."""
        given = (self.minAvailable, self.queue, self.priorityClass, self.minResources)
        return self.topology is None or any(one is not None for one in given)


class ProgressSpec(Model):
    enabled: bool = Field(True, description="Read progress from the log of worker 0.")
    pattern: str | None = Field(
        None,
        max_length=500,
        description="A regular expression (RE2) for lines that report progress, instead of the formats that are "
        "known. Its named groups are step, total_steps, epoch, total_epochs, checkpoint, and the names of metrics.",
    )
    metrics: tuple[str, ...] = Field(
        (), max_length=20, description="Names of further metrics to read, for example accuracy."
    )


class FailureAction(StrEnum):
    RESTART = "Restart"
    FAIL = "Fail"
    IGNORE = "Ignore"


class FailureReason(StrEnum):
    """What ends an attempt, as status.reason shows it: failures of the program first, then disruptions."""

    PROGRAM_FAILED = "ProgramFailed"
    OUT_OF_MEMORY = "OutOfMemory"
    USAGE_EXCEEDED = "UsageExceeded"
    START_ERROR = "StartError"
    COMMAND_NOT_FOUND = "CommandNotFound"
    POST_START_HOOK_ERROR = "PostStartHookError"
    SERVER_EXITED = "ServerExited"
    STALLED = "Stalled"
    EVICTED = "Evicted"
    PREEMPTED = "Preempted"
    NODE_LOST = "NodeLost"
    POD_DELETED = "PodDeleted"
    POD_LOST = "PodLost"


class ExitCodeOperator(StrEnum):
    IN = "In"
    NOT_IN = "NotIn"


class ExitCodes(Model):
    role: Role | None = Field(None, description="Only pods of this role are looked at. By default all are.")
    operator: ExitCodeOperator = Field(
        description="In: a program that failed exited with one of the values. NotIn: none that failed did."
    )
    values: tuple[Annotated[int, Field(ge=1, le=255)], ...] = Field(
        min_length=1, max_length=255, description="Exit statuses."
    )


class FailureRule(Model):
    action: FailureAction = Field(
        description="Restart: the job restarts, counted against backoffLimit. Fail: the job fails at once. Ignore: the "
        "job restarts, not counted."
    )
    onExitCodes: ExitCodes | None = Field(None, description="The rule applies to these exit statuses of programs.")
    onReasons: tuple[FailureReason, ...] | None = Field(
        None,
        min_length=1,
        max_length=20,
        description="The rule applies if the reason why the attempt ended is one of these.",
    )


class FailurePolicy(Model):
    rules: tuple[FailureRule, ...] = Field(
        min_length=1,
        max_length=20,
        description="The first rule that applies decides. Without one, failures are counted and disruptions are not.",
    )


PolicyName = Annotated[
    CleanPodPolicy,
    BeforeValidator(lambda name: OLD_POLICY_NAMES.get(name, name) if isinstance(name, str) else name),
]


class Spec(Model):
    ps: RoleSpec | None = Field(None, description="Parameter servers. A job that has them runs in PS mode.")
    worker: RoleSpec | None = Field(None, description="Workers, which train. Required.")
    heter: RoleSpec | None = Field(None, description="Heterogeneous trainers between servers and workers (Heter mode).")
    cleanPodPolicy: PolicyName | None = Field(
        None,
        description="Whether pods are deleted when the job ends. Always: they are deleted. Never: they are kept, and "
        "servers of a completed job keep running. OnFailure: they are deleted if the job failed. OnCompletion: they "
        "are deleted if the job completed. Defaults to OnCompletion. Pods of a failed job are always stopped.",
    )
    cleanPolicy: PolicyName | None = Field(None, description="Deprecated alias of cleanPodPolicy.")
    withGloo: int = Field(
        1,
        ge=0,
        le=2,
        description="Use gloo for barriers in PS and Heter mode. 0: off. 1: among workers. 2: among workers and "
        "servers.",
    )
    intranet: Intranet = Field(
        Intranet.POD_IP,
        description="How pods reach each other. PodIP: by IP address. Service: by DNS name, through one Service of "
        "the job. Host: on the host network, with a block of ports per pod.",
    )
    elastic: int = Field(
        0,
        ge=0,
        description="If 1 or more, workers can be scaled while the job runs. The job then restarts from its "
        "checkpoint. With parameter servers and withGloo 0 it does not: workers join and leave while the others "
        "train, and a worker that fails or is lost is replaced alone. Otherwise, if worker.requests is set too, the "
        "job trains with fewer workers while there is no room for all.",
    )
    schedulingPolicy: SchedulingPolicy | None = Field(
        None,
        description="How pods are scheduled: together or not at all, with Volcano, and close to each other in the "
        "network.",
    )
    scheduleTimeoutSeconds: int | None = Field(
        None,
        ge=1,
        description="If some pods have a node and no node was found for the others for this many seconds (plus up "
        "to 50%), all pods are deleted and created again a little later, so that other jobs can use the nodes. "
        "The same applies to pods that exceed a quota. Defaults to 60.",
    )
    growthIntervalSeconds: int | None = Field(
        None,
        ge=1,
        description="An elastic job that trains with fewer workers than replicas looks for room for the others this "
        "many seconds after its size last changed. Defaults to 300.",
    )
    startupDeadlineSeconds: int | None = Field(
        None,
        ge=1,
        description="How long a pod may take between being scheduled and being ready to start: pulling images and "
        "mounting volumes, without the time that init containers run. A pod that takes longer is replaced once; then "
        "all pods are deleted and created again after a growing delay. Defaults to 600.",
    )
    backoffLimit: int | None = Field(
        None,
        ge=0,
        description="The number of restarts after the program failed without getting further than before; where the "
        "log shows no step, after any failure. Defaults to 3.",
    )
    failurePolicy: FailurePolicy | None = Field(
        None,
        description="What happens after certain failures, for example that exit status 42 fails the job at once.",
    )
    stallSeconds: int | None = Field(
        None,
        ge=10,
        description="If no worker prints a line for this many seconds, the attempt hangs: the job restarts, and that "
        "counts as a failure. Not set: the job is never restarted for this reason.",
    )
    progress: ProgressSpec | None = Field(None, description="How progress is read from the log of worker 0.")
    activeDeadlineSeconds: int | None = Field(
        None, ge=1, description="The job fails once it has been active for this many seconds, including restarts."
    )
    ttlSecondsAfterFinished: int | None = Field(
        None,
        ge=0,
        description="The job and its objects are deleted this many seconds after it ended. By default they are kept.",
    )
    managedBy: str | None = Field(
        None,
        max_length=63,
        description="The controller that runs the job, for example kueue.x-k8s.io/multikueue. The operator leaves "
        f"a job alone that names another than {contract.MANAGER}, which is the default. Cannot be changed.",
    )
    suspend: bool = Field(
        False, description="If true, the pods are deleted and none are created until it is false again."
    )

    @property
    def clean(self) -> CleanPodPolicy:
        return self.cleanPodPolicy or self.cleanPolicy or CleanPodPolicy.ON_COMPLETION

    @property
    def is_ours(self) -> bool:
        """Whether this operator runs the job, and no other controller."""
        return self.managedBy in (None, contract.MANAGER)

    @property
    def backoff_limit(self) -> int:
        return 3 if self.backoffLimit is None else self.backoffLimit

    @property
    def schedule_timeout(self) -> int:
        return self.scheduleTimeoutSeconds or 60

    @property
    def growth_interval(self) -> int:
        return self.growthIntervalSeconds or 300

    @property
    def startup_deadline(self) -> int:
        return self.startupDeadlineSeconds or 600

    @property
    def roles(self) -> dict[Role, RoleSpec]:
        given = {Role.PS: self.ps, Role.WORKER: self.worker, Role.HETER: self.heter}
        return {role: spec for role, spec in given.items() if spec is not None}

    @property
    def mode(self) -> Mode:
        if self.heter:
            return Mode.HETER
        if self.ps:
            return Mode.PS
        if self.worker and max(self.worker.replicas, self.worker.limits or 1) > 1:
            return Mode.COLLECTIVE
        return Mode.SINGLE

    @property
    def live_workers(self) -> bool:
        """Whether single workers are replaced, added and removed while the others train."""
        return self.mode is Mode.PS and self.withGloo == 0 and self.elastic >= 1

    @property
    def slots(self) -> list[Slot]:
        """Every replica, servers first."""
        return [(role, index) for role, spec in self.roles.items() for index in range(spec.replicas)]

    def position(self, slot: Slot) -> int:
        """The index of a replica in `slots`."""
        role, index = slot
        earlier = takewhile(lambda other: other is not role, self.roles)
        return index + sum(self.roles[other].replicas for other in earlier)

    @property
    def pods_wanted(self) -> int:
        return sum(role.replicas for role in self.roles.values())


class RoleStatus(Model):
    replicas: int = Field(
        0, description="The number of pods of the current attempt; an elastic job may have fewer than it asks for."
    )
    pending: int = Field(0, description="Pods whose program has not started yet.")
    running: int = Field(0, description="Pods whose program is running.")
    succeeded: int = Field(0, description="Pods whose program exited with status 0.")
    failed: int = Field(0, description="Pods whose program failed.")
    ready: str = Field("", description="Running and desired pods, for example 2/2.")
    finished: str = Field("", description="Indexes that succeeded in this attempt, as ranges: 0-3,7.")
    members: str = Field(
        "",
        description="Indexes of the workers of this attempt, as ranges, if the job is elastic and has requests; "
        "empty: all.",
    )
    ranks: str = Field(
        "",
        description="Indexes of the workers of this attempt in the order of their ranks, as ranges, if topology moved "
        "a rank to another worker; empty: ordered by index.",
    )


class Condition(Model):
    type: str = Field(
        description="Running, Restarting, Suspended, Completed or Failed; and until the job ends QuotaReserved (in a "
        "queue of Kueue), PodsCreated, GangAdmitted (with gang scheduling), PodsScheduled and StartBarrierOpen."
    )
    status: str = Field(description="True or False.")
    observedGeneration: int = Field(0, description="The generation of the spec that the condition was judged for.")
    reason: str = Field("", description="A machine-readable reason.")
    message: str = Field("", description="A human-readable message.")
    lastTransitionTime: str = Field("", description="When the status of the condition last changed.")


class Progress(Model):
    step: int | None = Field(None, description="The last step of the current attempt.")
    totalSteps: int | None = Field(None, description="The number of steps of the whole training.")
    epoch: int | None = Field(None, description="The current epoch.")
    totalEpochs: int | None = Field(None, description="The number of epochs.")
    checkpointStep: int | None = Field(None, description="The step of the last checkpoint.")
    metrics: dict[str, float] = Field(
        default_factory=dict, description="The last value of each metric, for example loss."
    )
    nonFinite: dict[str, str] = Field(
        default_factory=dict, description="Metrics whose last value is not a finite number: nan, inf or -inf."
    )
    lastOutputTime: str = Field(
        "", description="When a worker last printed a line; if only this changes, it is at most five minutes behind."
    )
    eta: str = Field("", description="When training is expected to end.")
    highestStep: int | None = Field(None, description="The highest step of all attempts.")
    stepAtStart: int | None = Field(None, description="The highest step when the current attempt began.")
    highestEpoch: int | None = Field(None, description="The highest epoch of all attempts.")
    epochAtStart: int | None = Field(None, description="The highest epoch when the current attempt began.")
    highestStepTime: str = Field("", description="When the current attempt last went beyond the highest step.")
    productiveSeconds: int = Field(0, description="Seconds in which steps went beyond the highest step so far.")
    countedSince: str = Field(
        "", description="The start of the time that goodput covers: startTime, without time in which it was suspended."
    )

    @computed_field(description="How far training is, in short: 1200/5000, or epoch 3/10.")  # type: ignore[prop-decorator]
    @property
    def summary(self) -> str:
        if self.step is not None and self.totalSteps:
            return f"{self.step}/{self.totalSteps}"
        if self.epoch is not None and self.totalEpochs:
            return f"epoch {self.epoch}/{self.totalEpochs}"
        if self.step is not None:
            return f"step {self.step}"
        return f"epoch {self.epoch}" if self.epoch is not None else ""

    @property
    def furthest(self) -> str:
        """The highest step of all attempts, or the highest epoch where no step is known; empty if neither is."""
        if self.highestStep is not None:
            return f"step {self.highestStep}"
        return f"epoch {self.highestEpoch}" if self.highestEpoch is not None else ""


class PastAttempt(Model):
    attempt: int = Field(description="The number of the attempt.")
    startTime: str = Field("", description="When it began.")
    endTime: str = Field("", description="When it ended.")
    reason: str = Field("", description="Why it ended; machine-readable.")
    message: str = Field("", description="The same for humans; the first line.")
    failed: bool = Field(False, description="A failure or a disruption ended it, not a change that was asked for.")
    workers: int = Field(0, description="How many workers it had.")


class Status(Model):
    phase: Phase | None = Field(None, description="The phase of the job.")
    mode: Mode | None = Field(None, description="PS, Collective, Heter or Single.")
    reason: str = Field("", description="Why the job is not running, or how it ended; machine-readable.")
    message: str = Field("", description="The same for humans, with what to do next.")
    ps: RoleStatus | None = Field(None, description="Parameter servers.")
    worker: RoleStatus | None = Field(None, description="Workers.")
    heter: RoleStatus | None = Field(None, description="Heterogeneous trainers.")
    selector: str = Field("", description="The label selector of the workers.")
    startTime: str = Field("", description="When the job was started or resumed.")
    completionTime: str = Field("", description="When the job ended.")
    attempt: int = Field(0, description="The current attempt. Every restart of the job begins a new one.")
    pastAttempts: tuple[PastAttempt, ...] = Field(
        (), description="The last attempts before the current one, oldest first; at most ten."
    )
    publishedAttempt: int = Field(0, description="The last attempt whose environment was published to its pods.")
    restarts: int = Field(0, description="Restarts after the program failed, in all.")
    disruptions: int = Field(
        0, description="Restarts after an eviction, a lost node or the deletion of a pod; not limited."
    )
    failuresWithoutProgress: int = Field(
        0, description="Failures since the highest step last rose; without steps, all failures."
    )
    restartsWithoutProgress: int = Field(
        0,
        description="Restarts in a row after attempts without progress, or of less than 10 s; the delay before the "
        "next grows with them.",
    )
    ignoredFailures: int = Field(0, description="Restarts after failures that failurePolicy ignores; not limited.")
    startupTimeouts: int = Field(
        0, description="Restarts because a pod did not start within startupDeadlineSeconds; not limited."
    )
    replacements: str = Field(
        "",
        description="Pods of this attempt that were replaced alone, and how often: worker-3:2. A + behind the number "
        "marks a worker whose pod is being created.",
    )
    progress: Progress | None = Field(None, description="How far training is, read from the log of worker 0.")
    goodput: int | None = Field(
        None,
        description="Percent of the time since startTime in which training went beyond its highest step. Time in "
        "which the job was suspended is left out.",
    )
    avoidedNodes: tuple[str, ...] = Field(
        (), description="Nodes that the next attempts avoid, because this job failed there repeatedly."
    )
    avoidedDomains: tuple[str, ...] = Field(
        (),
        description="Values of the label of topology.required that the next attempts avoid, because not all pods "
        "fitted there.",
    )
    suspectNodes: tuple[str, ...] = Field((), description="Nodes on which pods of this job failed alone, once.")
    lastResizeTime: str = Field(
        "", description="When the number of workers of an elastic job last changed by itself, or growing was given up."
    )
    nextRestartTime: str = Field("", description="The pods of the current attempt are not created before this time.")
    queue: str = Field("", description="The queue of Kueue in which the job waits for quota, or whose quota it uses.")
    observedGeneration: int = Field(0, description="The generation of the spec that this status describes.")
    templateDigest: str = Field(
        "", description="A digest of the templates at observedGeneration, to tell whether a later change concerns them."
    )
    conditions: tuple[Condition, ...] = Field(
        (), description="The conditions of the job; the one that the phase names is True."
    )

    def role(self, role: Role) -> RoleStatus:
        found: RoleStatus | None = getattr(self, role)
        return found or RoleStatus()

    @property
    def headline(self) -> str:
        """The first line of the message, without the output of a program that may follow."""
        return self.message.partition("\n")[0]

    @property
    def finished(self) -> bool:
        return self.phase in (Phase.COMPLETED, Phase.FAILED)

    def condition(self, type_: str) -> Condition | None:
        return next((one for one in self.conditions if one.type == type_), None)


class Metadata(Model):
    name: str
    namespace: str = "default"
    uid: str = ""
    generation: int = 0
    resourceVersion: str = ""
    creationTimestamp: str | None = None
    deletionTimestamp: str | None = None
    finalizers: tuple[str, ...] = ()
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)


class PaddleJob(Model):
    apiVersion: str = contract.API_VERSION
    kind: str = contract.KIND
    metadata: Metadata
    spec: Spec
    status: Status = Field(default_factory=lambda: Status())

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def mode(self) -> Mode:
        return self.spec.mode
