"""What the operator reports."""

from __future__ import annotations

from pydantic import Field, computed_field

from paddlejob.api.types.enums import Mode, Phase, Role
from paddlejob.api.types.model import Model


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
    builtAttempt: int = Field(
        0,
        description="The attempt in which the pods of the current one were built, if it began in place; else 0. The "
        "pods keep the label of that attempt.",
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
    earlyError: str = Field(
        "",
        description="The error with which the program ended the attempt before this one, if that made no progress. If "
        "this one ends in the same way, the job fails.",
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
    def output(self) -> str:
        """The lines below the headline: the last output of a program, if any."""
        return self.message.partition("\n")[2]

    @property
    def finished(self) -> bool:
        return self.phase in (Phase.COMPLETED, Phase.FAILED)

    def condition(self, type_: str) -> Condition | None:
        return next((one for one in self.conditions if one.type == type_), None)
