"""Which logs of a job, and which of their lines."""

from __future__ import annotations

import re
from dataclasses import dataclass

from paddlejob.api.types import Spec
from paddlejob.errors import BadInput

REPLICA = re.compile(r"(ps|worker|heter)-(0|[1-9][0-9]{0,5})")


@dataclass(frozen=True)
class LogSelection:
    """By default all lines of all replicas in the latest attempt."""

    role: str = ""
    index: int | None = None
    attempt: int = 0
    container: str = ""
    tail: int = -1
    """The last lines of each replica; of those that match, if there is a pattern."""
    since: float | None = None
    """Only what was written since this moment, in seconds since the epoch."""
    run: int = 0
    """A previous run on this machine, by its number; 0: the present one."""
    pattern: re.Pattern[bytes] | None = None
    """Only lines in which this is found."""

    def has(self, attempt: int) -> bool:
        """Whether lines of this attempt are selected. By default a log is shown with all attempts that it holds."""
        return self.attempt in (0, attempt)

    @property
    def needs_search(self) -> bool:
        """Whether lines have to be looked at to know whether they are selected."""
        return self.pattern is not None or self.attempt != 0

    def matches(self, line: bytes) -> bool:
        return self.pattern is None or self.pattern.search(line) is not None

    def selects(self, role: str, index: int) -> bool:
        return self.role in ("", role) and self.index in (None, index)

    def several(self, spec: Spec) -> bool:
        """Whether more than one replica of such a job is selected."""
        found = [
            role.replicas if self.index is None else 1 for name, role in spec.roles.items() if self.role in ("", name)
        ]
        return sum(found) > 1


def parse_replica(replica: str, attempt: str) -> LogSelection:
    """One replica, or all if it is empty, from a URL; raises BadInput."""
    found = REPLICA.fullmatch(replica)
    if replica and not found:
        raise BadInput(f"{replica!r} is not a replica; use a name such as worker-0")
    if attempt and not re.fullmatch("[0-9]{1,9}", attempt):
        raise BadInput(f"attempt {attempt!r} is not a number")
    return LogSelection(found[1] if found else "", int(found[2]) if found else None, int(attempt or 0))


def line_pattern(text: str) -> re.Pattern[bytes]:
    """The regular expression of --grep; raises BadInput."""
    try:
        return re.compile(text.encode())
    except re.error as error:
        raise BadInput(f"--grep {text} is not a regular expression: {error}") from None
