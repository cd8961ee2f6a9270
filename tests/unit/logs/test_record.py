"""The record of what a job has logged: written by the engine, read by everybody else."""

from __future__ import annotations

from itertools import islice, pairwise
from pathlib import Path

import pytest

from paddlejob.logs import record
from paddlejob.logs.record import NAME, JobSeries, Recorder, read_samples, spark
from paddlejob.logs.series import LoggedSample
from paddlejob.progress import Sample


def sample(step: int, attempt: int = 1, loss: float | None = None) -> LoggedSample:
    return LoggedSample(attempt, 1000.0 + step, Sample(step=step, metrics={"loss": 1 / step if loss is None else loss}))


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path, "mnist", None)


def log(job: Path, attempt: int, text: str) -> None:
    path = job / "logs" / f"attempt-{attempt}" / "mnist-worker-0.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def recorded(job: Path) -> list[LoggedSample]:
    return [one for batch in read_samples(job, "mnist", None) for one in batch]


def test_samples_are_read_as_they_were_recorded(tmp_path: Path, recorder: Recorder):
    samples = [
        sample(1),
        LoggedSample(2, 1002.5, Sample(2, 40, 1, 3, 2, {"loss": 0.5, "acc": 1.0}, {"grad": "nan"})),
        LoggedSample(2, None, Sample(step=10**30)),
    ]
    recorder.append(samples[:1])
    recorder.append(samples[1:])
    assert recorded(tmp_path) == samples


def test_the_record_goes_on_after_a_line_that_was_not_written_whole(tmp_path: Path, recorder: Recorder):
    recorder.append([sample(1)])
    with (tmp_path / NAME).open("a") as file:
        file.write('{"attempt": 1, "ti')
    recorder.append([sample(2)])
    assert recorded(tmp_path) == [sample(1), sample(2)]


def test_the_record_does_not_fill_the_disk(tmp_path: Path, recorder: Recorder, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(record, "MOST_BYTES", 10_000)
    for step in range(1, 1001):
        recorder.append([sample(step)])
    steps = [one.sample.step or 0 for one in recorded(tmp_path)]
    assert (tmp_path / NAME).stat().st_size <= 10_000
    assert steps == sorted(set(steps)) and steps[-1] == 1000 and len(steps) > 50 and steps[0] < 50
    assert max(after - before for before, after in pairwise(steps)) < 50, "no gap"


def test_who_follows_a_record_that_is_thinned_out_gets_every_sample_once(
    tmp_path: Path, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(record, "MOST_BYTES", 2_000)
    steps = iter(range(1, 101))

    def over() -> bool:
        """One sample before each look, all of the same moment."""
        new = [LoggedSample(1, 1000.0, Sample(step=step)) for step in islice(steps, 1)]
        recorder.append(new)
        return not new

    found = [one.sample.step for batch in read_samples(tmp_path, "mnist", None, over) for one in batch]
    assert found == list(range(1, 101))


def test_curves_are_read_on_also_when_the_record_is_thinned_out(
    tmp_path: Path, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
):
    recorder.append(map(sample, range(1, 4)))
    series = JobSeries(tmp_path, "mnist", None)
    assert series.read(over=False).metrics["loss"][0].steps == [1, 2, 3]
    recorder.append([sample(4), sample(4, attempt=2)])
    assert [curve.steps for curve in series.read(over=False).metrics["loss"]] == [[1, 2, 3, 4], [4]]
    monkeypatch.setattr(record, "MOST_BYTES", 0)
    recorder.append([sample(5, attempt=2)])
    assert [curve.steps for curve in series.read(over=False).metrics["loss"]] == [[1, 2, 3, 4], [4, 5]]
    assert JobSeries(tmp_path, "mnist", None).read(over=False).losses == (0.5, 0.25, 0.2)


def test_a_run_of_an_earlier_version_is_read_from_its_logs(tmp_path: Path):
    log(tmp_path, 1, "step 1 loss=3\nnothing\n")
    log(tmp_path, 2, "step 1 loss=2\n\rstep 2 loss=1\rstep 3 loss=0.5")
    found = [(one.attempt, one.time, one.sample.step) for one in recorded(tmp_path)]
    assert found == [(1, None, 1), (2, None, 1), (2, None, 2), (2, None, 3)]
    series = JobSeries(tmp_path, "mnist", None)
    assert series.read(over=False).losses == (3, 2, 1), "the last state may not be complete"
    assert series.read(over=True).losses == (3, 2, 1, 0.5)
    assert spark(tmp_path) == ()


def test_a_run_that_this_version_continues_keeps_what_its_logs_tell(tmp_path: Path):
    log(tmp_path, 1, "step 1 loss=3\n")
    log(tmp_path, 2, "step 7 loss=3\n")
    Recorder(tmp_path, "mnist", None).append([sample(7, attempt=2), sample(8, attempt=3)])
    assert [(one.attempt, one.sample.step) for one in recorded(tmp_path)] == [(1, 1), (2, 7), (3, 8)]


def test_the_next_engine_does_not_record_what_the_last_one_has(tmp_path: Path, recorder: Recorder):
    recorder.append([sample(1), sample(2)])
    with (tmp_path / NAME).open("a") as file:
        file.write('{"number": 3, "att')
    again = Recorder(tmp_path, "mnist", None)
    again.append([sample(1), sample(2)])
    again.append([sample(2, attempt=2)])
    again.append([sample(3, attempt=2)])
    assert [(one.attempt, one.sample.step) for one in recorded(tmp_path)] == [(1, 1), (1, 2), (2, 2), (2, 3)]


def test_who_follows_a_job_that_has_not_begun_waits_for_its_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    looks = iter([lambda: None, lambda: Recorder(tmp_path, "mnist", None).append([sample(1)]), lambda: None])

    def over() -> bool:
        look = next(looks, None)
        if look:
            look()
        return look is None

    assert [one for batch in read_samples(tmp_path, "mnist", None, over) for one in batch] == [sample(1)]


def test_curves_that_somebody_looks_at_before_the_job_begins_are_read_from_its_record(tmp_path: Path):
    series = JobSeries(tmp_path, "mnist", None)
    assert series.read(over=False).metrics == {}
    Recorder(tmp_path, "mnist", None).append([sample(1)])
    log(tmp_path, 1, "step 1 loss=3\nstep 2 loss=2\n")
    assert series.read(over=False).losses == (1.0,)


def test_the_small_curve_of_a_job_has_few_points_and_ends_with_the_newest(tmp_path: Path, recorder: Recorder):
    assert spark(tmp_path) == ()
    recorder.append([LoggedSample(1, None, Sample(step=1)), sample(2), sample(3)])
    assert spark(tmp_path) == (1 / 2, 1 / 3)
    recorder.append(map(sample, range(4, 5000)))
    losses = spark(tmp_path)
    assert 20 <= len(losses) <= 24 and losses[-1] == 1 / 4999 and list(losses) == sorted(losses, reverse=True)
