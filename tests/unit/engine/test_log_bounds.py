"""What is kept of a log that never ends: the last lines, the newest values, and the speed of the last minutes."""

from __future__ import annotations

from string import ascii_letters

import pytest

from paddlejob.api.types import ProgressSpec
from paddlejob.engine.log_follower import LogFollower
from paddlejob.engine.step_counter import StepCounter
from paddlejob.progress import Parser, Sample
from tests.support.builders import NOON

MOST_STEPS = 10**15


def follower(*metrics: str, highest: int | None = None) -> LogFollower:
    return LogFollower(3, Parser(ProgressSpec(metrics=metrics)), highest)


def counted(*samples: tuple[float, Sample], highest: int | None = None) -> StepCounter:
    counter = StepCounter(highest)
    for seconds, sample in samples:
        counter.count(NOON + seconds, sample)
    return counter


def steps(*points: tuple[float, int], highest: int | None = None) -> StepCounter:
    return counted(*((seconds, Sample(step=step)) for seconds, step in points), highest=highest)


def test_of_the_lines_the_last_eight_are_kept_and_200_characters_of_each():
    one = follower()
    one.feed([(NOON + number, f"line {number}") for number in range(20)])
    one.feed([(NOON + 20, "x" * 500)])
    kept = one.reading.last_lines.split("\n")
    assert kept == [*(f"line {number}" for number in range(13, 20)), "x" * 200]


def test_an_empty_line_is_output_but_not_one_of_the_last_lines():
    one = follower()
    one.feed([(NOON, "loading"), (NOON + 5, "  "), (NOON + 6, "\r")])
    assert (one.reading.last_lines, one.reading.last_output) == ("loading", NOON + 6)


def test_of_a_line_that_was_rewritten_many_times_the_last_twenty_versions_are_read():
    one = follower()
    one.feed([(NOON, "\r".join(f"step: {number}/500 loss: 1" for number in range(500)))])
    assert (one.reading.step, one.reading.highest) == (499, 499)
    late = follower()
    late.feed([(NOON, "\r".join(["step: 90/100", *["loading"] * 20]))])
    assert late.reading.step is None
    last = follower()
    last.feed([(NOON, "\r".join(["step: 90/100", *["loading"] * 19]))])
    assert last.reading.step == 90


def test_an_older_line_of_another_worker_does_not_set_the_last_output_back():
    one = follower()
    one.printed(NOON + 5)
    one.printed(NOON)
    assert one.reading.last_output == NOON + 5


def test_a_checkpoint_stays_until_the_next_one():
    one = follower()
    one.feed([(NOON, "saved checkpoint at step 40"), (NOON + 1, "step: 41/90 loss: 1")])
    assert (one.reading.checkpoint, one.reading.step) == (40, 41)


MANY = ascii_letters[:40]


@pytest.mark.parametrize(("first", "later", "field"), [("1", "7", "metrics"), ("nan", "inf", "non_finite")])
def test_thirty_metrics_are_shown_and_those_keep_changing(first: str, later: str, field: str):
    """A pattern may name as many as fit into it."""
    one = LogFollower(1, Parser(ProgressSpec(pattern="|".join(f"{name}=(?P<{name}>.+)" for name in MANY))), None)
    one.feed([(NOON, f"{name}={first}") for name in MANY])
    assert "".join(getattr(one.reading, field)) == MANY[:30]
    one.feed([(NOON, f"{MANY[3]}={later}"), (NOON, f"{MANY[39]}={later}")])
    shown = getattr(one.reading, field)
    assert (str(shown[MANY[3]]).removesuffix(".0"), MANY[39] in shown) == (later, False)


def test_a_metric_has_six_digits():
    one = follower()
    one.feed([(NOON, "step: 1/9 loss: 0.123456789")])
    assert one.reading.metrics == {"loss": 0.123457}


def test_a_reading_names_its_attempt_and_all_that_is_known_of_its_position():
    one = follower(highest=10)
    one.feed([(NOON, "epoch: 2/3 global_step: 8 loss: 1"), (NOON + 10, "epoch: 2/3 global_step: 12 loss: 1")])
    seen = one.reading
    assert (seen.attempt, seen.step, seen.epoch, seen.total_epochs) == (3, 12, 2, 3)
    assert (seen.highest, seen.step_at, seen.ahead_since) == (12, NOON + 10, NOON + 5)


def test_what_silent_processes_do_is_forgotten_when_one_of_them_prints():
    one = follower()
    one.hear(10.0)
    one.hear_nothing(70.0)
    one.describe_processes("worker-0: in all_reduce")
    assert one.reading.processes == "worker-0: in all_reduce"
    one.hear(71.0)
    assert one.reading.processes == ""


def test_a_line_that_is_heard_of_late_does_not_make_the_silence_longer():
    one = follower()
    one.hear(50.0)
    one.hear(20.0)
    one.hear_nothing(60.0)
    assert (one.silent_since, one.reading.silent_seconds) == (50.0, 10.0)


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
