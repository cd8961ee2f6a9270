"""What a job has logged: samples as rows, and curves of few points."""

from __future__ import annotations

import pytest

from paddlejob.api.types import ProgressSpec
from paddlejob.logs import series
from paddlejob.logs.line import LogLine
from paddlejob.logs.series import (
    MOST_METRICS,
    MOST_POINTS,
    Collector,
    LineParser,
    LoggedSample,
    Series,
    columns_of,
    thinned,
)
from paddlejob.progress import Sample
from tests.support.builders import NOON


def parsed(*lines: tuple[int, str], spec: ProgressSpec | None = None) -> list[LoggedSample]:
    return list(LineParser(spec).samples(LogLine("worker-0", attempt, NOON, text.encode()) for attempt, text in lines))


def collected(*lines: tuple[int, str]) -> Series:
    collector = Collector()
    collector.add(parsed(*lines))
    return collector.series()


def test_every_state_of_a_progress_bar_is_a_sample_and_attempts_have_parsers_of_their_own():
    lines = [(1, "epoch 1"), (1, "\rstep 1/9\rstep 2/9"), (2, "step 5/9"), (2, "nothing"), (1, "Total steps = 50")]
    assert [(one.attempt, one.time, one.sample.step) for one in parsed(*lines)] == [
        (1, NOON, 1),
        (1, NOON, 2),
        (2, NOON, 5),
    ]


def test_a_row_has_a_cell_for_every_column_and_none_where_the_line_does_not_tell():
    sample = Sample(step=3, total_steps=9, metrics={"loss": 0.5}, non_finite={"acc": "nan"})
    row = LoggedSample(2, NOON, sample)
    cells = {name: row.cell(name) for name in columns_of(ProgressSpec(metrics=("acc",)))}
    assert cells == {
        "time": "2027-01-15T08:00:00Z", "attempt": 2, "step": 3, "total_steps": 9, "epoch": None, "total_epochs": None,
        "checkpoint": None, "loss": 0.5, "learning_rate": None, "samples_per_second": None, "acc": "nan",
    }  # fmt: skip
    assert LoggedSample(1, None, sample).cell("time") is None


def test_a_pattern_names_the_columns():
    spec = ProgressSpec(pattern=r"round (?P<step>\d+) error (?P<error>\S+)")
    assert columns_of(spec) == ["time", "attempt", *series.POSITIONS, "error"]


def test_each_attempt_is_a_curve_of_its_own():
    found = collected((1, "step 1 loss=3"), (1, "step 2 loss=2"), (2, "step 2 loss=1 acc: 0.5"))
    first, second = found.metrics["loss"]
    assert (first.attempt, first.steps, first.values) == (1, [1, 2], [3, 2])
    assert (second.attempt, second.steps, second.values) == (2, [2], [1])
    assert found.losses == (3, 2, 1)


def test_where_a_log_tells_only_epochs_they_are_the_axis():
    found = collected(*((1, f"epoch {epoch}/3 loss: {1 / epoch}") for epoch in (1, 2, 3)))
    assert (found.axis, found.metrics["loss"][0].steps) == ("epoch", [1, 2, 3])


def test_an_epoch_does_not_move_a_value_where_steps_are_known():
    found = collected((1, "step 500 loss=3"), (1, "epoch 2/9 loss: 2"), (1, "step 600 loss=1"))
    assert (found.axis, found.metrics["loss"][0].steps) == ("step", [500, 500, 600])


def test_values_without_any_position_are_counted():
    found = collected((1, "loss: 3"), (1, "loss: 2"))
    assert (found.axis, found.metrics["loss"][0].steps) == ("step", [0, 1])
    assert Collector().series() == Series({})


def test_common_metrics_come_first():
    found = collected((1, "step 1 lr=0.1 loss=1 ips: 3 samples/s"))
    assert list(found.metrics) == ["loss", "learning_rate", "samples_per_second"]


def test_a_spike_survives_when_a_curve_is_thinned_out():
    values = [1.0] * 5000
    values[3333] = 99.0
    chosen = thinned(values, MOST_POINTS)
    assert len(chosen) <= MOST_POINTS and 3333 in chosen
    assert chosen == sorted(set(chosen))


def test_a_curve_keeps_its_ends_and_its_extremes():
    assert thinned([1.0, 2.0, 3.0], 3) == [0, 1, 2]
    assert thinned([5.0, 1.0, 9.0, 2.0, 7.0, 3.0], 4) == [1, 2, 3, 4, 5]


def test_memory_is_bounded_however_long_a_job_trains(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(series, "KEPT_POINTS", 100)
    (curve,) = collected(*((1, f"step {step} loss={step}") for step in range(1, 5001))).metrics["loss"]
    assert len(curve.steps) <= 101
    assert curve.steps[-1] > 4900, "the newest points are there"


def test_the_number_of_metrics_is_bounded_but_not_that_of_attempts():
    collector = Collector()
    for attempt in (1, 2):
        metrics = {f"m{index}": 1.0 for index in range(MOST_METRICS + 5)}
        collector.add([LoggedSample(attempt, None, Sample(step=1, metrics=metrics))])
    found = collector.series().metrics
    assert len(found) == MOST_METRICS and all(len(curves) == 2 for curves in found.values())
