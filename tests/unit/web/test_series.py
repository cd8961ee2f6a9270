"""The curves of a job, collected from the lines of its first worker."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

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


def test_where_a_log_tells_only_epochs_they_are_the_axis():
    collector = Collector(None)
    collector.add(LogLine(1, f"epoch {epoch}/3 loss: {1 / epoch}") for epoch in (1, 2, 3))
    (curve,) = collector.series().metrics["loss"]
    assert (collector.series().axis, curve.steps) == ("epoch", [1, 2, 3])


def test_an_epoch_does_not_move_a_value_where_steps_are_known():
    collector = Collector(None)
    collector.add([LogLine(1, "step 500 loss=3"), LogLine(1, "epoch 2/9 loss: 2"), LogLine(1, "step 600 loss=1")])
    (curve,) = collector.series().metrics["loss"]
    assert (collector.series().axis, curve.steps) == ("step", [500, 500, 600])


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


def test_a_long_log_is_read_in_parts_that_end_where_the_next_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("paddlejob.web.sources.local.series.BUDGET_SECONDS", 0.0)
    logs = {"1/worker-0": steps(2500), "2/worker-0": steps(2600, first=2501)}
    folder, files = stored(Store(tmp_path), logs=logs, phase="Completed", attempt=2), SeriesFiles()
    read = [files.read(folder) for _ in range(5)]
    assert [one.lines for one in read] == [1000, 2000, 2500, 2600, 2600]
    assert [one.complete for one in read] == [False, False, False, False, True]
    assert [curve.steps[-1] for curve in read[-1].metrics["loss"]] == [2500, 2600]


def test_of_a_very_long_log_samples_from_all_of_it_are_shown_and_then_every_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("paddlejob.web.sources.local.series.WHOLE_BYTES", 100_000)
    monkeypatch.setattr("paddlejob.web.sources.local.series.SAMPLES", 20)
    folder, files = (
        stored(Store(tmp_path), logs={"1/worker-0": steps(20_000)}, phase="Running", attempt=1),
        SeriesFiles(),
    )
    while not (read := files.read(folder)).complete:
        pass
    assert read.lines < 5000, "most of it was skipped"
    (curve,) = read.metrics["loss"]
    assert curve.steps == sorted(curve.steps) and curve.steps[0] < 100 and curve.steps[-1] == 20_000
    assert max(after - before for before, after in pairwise(curve.steps)) < 1500, "no gap"
    append(folder.log(1, "mnist-worker-0"), steps(20_005, first=20_001))
    assert files.read(folder).lines == read.lines + 5


def test_a_job_that_runs_again_starts_with_an_empty_chart(tmp_path: Path):
    files = SeriesFiles()
    files.read(stored(Store(tmp_path), logs={"1/worker-0": steps(10)}))
    again = stored(Store(tmp_path), logs={"1/worker-0": steps(2)})
    assert files.read(again).metrics["loss"][0].steps == [1, 2]


def test_every_state_of_a_progress_bar_is_a_point_also_before_the_bar_ends(tmp_path: Path):
    states = [f"{step:3}%|#  | {step}/100 [00:01<00:20, 4.5it/s, loss={1 / step:.3f}]" for step in range(1, 7)]
    folder = stored(Store(tmp_path), logs={"1/worker-0": "\r" + "\r".join(states[:5])}, phase="Running", attempt=1)
    lock = folder.runner_lock()
    assert lock.acquire()
    files = SeriesFiles()
    (curve,) = files.read(folder).metrics["loss"]
    assert curve.steps == [1, 2, 3, 4], "the last state may be incomplete"
    append(folder.log(1, "mnist-worker-0"), f"\r{states[5]}\n")
    (curve,) = files.read(folder).metrics["loss"]
    assert (curve.steps, curve.values[-1]) == ([1, 2, 3, 4, 5, 6], 0.167)
    lock.release()
