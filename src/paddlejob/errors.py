"""Every error that paddlejob raises on purpose.

PaddleJobError
├── BadInput                what the user gave cannot be used; exit status 2
│   └── InvalidJob          a job file breaks the rules; lists every fault
├── NotPossible             the input is fine, but this machine or cluster cannot do it
├── JobFailed               the job ran and failed; exit status 1
└── KubeError               talking to Kubernetes went wrong
    ├── Unreachable         no answer, or the connection broke
    ├── NoCredentials       no kubeconfig and not inside a cluster, or they do not work
    ├── NotLeader           a write was held back because the lease is no longer ours
    └── ApiError            the API server said no; has its code, reason and message
        ├── Forbidden       403: rights, quota or an admission plugin
        ├── NotFound        404
        ├── Conflict        409: the object changed since it was read
        │   └── AlreadyExists
        ├── Gone            410: the resource version is too old; list again
        ├── Invalid         422: the object breaks its schema or a validation
        └── Overloaded      429 or 503 after all retries
"""

from __future__ import annotations


class PaddleJobError(Exception):
    """Base of all. `exit_code` is what `pdj` exits with when it ends a command."""

    exit_code = 1


class BadInput(PaddleJobError):
    exit_code = 2


class InvalidJob(BadInput):
    """A job that breaks the rules. `faults` are sentences: where, what, what to change."""

    def __init__(self, faults: list[str], source: str = "") -> None:
        self.faults = faults
        self.source = source
        head = f"{source}: " if source else ""
        super().__init__("\n".join(f"{head}{fault}" for fault in faults))


class NotPossible(PaddleJobError):
    pass


class JobFailed(PaddleJobError):
    pass


class KubeError(PaddleJobError):
    pass


class Unreachable(KubeError):
    pass


class NoCredentials(KubeError):
    pass


class NotLeader(KubeError):
    pass


class ApiError(KubeError):
    """An answer of the API server that is not a success."""

    def __init__(self, code: int, reason: str, message: str, retry_after: float | None = None) -> None:
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        super().__init__(f"{message} ({code} {reason})")


class Forbidden(ApiError):
    pass


class NotFound(ApiError):
    pass


class Conflict(ApiError):
    pass


class AlreadyExists(Conflict):
    pass


class Gone(ApiError):
    pass


class Invalid(ApiError):
    pass


class Overloaded(ApiError):
    pass
