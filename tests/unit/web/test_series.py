"""The curves of a job, collected from the lines of its first worker."""

from __future__ import annotations

from pathlib import Path

from paddlejob.client.targets.target import LogLine
from paddlejob.local.state.store import Store
from paddlejob.web.sources.local.series import SeriesFiles
from paddlejob.web.views import series
from paddlejob.web.views.series import MOST_METRICS, MOST_POINTS, Collector, thinned
from tests.support.web_jobs import append, steps, stored


def test_each_attempt_is_a_curve_of_its_own():
    collector = Collector(None)
    collector.add([LogLine(1, "step 1 loss=3"), LogLine(1, "step 2 loss=2"), LogLine(2, "step 2 loss=1 acc: 0.5")])
    first, second = collector.series().metrics["loss"]
    assert (first.attempt, first.steps, first.values) == (1, [1, 2], [3, 2])
    assert (second.attempt, second.steps, second.values) == (2, [2], [1])


def test_a_spike_survives_when_a_curve_is_thinned_out():
    values = [1.0] * 5000
    values[3333] = 99.0
    chosen = thinned(values, MOST_POINTS)
    assert len(chosen) <= MOST_POINTS and 3333 in chosen
    assert chosen == sorted(set(chosen))


def test_memory_is_bounded_however_long_a_job_trains(monkeypatch):
    monkeypatch.setattr(series, "KEPT_POINTS", 100)
    collector = Collector(None)
    collector.add(LogLine(1, f"step {step} loss={step}") for step in range(1, 5001))
    (curve,) = collector.series().metrics["loss"]
    assert len(curve.steps) <= 101
    assert curve.steps[-1] > 4900, "the newest points are there"


def test_a_program_that_prints_any_number_of_names_does_not_fill_the_memory():
    spec = series.ProgressSpec(metrics=tuple(f"m{index}" for index in range(20)))
    collector = Collector(spec)
    collector.add(LogLine(1, " ".join([f"step {step}", *(f"m{index}=1" for index in range(20))])) for step in range(50))
    assert len(collector.series().metrics) <= MOST_METRICS


def test_a_log_is_read_once_and_then_only_what_was_added(tmp_path: Path):
    folder = stored(Store(tmp_path), logs={"1/worker-0": steps(10)}, phase="Running", attempt=1)
    files = SeriesFiles()
    assert files.read(folder).lines == 10
    append(folder.log(1, "mnist-worker-0"), steps(12, first=11))
    read = files.read(folder)
    assert (read.lines, read.metrics["loss"][0].steps) == (12, list(range(1, 13)))


def test_a_job_that_runs_again_starts_with_an_empty_chart(tmp_path: Path):
    files = SeriesFiles()
    files.read(stored(Store(tmp_path), logs={"1/worker-0": steps(10)}))
    again = stored(Store(tmp_path), logs={"1/worker-0": steps(2)})
    assert files.read(again).metrics["loss"][0].steps == [1, 2]
