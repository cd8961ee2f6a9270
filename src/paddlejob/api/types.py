"""The PaddleJob resource. The description of each field becomes the reference and `kubectl explain`."""

from __future__ import annotations

from enum import StrEnum
from itertools import takewhile
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from paddlejob import contract


class Role(StrEnum):
    """In the order in which pods are created: servers first."""

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


class Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class RoleSpec(Model):
    replicas: int = Field(1, ge=1, le=contract.MOST_REPLICAS, description="How many pods of this role.")
    requests: int | None = Field(
        None, ge=1, le=contract.MOST_REPLICAS, description="The fewest replicas an elastic job may be scaled to."
    )
    limits: int | None = Field(
        None, ge=1, le=contract.MOST_REPLICAS, description="The most replicas an elastic job may be scaled to."
    )
    template: dict[str, Any] = Field(
        description="The pod, as in any Kubernetes workload. The container named paddle, else the first, trains. "
        "restartPolicy is always Never: a failure is handled for the job as a whole."
    )


class SchedulingPolicy(Model):
    minAvailable: int | None = Field(
        None, ge=1, description="How many pods must fit at once before any starts; all of them where absent."
    )
    queue: str | None = Field(None, description="The Volcano queue.")
    priorityClass: str | None = Field(None, description="The priority class of the pod group.")
    minResources: dict[str, int | str] | None = Field(
        None, description="The resources that must be free before any pod starts."
    )


PolicyName = Annotated[
    CleanPodPolicy,
    BeforeValidator(lambda name: OLD_POLICY_NAMES.get(name, name) if isinstance(name, str) else name),
]


class Spec(Model):
    ps: RoleSpec | None = Field(None, description="Parameter servers. With them the job runs in PS mode.")
    worker: RoleSpec | None = Field(None, description="Trainers. Required.")
    heter: RoleSpec | None = Field(None, description="Heterogeneous trainers between servers and workers (Heter mode).")
    cleanPodPolicy: PolicyName | None = Field(
        None,
        description="Which pods are deleted when the job has ended. Always: in any case. Never: none; after "
        "success the servers run on. OnFailure: if it failed. OnCompletion (what is done where this is absent): "
        "if it completed. Pods of a failed job stop running in any case.",
    )
    cleanPolicy: PolicyName | None = Field(None, description="An older name of cleanPodPolicy; the same.")
    withGloo: int = Field(
        1,
        ge=0,
        le=2,
        description="Barriers through gloo in PS and Heter mode. 0: none. 1: among workers. 2: workers and servers.",
    )
    intranet: Intranet = Field(
        Intranet.POD_IP,
        description="How pods reach each other. PodIP: by address. Service: by the DNS name of a Service for each "
        "pod. Host: on the node's network, with a block of ports for each pod.",
    )
    elastic: int = Field(
        0,
        ge=0,
        description="1 or more: workers may be rescaled while the job runs; it restarts from its checkpoint.",
    )
    schedulingPolicy: SchedulingPolicy | None = Field(
        None, description="Gang scheduling by Volcano: all pods start together or none does."
    )
    backoffLimit: int | None = Field(
        None, ge=0, description="How often the job is rebuilt after its program failed. 3 where absent."
    )
    activeDeadlineSeconds: int | None = Field(
        None, ge=1, description="The job fails when it has been active for so long, restarts included."
    )
    ttlSecondsAfterFinished: int | None = Field(
        None, ge=0, description="The job and all it owns are deleted so long after it ended."
    )
    suspend: bool = Field(False, description="true: no pods; those that run are deleted. false: the job goes on.")

    @property
    def clean(self) -> CleanPodPolicy:
        return self.cleanPodPolicy or self.cleanPolicy or CleanPodPolicy.ON_COMPLETION

    @property
    def backoff_limit(self) -> int:
        return 3 if self.backoffLimit is None else self.backoffLimit

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
    replicas: int = Field(0, description="Pods wanted.")
    pending: int = Field(0, description="Pods that exist but whose program does not run yet.")
    running: int = Field(0, description="Pods whose program runs.")
    succeeded: int = Field(0, description="Pods whose program ended with exit status 0.")
    failed: int = Field(0, description="Pods whose program failed.")
    ready: str = Field("", description="Running and wanted, as in 2/2.")
    finished: str = Field("", description="Indexes that have succeeded in this attempt, as ranges: 0-3,7.")


class Condition(Model):
    type: str = Field(description="Running, Restarting, Suspended, Completed or Failed.")
    status: str = Field(description="True or False.")
    reason: str = Field("", description="One word for programs.")
    message: str = Field("", description="A sentence for people.")
    lastTransitionTime: str = Field("", description="When status last changed.")


class Status(Model):
    phase: Phase | None = Field(None, description="Where the job stands.")
    mode: Mode | None = Field(None, description="PS, Collective, Heter or Single.")
    reason: str = Field("", description="Why the job is not running, or how it ended: one word for programs.")
    message: str = Field("", description="The same for people, with what to do next.")
    ps: RoleStatus | None = Field(None, description="Parameter servers.")
    worker: RoleStatus | None = Field(None, description="Workers.")
    heter: RoleStatus | None = Field(None, description="Heterogeneous trainers.")
    selector: str = Field("", description="Label selector of the workers.")
    startTime: str = Field("", description="When the job was first worked on, or resumed.")
    completionTime: str = Field("", description="When the job ended.")
    attempt: int = Field(0, description="Which build of the pods is current.")
    publishedAttempt: int = Field(0, description="The last attempt whose environment was given to its pods.")
    restarts: int = Field(0, description="Rebuilds after the program failed; counted against backoffLimit.")
    disruptions: int = Field(0, description="Rebuilds after an eviction, a lost node or a deletion by others.")
    nextRestartTime: str = Field("", description="Before this time the pods of the current attempt are not created.")
    observedGeneration: int = Field(0, description="The generation of the spec that this status speaks of.")
    conditions: tuple[Condition, ...] = Field((), description="The life of the job as conditions.")

    def role(self, role: Role) -> RoleStatus:
        found: RoleStatus | None = getattr(self, role)
        return found or RoleStatus()

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
