"""What `pdj doctor` finds: one line for each thing it looked at."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    GOOD = "good"
    NOTE = "note"
    """Works, with something to know."""
    CHANGE = "change"
    """Something does not work until it is changed."""


@dataclass(frozen=True)
class Check:
    what: str
    verdict: Verdict
    found: str
    advice: str = ""
    """What to change; for a note, what it costs to leave it."""


def good(what: str, found: str) -> Check:
    return Check(what, Verdict.GOOD, found)


def note(what: str, found: str, advice: str = "") -> Check:
    return Check(what, Verdict.NOTE, found, advice)


def change(what: str, found: str, advice: str) -> Check:
    return Check(what, Verdict.CHANGE, found, advice)
