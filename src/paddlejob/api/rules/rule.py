"""What a rule is, and what all rules share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Obj = dict[str, Any]
Check = Callable[[Obj], str | None]
ChangeCheck = Callable[[Obj, Obj], str | None]

NAME_LIMIT = 63
ROLES = ("ps", "worker", "heter")


@dataclass(frozen=True)
class Rule:
    """A rule about one object. `field` is where the API server reports the fault."""

    level: str
    cel: str
    message: str
    check: Check
    field: str = ""


@dataclass(frozen=True)
class ChangeRule:
    """A rule about a change of the spec, from `oldSelf` to `self`."""

    cel: str
    message: str
    check: ChangeCheck
    field: str = ""
