"""Counting the steps of one attempt: how far, how fast, and since when beyond the highest step so far."""

from __future__ import annotations

import pytest

from paddlejob.engine.step_counter import MOST_STEPS, StepCounter
from paddlejob.progress import Sample
from tests.support.builders import NOON


def counted(*samples: tuple[float, Sample], highest: int | None = None) -> StepCounter:
    counter = StepCounter(highest)
    for seconds, sample in samples:
        counter.count(NOON + seconds, sample)
    return counter


def steps(*points: tuple[float, int], highest: int | None = None) -> StepCounter:
    return counted(*((seconds, Sample(step=step)) for seconds, step in points), highest=highest)


@pytest.mark.parametrize(("step", "seen"), [(0, 0), (MOST_STEPS, MOST_STEPS), (MOST_STEPS + 1, None), (-1, None)])
def test_a_step_is_a_number_that_fits(step: int, seen: int | None):
    assert steps((0, step)).step == seen


def test_what_a_line_does_not_tell_stays_as_it_was():
    found = counted((0, Sample(step=1, total_steps=9, epoch=2, total_epochs=3)), (1, Sample(step=2)))
    assert (found.step, found.total_steps, found.epoch, found.total_epochs) == (2, 9, 2, 3)


def test_the_speed_is_that_of_the_last_five_minutes():
    slow_then_fast = [(seconds, seconds) for seconds in range(0, 400, 10)]
    slow_then_fast += [(seconds, 400 + (seconds - 400) * 10) for seconds in range(400, 800, 10)]
    assert steps(*slow_then_fast).per_second == pytest.approx(10.0)


def test_the_speed_is_an_average_of_all_that_time():
    uneven = [(10.0 * number, 10 * number + 8 * (number % 2)) for number in range(31)]
    assert steps(*uneven).per_second == pytest.approx(1.0)
    assert steps(*uneven[:-1]).per_second == pytest.approx(298 / 290)


def test_the_speed_of_steps_that_are_far_apart_is_still_known():
    assert steps((0, 0), (1000, 10), (2000, 30)).per_second == pytest.approx(0.02)


@pytest.mark.parametrize(("seconds", "speed"), [(4.9, None), (5, 2.0)])
def test_the_speed_is_not_known_before_five_seconds(seconds: float, speed: float | None):
    found = steps((0, 0), (1, 2), (seconds, 10))
    assert found.per_second == (pytest.approx(speed) if speed else None)


def test_the_speed_is_measured_anew_after_the_clock_was_set_back():
    assert steps((0, 0), (10, 20), (-3600, 30), (-3590, 50)).per_second == 2.0


def test_without_a_step_nothing_is_known():
    found = counted((0, Sample(epoch=1)))
    assert (found.highest, found.rose_at, found.per_second, found.left) == (None, None, None, None)


@pytest.mark.parametrize(("step", "left"), [(10, 20), (30, 0), (31, 0)])
def test_the_steps_that_are_left_are_never_negative(step: int, left: int):
    assert counted((0, Sample(step=step, total_steps=30))).left == left


def test_an_attempt_that_begins_where_another_ended_is_ahead_at_once_and_remembers_when():
    found = steps((0, 100), (50, 200), highest=100)
    assert found.ahead_since == NOON
    assert steps((0, 99), (50, 100), (60, 200), highest=100).ahead_since == NOON + 50


def test_the_highest_step_rises_only_when_a_step_is_higher():
    found = steps((0, 5), (10, 5), (20, 4))
    assert (found.highest, found.rose_at, found.step) == (5, NOON, 4)


def test_a_step_that_falls_back_to_a_checkpoint_is_shown_but_not_counted():
    found = steps((0, 90), (1, 40))
    assert (found.step, found.highest, found.rose_at) == (40, 90, NOON)


def test_an_attempt_is_ahead_from_when_it_reaches_the_highest_step_of_those_before():
    assert steps((0, 1)).ahead_since == NOON
    assert steps((0, 80), highest=100).ahead_since is None
    assert steps((0, 80), (40, 120), highest=100).ahead_since == NOON + 20
