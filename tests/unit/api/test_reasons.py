"""The one table of reasons: what follows from each, and that users can look each up."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from paddlejob.api.reasons import ENDS_AN_ATTEMPT, STARTING, Reason, Remedy, is_routine, remedy_of

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "docs/explanation/failures.md", *(ROOT / "docs/howto").glob("*.md")]


def test_every_reason_is_documented_in_both_languages():
    for ending in (".md", ".zh.md"):
        pages = [page for page in PAGES if page.name.endswith(".zh.md") == (ending == ".zh.md")]
        text = "\n".join(page.read_text() for page in [*pages, ROOT / f"docs/explanation/failures{ending}"])
        assert [reason for reason in Reason if not re.search(rf"(?a)\b{reason}\b", text)] == [], ending


@pytest.mark.parametrize(
    ("reason", "routine", "remedy"),
    [
        ("PodsNotReady", True, Remedy.NONE),
        ("WaitingForQuota", True, Remedy.NONE),
        ("SchedulingGated", True, Remedy.MESSAGE),
        ("ProgramFailed", False, Remedy.LOG),
        ("StartError", False, Remedy.JOB),
        ("Evicted", False, Remedy.NONE),
        ("KueueMissing", False, Remedy.QUEUE),
        ("CreateContainerConfigError", False, Remedy.MESSAGE),
    ],
)
def test_a_reason_says_whether_it_is_routine_and_who_acts(reason: str, routine: bool, remedy: Remedy):
    assert (is_routine(reason), remedy_of(reason)) == (routine, remedy)


def test_rules_name_what_ends_an_attempt_and_nothing_else():
    assert {"Stalled", "OutOfMemory", "NodeLost", "PodLost"} <= {*ENDS_AN_ATTEMPT}
    assert {"Running", "BackoffLimitExceeded", "Unschedulable"}.isdisjoint(ENDS_AN_ATTEMPT)


def test_a_job_that_something_hinders_is_not_counted_as_starting():
    assert set(STARTING) == {"Created", "PodsNotReady", "Starting"}
