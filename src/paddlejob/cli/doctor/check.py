"""The result of one check of `pdj doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    GOOD = "good"
    NOTE = "note"
    """Works, with a limitation."""
    CHANGE = "change"
    """Does not work until something is changed."""


@dataclass(frozen=True)
class Check:
    what: str
    verdict: Verdict
    found: str
    advice: str = ""
    """What to change; for a note, the effect of the limitation."""


def good(what: str, found: str) -> Check:
    return Check(what, Verdict.GOOD, found)


def note(what: str, found: str, advice: str = "") -> Check:
    return Check(what, Verdict.NOTE, found, advice)


def change(what: str, found: str, advice: str) -> Check:
    return Check(what, Verdict.CHANGE, found, advice)
