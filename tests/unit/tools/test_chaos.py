"""`make chaos`: the population is valid, and what is measured is reported."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from paddlejob.api.validate import faults
from tools.chaos.__main__ import FAULTS
from tools.chaos.invariants import no_two_attempts_train_at_once
from tools.chaos.jobs import PADDLE, POPULATION, Shape
from tools.chaos.recovery import Record
from tools.chaos.report import percentile, report


@pytest.mark.parametrize("shape", [*POPULATION, PADDLE], ids=lambda shape: shape.name)
def test_a_job_of_the_population_is_valid(shape: Shape):
    made = shape.document(Path("/beats"))
    made["metadata"]["namespace"] = "chaos"
    assert faults(made) == []


def test_every_fault_of_the_table_has_a_name_of_its_own():
    assert len(FAULTS) == 25


def test_the_report_counts_faults_by_kind_and_names_the_problems():
    record = Record()
    record.times["pod deleted"] += [1.0, 2.0, 9.0]
    record.times["node cut"] += [30.0]
    lines = report(record, ["light is Failed"]).splitlines()
    assert lines[1].split() == ["node", "cut", "1", "30.0", "30.0"]
    assert lines[2].split() == ["pod", "deleted", "3", "2.0", "9.0"]
    assert lines[3].split() == ["all", "4", "5.5", "30.0"]
    assert lines[-1] == "PROBLEM light is Failed"


def test_the_95th_percentile_of_a_hundred_values_is_the_95th():
    assert percentile([float(number) for number in range(1, 101)], 95) == 95.0
    assert percentile([7.0], 95) == 7.0


@pytest.mark.parametrize(("last_beat", "wrong"), [(100, False), (145, False), (146, True)])
def test_an_old_attempt_that_trains_on_is_noticed(tmp_path: Path, last_beat: int, wrong: bool):
    beats = [f"{second} 1 mnist-worker-0 a" for second in range(90, last_beat + 1)]
    beats += [f"{second} 2 mnist-worker-0 b" for second in range(100, 120)]
    (tmp_path / "mnist").write_text("\n".join([*beats, "torn 2"]))
    stage: Any = SimpleNamespace(beats=tmp_path, recreated=set())
    assert bool(no_two_attempts_train_at_once(stage)) is wrong
