"""Every reason that paddlejob gives in a status or an event of a job, and what follows from it.

Kubelets and Kueue give others, such as CreateContainerConfigError; a job shows these as they are.
"""

from __future__ import annotations

from enum import Enum, StrEnum, auto
from typing import Self


class Kind(Enum):
    STARTING = auto()
    """On its way to training, and nothing hinders it."""
    ROUTINE = auto()
    """Nothing to worry about, so no warning is recorded."""
    FAILURE = auto()
    """The program ended an attempt."""
    DISRUPTION = auto()
    """Something outside ended an attempt."""
    NOTABLE = auto()


class Remedy(Enum):
    """Who acts, and how."""

    NONE = auto()
    """Nobody: the job continues without help."""
    MESSAGE = auto()
    """Somebody does what the message says; the job then continues."""
    QUEUE = auto()
    """Likewise, but in Kueue: until then the job waits without end."""
    LOG = auto()
    """The user reads the log and corrects the program."""
    JOB = auto()
    """The user changes the job and runs it again. Logs say nothing about it."""


class Reason(StrEnum):
    CREATED = "Created", Kind.STARTING
    PODS_NOT_READY = "PodsNotReady", Kind.STARTING
    STARTING = "Starting", Kind.STARTING

    RESUMED = "Resumed", Kind.ROUTINE
    RUNNING = "Running", Kind.ROUTINE
    COMPLETED = "Completed", Kind.ROUTINE
    WORKER_JOINING = "WorkerJoining", Kind.ROUTINE
    WORKERS_ADDED = "WorkersAdded", Kind.ROUTINE
    WORKERS_REMOVED = "WorkersRemoved", Kind.ROUTINE
    SCALED_UP = "ScaledUp", Kind.ROUTINE
    WAITING_FOR_POD_GROUP = "WaitingForPodGroup", Kind.ROUTINE
    WAITING_FOR_OLD_PODS = "WaitingForOldPods", Kind.ROUTINE
    QUEUED = "Queued", Kind.ROUTINE
    WAITING_FOR_QUOTA = "WaitingForQuota", Kind.ROUTINE
    WAITING_FOR_ADMISSION_CHECKS = "WaitingForAdmissionChecks", Kind.ROUTINE
    WAITING_FOR_RESOURCE_CLAIMS = "WaitingForResourceClaims", Kind.ROUTINE, Remedy.MESSAGE
    SCHEDULING_GATED = "SchedulingGated", Kind.ROUTINE, Remedy.MESSAGE

    PROGRAM_FAILED = "ProgramFailed", Kind.FAILURE, Remedy.LOG
    OUT_OF_MEMORY = "OutOfMemory", Kind.FAILURE, Remedy.LOG
    USAGE_EXCEEDED = "UsageExceeded", Kind.FAILURE, Remedy.LOG
    START_ERROR = "StartError", Kind.FAILURE, Remedy.JOB
    COMMAND_NOT_FOUND = "CommandNotFound", Kind.FAILURE, Remedy.LOG
    POST_START_HOOK_ERROR = "PostStartHookError", Kind.FAILURE, Remedy.LOG
    SERVER_EXITED = "ServerExited", Kind.FAILURE, Remedy.LOG
    STALLED = "Stalled", Kind.FAILURE, Remedy.LOG

    EVICTED = "Evicted", Kind.DISRUPTION
    PREEMPTED = "Preempted", Kind.DISRUPTION
    NODE_LOST = "NodeLost", Kind.DISRUPTION
    POD_DELETED = "PodDeleted", Kind.DISRUPTION
    POD_LOST = "PodLost", Kind.DISRUPTION

    BACKOFF_LIMIT_EXCEEDED = "BackoffLimitExceeded", Kind.NOTABLE, Remedy.LOG
    FAILURE_POLICY = "FailurePolicy", Kind.NOTABLE, Remedy.LOG
    DEADLINE_EXCEEDED = "DeadlineExceeded", Kind.NOTABLE, Remedy.JOB
    INVALID_SPEC = "InvalidSpec", Kind.NOTABLE, Remedy.JOB
    INVALID_TEMPLATE = "InvalidTemplate", Kind.NOTABLE, Remedy.JOB
    ENVIRONMENT_TOO_LARGE = "EnvironmentTooLarge", Kind.NOTABLE, Remedy.JOB

    SUSPENDED = "Suspended", Kind.NOTABLE
    SPEC_CHANGED = "SpecChanged", Kind.NOTABLE
    SCALED_DOWN = "ScaledDown", Kind.NOTABLE
    SCALE_REJECTED = "ScaleRejected", Kind.NOTABLE, Remedy.MESSAGE
    PATTERN_TOO_SLOW = "PatternTooSlow", Kind.NOTABLE, Remedy.MESSAGE
    SILENT = "Silent", Kind.NOTABLE, Remedy.MESSAGE
    WORKER_REPLACED = "WorkerReplaced", Kind.NOTABLE
    POD_REJECTED = "PodRejected", Kind.NOTABLE
    INIT_CONTAINER_FAILED = "InitContainerFailed", Kind.NOTABLE, Remedy.LOG
    IN_PLACE_FAILED = "InPlaceRestartFailed", Kind.NOTABLE
    STARTUP_DEADLINE_EXCEEDED = "StartupDeadlineExceeded", Kind.NOTABLE, Remedy.MESSAGE
    PARTIALLY_CREATED = "PartiallyCreated", Kind.NOTABLE, Remedy.MESSAGE
    PARTIALLY_SCHEDULED = "PartiallyScheduled", Kind.NOTABLE, Remedy.MESSAGE
    UNSCHEDULABLE = "Unschedulable", Kind.NOTABLE, Remedy.MESSAGE
    GANG_NOT_ADMITTED = "GangNotAdmitted", Kind.NOTABLE, Remedy.MESSAGE
    VOLCANO_MISSING = "VolcanoMissing", Kind.NOTABLE, Remedy.MESSAGE
    IMAGE_PULL_FAILED = "ImagePullFailed", Kind.NOTABLE, Remedy.MESSAGE
    VOLUME_MISSING = "VolumeMissing", Kind.NOTABLE, Remedy.MESSAGE
    OLD_POD_REMAINS = "OldPodRemains", Kind.NOTABLE, Remedy.MESSAGE
    ENVIRONMENT_TAKEN = "EnvironmentTaken", Kind.NOTABLE, Remedy.MESSAGE
    NAME_TAKEN = "NameTaken", Kind.NOTABLE, Remedy.MESSAGE
    QUOTA_EXCEEDED = "QuotaExceeded", Kind.NOTABLE, Remedy.MESSAGE
    ADMISSION_REJECTED = "AdmissionRejected", Kind.NOTABLE, Remedy.MESSAGE
    WEBHOOK_FAILED = "WebhookFailed", Kind.NOTABLE, Remedy.MESSAGE
    API_SERVER_ERROR = "ApiServerError", Kind.NOTABLE, Remedy.MESSAGE
    UNREADABLE_JOB = "UnreadableJob", Kind.NOTABLE, Remedy.MESSAGE
    ENGINE_ERROR = "EngineError", Kind.NOTABLE, Remedy.MESSAGE

    REQUEUED = "Requeued", Kind.NOTABLE
    WORKLOAD_DELETED = "WorkloadDeleted", Kind.NOTABLE
    KUEUE_MISSING = "KueueMissing", Kind.NOTABLE, Remedy.QUEUE
    INADMISSIBLE = "Inadmissible", Kind.NOTABLE, Remedy.QUEUE
    DEACTIVATED = "Deactivated", Kind.NOTABLE, Remedy.QUEUE
    PRIORITY_CLASS_UNREADABLE = "PriorityClassUnreadable", Kind.NOTABLE, Remedy.QUEUE
    FLAVOR_UNREADABLE = "FlavorUnreadable", Kind.NOTABLE, Remedy.QUEUE

    kind: Kind
    remedy: Remedy

    def __new__(cls, name: str, kind: Kind, remedy: Remedy = Remedy.NONE) -> Self:
        member = str.__new__(cls, name)
        member._value_, member.kind, member.remedy = name, kind, remedy
        return member


ENDS_AN_ATTEMPT = tuple(reason for reason in Reason if reason.kind in (Kind.FAILURE, Kind.DISRUPTION))
"""What a rule of spec.failurePolicy may name."""
STARTING = tuple(reason for reason in Reason if reason.kind is Kind.STARTING)


_BY_NAME = {reason.value: reason for reason in Reason}


def is_routine(reason: str) -> bool:
    found = _BY_NAME.get(reason)
    return found is not None and found.kind in (Kind.STARTING, Kind.ROUTINE)


def remedy_of(reason: str) -> Remedy:
    """The message says what to do about a reason that is not paddlejob's own."""
    found = _BY_NAME.get(reason)
    return found.remedy if found else Remedy.MESSAGE
