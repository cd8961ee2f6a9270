"""What a user asks for."""

from __future__ import annotations

from itertools import takewhile
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from paddlejob import contract
from paddlejob.api.types.enums import (
    OLD_POLICY_NAMES,
    CleanPodPolicy,
    DeviceKind,
    Intranet,
    Mode,
    RestartStrategy,
    Role,
    Slot,
)
from paddlejob.api.types.failure_policy import FailurePolicy
from paddlejob.api.types.model import Model


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
    device: DeviceKind = Field(
        DeviceKind.AUTO,
        description="What workers train on. auto: the device that their container requests, else the CPU. Set it if "
        "they get their devices in another way, for example by a resource claim: cpu; gpu (NVIDIA), xpu (Kunlunxin), "
        "npu (Ascend), mlu (Cambricon), dcu (Hygon), iluvatar_gpu or metax_gpu. It selects the backend with which "
        "workers of a collective job communicate.",
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
    restartStrategy: RestartStrategy | None = Field(
        None,
        description="How the job restarts after its program failed. Recreate, the default: by new pods. InPlace: an "
        "agent in each pod starts the program again, which takes a second or two; if it cannot, or if pods or nodes "
        "were lost, new pods are created. It applies to pods that are created from now on.",
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
        description="The controller that runs the job, for example example.com/controller. The operator leaves "
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
    def wants_agents(self) -> bool:
        return self.restartStrategy is RestartStrategy.IN_PLACE

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
