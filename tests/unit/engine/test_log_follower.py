"""Following the log of an attempt: from lines to the newest values, samples, the last lines, and silence."""

from __future__ import annotations

from string import ascii_letters

import pytest

from paddlejob.api.types import ProgressSpec
from paddlejob.engine.log_follower import LogFollower
from paddlejob.progress import Parser
from tests.support.builders import NOON

MANY = ascii_letters[:40]


def follower(highest: int | None = None, **spec: object) -> LogFollower:
    return LogFollower(3, Parser(ProgressSpec.model_validate(spec)), highest)


@pytest.mark.parametrize(
    ("text", "draws"),
    [("10%|#   |\r20%|##  |", True), ("\r10%|#   |", False), ("done\r", False), ("step: 1", False)],
)
def test_a_line_that_was_rewritten_is_a_progress_bar(text: str, draws: bool):
    one = follower()
    one.feed([(NOON, text), (NOON, "a line")])
    assert one.reading.draws_bar is draws


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


def test_what_lines_tell_comes_with_their_times_and_the_attempt_and_a_lone_total_is_nothing():
    lines = [(NOON, "Total steps = 50, running training"), (NOON + 1, "\rstep: 1/50\rstep: 2/50"), (NOON + 2, "bye")]
    found = follower().feed(lines)
    assert [(one.attempt, one.time, one.sample.step) for one in found] == [(3, NOON + 1, 1), (3, NOON + 1, 2)]
