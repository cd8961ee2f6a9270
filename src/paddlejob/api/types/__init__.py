"""The PaddleJob resource. The description of each field becomes the reference and `kubectl explain`."""

from paddlejob.api.types.enums import (
    OLD_POLICY_NAMES,
    CleanPodPolicy,
    DeviceKind,
    Intranet,
    Mode,
    Phase,
    RestartStrategy,
    Role,
    Slot,
    deletes_pods,
)
from paddlejob.api.types.failure_policy import (
    ExitCodeOperator,
    ExitCodes,
    FailureAction,
    FailurePolicy,
    FailureRule,
)
from paddlejob.api.types.job import Metadata, PaddleJob
from paddlejob.api.types.model import Model
from paddlejob.api.types.spec import PolicyName, ProgressSpec, RoleSpec, SchedulingPolicy, Spec, Topology
from paddlejob.api.types.status import Condition, PastAttempt, Progress, RoleStatus, Status

__all__ = [
    "OLD_POLICY_NAMES",
    "CleanPodPolicy",
    "Condition",
    "DeviceKind",
    "ExitCodeOperator",
    "ExitCodes",
    "FailureAction",
    "FailurePolicy",
    "FailureRule",
    "Intranet",
    "Metadata",
    "Mode",
    "Model",
    "PaddleJob",
    "PastAttempt",
    "Phase",
    "PolicyName",
    "Progress",
    "ProgressSpec",
    "RestartStrategy",
    "Role",
    "RoleSpec",
    "RoleStatus",
    "SchedulingPolicy",
    "Slot",
    "Spec",
    "Status",
    "Topology",
    "deletes_pods",
]
