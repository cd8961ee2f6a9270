"""`make chaos`: the population is valid, and what is measured is reported."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from paddlejob.api.validate import faults
from tools.chaos.faults import FAULTS
from tools.chaos.invariants import no_replica_trains_twice_at_once, no_two_attempts_train_at_once
from tools.chaos.jobs import PADDLE, POPULATION, Shape
from tools.chaos.ledger import DISRUPTION, LATE, RESTART, Ledger
from tools.chaos.recovery import Deck, Record
from tools.chaos.report import percentile, report
from tools.chaos.watch import GROWTH, Watch


@pytest.mark.parametrize("shape", [*POPULATION, PADDLE], ids=lambda shape: shape.name)
def test_a_job_of_the_population_is_valid(shape: Shape):
    made = shape.document(Path("/beats"))
    made["metadata"]["namespace"] = "chaos"
    assert faults(made) == []


def test_a_job_that_ends_otherwise_than_it_should_is_noticed():
    fatal = next(shape for shape in POPULATION if shape.name == "fatal")
    assert fatal.wrong_ending({"phase": "Failed", "reason": "FailurePolicy"}) == ""
    assert "is Failed BackoffLimitExceeded instead of Failed FailurePolicy" in fatal.wrong_ending(
        {"phase": "Failed", "reason": "BackoffLimitExceeded"}
    )
    assert "is Completed" in fatal.wrong_ending({"phase": "Completed", "reason": "FailurePolicy"})


def test_every_kind_of_fault_strikes_before_one_strikes_again():
    deck = Deck(cast(Any, SimpleNamespace(random=random.Random(1))), list(FAULTS.values()))
    for round in (1, 2):
        drawn = Counter(deck.draw() for _ in FAULTS)
        assert set(drawn.values()) == {1}, round


def test_the_report_counts_faults_by_kind_and_names_the_problems(tmp_path: Path):
    record = Record()
    record.times["pod deleted"] += [1.0, 2.0, 9.0]
    record.times["node cut"] += [30.0]
    lines = report(record, ["light is Failed"], Watch(tmp_path)).splitlines()
    assert lines[1].split() == ["node", "cut", "1", "30.0", "30.0"]
    assert lines[2].split() == ["pod", "deleted", "3", "2.0", "9.0"]
    assert lines[3].split() == ["all", "4", "5.5", "30.0"]
    assert lines[-1] == "PROBLEM light is Failed"


def test_the_95th_percentile_of_a_hundred_values_is_the_95th():
    assert percentile([float(number) for number in range(1, 101)], 95) == 95.0
    assert percentile([7.0], 95) == 7.0


@pytest.mark.parametrize(("last_beat", "wrong"), [(100, False), (145, False), (146, True)])
@pytest.mark.parametrize("later", ["1 2", "2 1"], ids=["the next attempt", "the job that was created again"])
def test_an_old_attempt_that_trains_on_is_noticed(tmp_path: Path, last_beat: int, wrong: bool, later: str):
    beats = [f"{second} 1 1 mnist-worker-0 a" for second in range(90, last_beat + 1)]
    beats += [f"{second} {later} mnist-worker-0 b" for second in range(100, 120)]
    assert bool(no_two_attempts_train_at_once(_stage_with(tmp_path, beats))) is wrong
    assert bool(no_replica_trains_twice_at_once(_stage_with(tmp_path, beats))) is wrong


def test_a_live_worker_beside_its_replacement_is_noticed(tmp_path: Path):
    beats = [f"{second} 1 1 live-worker-1 a" for second in range(100)]
    beats += [f"{second} 1 1 live-worker-1 b" for second in range(40, 120)]
    assert no_two_attempts_train_at_once(_stage_with(tmp_path, beats)) == []
    assert no_replica_trains_twice_at_once(_stage_with(tmp_path, beats)) == [
        "two pods live-worker-1 trained at once for 59 s"
    ]


def _stage_with(directory: Path, beats: list[str]) -> Any:
    (directory / "job").write_text("\n".join([*beats, "torn 2"]))
    return SimpleNamespace(beats=directory)


def test_a_counter_that_no_fault_explains_is_noticed():
    ledger = Ledger()
    ledger.begin("mnist")
    ledger.blame(RESTART, "mnist")
    ledger.blame(DISRUPTION, "mnist")
    ledger.blame(RESTART, "other")
    assert ledger.settle("mnist", {"restarts": 1, "disruptions": 1}) == []
    assert ledger.settle("mnist", {"restarts": 1, "disruptions": 1}) == []
    assert ledger.settle("mnist", {"restarts": 2, "disruptions": 1}) == [
        "mnist counts 1 more restarts, and no fault explains 1 of them"
    ]


def test_a_kill_may_be_counted_as_a_disruption_but_not_the_other_way_round():
    ledger = Ledger()
    ledger.blame(RESTART, "mnist")
    assert ledger.settle("mnist", {"disruptions": 1}) == []
    ledger.blame(DISRUPTION, "mnist")
    assert ledger.settle("mnist", {"disruptions": 1, "restarts": 1})


def test_a_job_that_is_created_again_counts_from_zero():
    ledger = Ledger()
    ledger.begin("mnist")
    ledger.blame(RESTART, "mnist", times=2)
    assert ledger.settle("mnist", {"restarts": 2}) == []
    ledger.begin("mnist")
    assert ledger.settle("mnist", {"restarts": 0}) == []
    assert ledger.settle("mnist", {"restarts": 1})


def test_a_fault_of_long_ago_explains_nothing():
    clock = [0.0]
    ledger = Ledger(now=lambda: clock[0])
    ledger.blame(RESTART, "mnist")
    clock[0] = LATE + 1
    assert ledger.settle("mnist", {"restarts": 1})


def test_tracebacks_are_found_in_logs_that_grow(tmp_path: Path):
    watch, log = Watch(tmp_path), tmp_path / "0.log"
    log.write_text("starting\n")
    watch.note_logs([log, tmp_path / "removed.log"])
    with log.open("a") as stream:
        stream.write("Traceback (most recent call last):\n")
    watch.note_logs([log])
    watch.note_logs([log])
    assert watch.errors == ["Traceback (most recent call last):"]
    assert (tmp_path / "operator.log").read_text() == log.read_text()


def test_memory_is_compared_within_one_process(tmp_path: Path):
    watch = Watch(tmp_path)
    watch.note_memory("a 1", 50 * 2**20)
    watch.note_memory("a 2", 50 * 2**20 + GROWTH + 1)
    assert watch.growth() == []
    watch.note_memory("a 1", 50 * 2**20 + GROWTH + 1)
    assert watch.growth() == ["operator a 1 grew from 50 MiB to 114 MiB"]
    assert watch.memory_table()[-1].endswith("50 MiB to 114 MiB, 2 processes")
