"""The words that a job and its status are made of: roles, modes, networks, devices, policies and phases."""

from __future__ import annotations

from enum import StrEnum


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


class DeviceKind(StrEnum):
    """What a job trains on. The plugins of Paddle give the names with an underscore."""

    AUTO = "auto"
    CPU = "cpu"
    GPU = "gpu"
    XPU = "xpu"
    NPU = "npu"
    MLU = "mlu"
    DCU = "dcu"
    ILUVATAR_GPU = "iluvatar_gpu"
    METAX_GPU = "metax_gpu"


class RestartStrategy(StrEnum):
    RECREATE = "Recreate"
    IN_PLACE = "InPlace"


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
