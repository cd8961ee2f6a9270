"""Following the log of an attempt: from lines to steps, speed, the time beyond the highest step, and silence."""

from __future__ import annotations

import pytest

from paddlejob.api.types import ProgressSpec
from paddlejob.engine.log_follower import LogFollower
from paddlejob.engine.step_counter import StepCounter
from paddlejob.progress import Parser, Sample
from tests.support.builders import NOON


def follower(highest: int | None = None, **spec: object) -> LogFollower:
    return LogFollower(1, Parser(ProgressSpec.model_validate(spec)), highest)


def counted(highest: int | None, *samples: tuple[float, Sample]) -> StepCounter:
    counter = StepCounter(highest)
    for at, sample in samples:
        counter.count(at, sample)
    return counter


def test_lines_become_the_newest_step_and_its_metrics():
    one = follower()
    one.feed([(NOON, "starting"), (NOON + 1, "step: 1/50 loss: 0.5"), (NOON + 11, "step: 21/50 loss: 0.25")])
    reading = one.reading
    assert (reading.step, reading.total_steps, reading.highest, reading.steps_left) == (21, 50, 21, 29)
    assert reading.metrics == {"loss": 0.25}
    assert reading.steps_per_second == pytest.approx(2.0)
    assert reading.last_output == NOON + 11


def test_a_progress_bar_that_rewrites_its_line_is_read_to_its_last_version():
    one = follower()
    one.feed([(NOON, "\rstep: 1/9 loss: 3\rstep: 2/9 loss: 2\r\r")])
    assert one.reading.step == 2
    assert one.reading.last_lines == "step: 2/9 loss: 2"


def test_a_step_that_falls_back_to_a_checkpoint_is_shown_but_not_counted():
    found = counted(None, (NOON, Sample(step=90)), (NOON + 1, Sample(step=40)))
    assert (found.step, found.highest, found.rose_at) == (40, 90, NOON)


def test_an_attempt_is_ahead_from_when_it_reaches_the_highest_step_of_those_before():
    assert counted(None, (NOON, Sample(step=1))).ahead_since == NOON
    behind = counted(100, (NOON, Sample(step=80)))
    assert behind.ahead_since is None
    between = counted(100, (NOON, Sample(step=80)), (NOON + 40, Sample(step=120)))
    assert between.ahead_since == NOON + 20


@pytest.mark.parametrize("step", [-1, 10**16])
def test_a_number_that_cannot_be_a_step_is_ignored(step: int):
    assert counted(None, (NOON, Sample(step=step))).step is None


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_a_metric_that_is_no_number_any_more_is_shown_as_such(value: str):
    one = follower()
    one.feed([(NOON, "step: 1/9 loss: 0.5"), (NOON + 1, f"step: 2/9 loss: {value}")])
    assert (one.reading.metrics, one.reading.non_finite) == ({}, {"loss": value})
    one.feed([(NOON + 2, "step: 3/9 loss: 0.25")])
    assert (one.reading.metrics, one.reading.non_finite) == ({"loss": 0.25}, {})


def test_an_environment_that_a_launcher_prints_does_not_get_into_a_message():
    one = follower()
    one.feed([(NOON, "LAUNCH INFO env {'TOKEN': 'secret'}")])
    assert "secret" not in one.reading.last_lines


def test_silence_is_known_only_after_a_look_and_ends_with_a_line():
    one = follower()
    one.hear_nothing(5.0)
    assert one.reading.silent_seconds is None, "no worker has run yet"
    one.hear(10.0)
    assert one.reading.silent_seconds == 0
    one.hear_nothing(70.0)
    assert one.reading.silent_seconds == 60
    one.hear(75.0)
    assert one.reading.silent_seconds == 0
    one.begin_anew()
    one.hear_nothing(500.0)
    assert one.reading.silent_seconds is None
