"""A regular expression of the job's own, instead of the known formats."""

from __future__ import annotations

import time
from typing import Any

import pytest

from paddlejob.api.types import ProgressSpec
from paddlejob.api.validate import faults
from paddlejob.progress import Parser, Sample
from tests.support import builders

PATTERN = r"round (?P<step>\d+)/(?P<total_steps>\d+): (?P<loss>\S+)(?: saved (?P<checkpoint>\d+))?"


def document(pattern: object) -> dict[str, Any]:
    return builders.document(progress={"pattern": pattern})


def test_the_groups_of_the_pattern_are_read():
    sample = Parser(ProgressSpec(pattern=PATTERN)).parse("host-3 round 1,200/5,000: 0.25 saved 1000")
    assert sample is None
    sample = Parser(ProgressSpec(pattern=PATTERN)).parse("host-3 round 1200/5000: 0.25 saved 1000")
    assert sample and (sample.step, sample.total_steps, sample.checkpoint) == (1200, 5000, 1000)
    assert sample.metrics == {"loss": 0.25}


def test_a_pattern_replaces_the_known_formats():
    assert Parser(ProgressSpec(pattern=PATTERN)).parse("step 10/500 loss=0.5") is None


def test_a_group_that_is_not_a_number_is_left_out():
    sample = Parser(ProgressSpec(pattern=PATTERN)).parse("round 1/2: unknown")
    assert sample and sample.step == 1 and not sample.metrics


def test_nan_is_read_by_a_pattern_too():
    sample = Parser(ProgressSpec(pattern=PATTERN)).parse("round 1/2: nan")
    assert sample and sample.non_finite == {"loss": "nan"} and not sample.metrics


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("step (?P<step>[0-9]+", "missing )"),
        ("(?P<step>[0-9]+)(?=x)", "invalid perl operator"),
        (r"(?P<step>\d+) \1", "invalid escape sequence"),
        ("step ([0-9]+)", "has no named group; add one"),
        ("", "has no named group; add one"),
        ("(?P<step>a)(?P<step>b)", "has two groups named step; rename one"),
        ("(?P<step>(.*=){300})", "pattern too large"),
        ("(?P<step>x)" + "y" * 500, "has 511 characters; use at most 500"),
        (5, "is not a string"),
    ],
)
def test_a_bad_pattern_is_a_fault_of_the_job(pattern: object, fault: str):
    (found,) = faults(document(pattern))
    assert found.startswith("spec.progress.pattern")
    assert fault in found


def test_a_good_pattern_is_no_fault():
    assert faults(document(PATTERN)) == []


def test_a_bad_pattern_of_a_stored_job_reads_nothing():
    assert Parser(ProgressSpec(pattern="(")).parse("step 10/500 loss=0.5") is None


def test_a_pattern_made_for_backtracking_does_not_block():
    parser = Parser(ProgressSpec(pattern="(?P<loss>(a+)+)+b"))
    before = time.process_time()
    assert parser.parse("a" * 100_000) is None
    # The same pattern takes longer than the age of the universe with backtracking.
    assert time.process_time() - before < 10


def test_a_pattern_is_applied_to_the_first_2000_characters():
    parser = Parser(ProgressSpec(pattern=r"s=(?P<step>\d)"))
    assert (parser.parse("x" * 1997 + "s=7") or Sample()).step == 7
    assert parser.parse("x" * 1998 + "s=7") is None


def test_a_pattern_may_name_every_part_of_the_position():
    pattern = (
        r"(?P<step>\d+) (?P<total_steps>\d+) (?P<epoch>\d+) (?P<total_epochs>\d+) (?P<checkpoint>\d+) (?P<auc>\S+)"
    )
    assert Parser(ProgressSpec(pattern=pattern)).parse("1 2 3 4 5 0.5") == Sample(1, 2, 3, 4, 5, {"auc": 0.5})
