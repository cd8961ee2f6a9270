"""Every error that paddlejob raises on purpose.

PaddleJobError
├── BadInput                the input cannot be used; exit status 2
│   ├── BadArgument         an option of a command, or an argument of the Python API, cannot be used
│   ├── BadFile             a file cannot be read as Kubernetes objects
│   ├── InvalidJob          a job breaks the rules; lists every fault
│   └── NoSuchJob           a job that a command or a page names does not exist
├── NotPossible             the input is valid, but this machine or cluster cannot do what it asks for
│   ├── AwsError            AWS rejected a request
│   ├── AwsUnavailable      AWS did not respond, or throttled requests; trying again may help
│   └── DamagedFile         a file in the state directory is empty or torn
├── JobFailed               the job ran and failed; exit status 1
└── KubeError               a request to Kubernetes did not succeed
    ├── Unreachable         no response, or the connection broke
    ├── NoCredentials       there is no kubeconfig and no service account, or they do not work
    ├── NotLeader           a write was withheld because another replica holds the lease
    └── ApiError            the API server returned an error: code, reason and message
        ├── Forbidden       403: RBAC, quota or an admission plugin
        ├── NotFound        404
        ├── Conflict        409: the object has changed since it was read
        │   └── AlreadyExists
        ├── Gone            410: the resource version is too old; list again
        ├── Invalid         422: the object breaks its schema or a validation rule
        └── Overloaded      429 or 503 after all retries

Some exceptions never leave the package that raises them, so they are defined there:

api      BadPattern
engine   Outdated, Rejected
local    DriverError
data     Stopped
operator Denied, Unreadable
launch   AlreadySucceeded, Forbidden, LaunchError, RendezvousFailed, ResourceExpired, Unavailable
"""

from __future__ import annotations

import re

VERB = re.compile(r"(?:are|can|cannot|contains|does|has|is|must|needs|of|was)\b")


def sentence(subject: str, problem: str) -> str:
    """A subject and what is wrong with it; a problem that starts with a verb continues the sentence."""
    return f"{subject} {problem}" if VERB.match(problem) else f"{subject}: {problem}"


def located(source: str, problem: str, *position: int) -> str:
    """A problem of a file, with the line and column where they are known."""
    place = source + "".join(f":{number}" for number in position if number)
    return sentence(f"{place}: the file" if place != source and VERB.match(problem) else place, problem)


class PaddleJobError(Exception):
    """The base of all errors. `exit_code` is the exit status of a `pdj` command that it ends."""

    exit_code = 1


class BadInput(PaddleJobError):
    exit_code = 2


class BadArgument(BadInput):
    """Something that a user passed cannot be used. It is named as in Python; `cli` names it by its option."""

    def __init__(self, argument: str, problem: str, value: str = "") -> None:
        self.argument = argument
        self.problem = problem
        self.value = value
        super().__init__(self.named(argument))

    def named(self, name: str) -> str:
        return sentence(f"{name} {self.value}".rstrip(), self.problem)


class BadFile(BadInput):
    """A file that cannot be read as Kubernetes objects; line and column are 0 where they are unknown."""

    def __init__(self, source: str, problem: str, line: int = 0, column: int = 0) -> None:
        self.source = source
        self.problem = problem
        self.line = line
        self.column = column
        super().__init__(located(source, problem, line, column))


class InvalidJob(BadInput):
    """A job that breaks the rules. Each fault says where, what, and what to change."""

    def __init__(self, faults: list[str], source: str = "") -> None:
        self.faults = faults
        self.source = source
        head = f"{source}: " if source else ""
        super().__init__("\n".join(f"{head}{fault}" for fault in faults))


class NoSuchJob(BadInput):
    pass


class NotPossible(PaddleJobError):
    pass


class JobFailed(PaddleJobError):
    """A job that ran and failed, or jobs that did. `reason` and `message` are those of the status of one job."""

    def __init__(self, text: str, reason: str = "", message: str = "") -> None:
        self.reason = reason
        self.message = message or text
        super().__init__(text)


class KubeError(PaddleJobError):
    pass


class Unreachable(KubeError):
    pass


class NoCredentials(KubeError):
    pass


class NotLeader(KubeError):
    pass


class ApiError(KubeError):
    """A response of the API server other than success."""

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
