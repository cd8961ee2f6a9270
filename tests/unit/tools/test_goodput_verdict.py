"""The verdict of bench/goodput.py: when faults come, and what counts as a goal that is met."""

from __future__ import annotations

import pytest

from bench.goodput import SAVE_EVERY, moments
from bench.recovery.timeline import Fault
from bench.recovery.verdict import Recovery, verdicts


def recovery(kind: str, seconds: float, *, noticed: float = 0.5, repeated: float = 2.0) -> Recovery:
    took = {"noticed": noticed, "decided": 0.0, "stepped": seconds - noticed, "caught up": repeated}
    return Fault(0.0, kind, 1), took


def met(recoveries: list[Recovery], kept: float = 90.0, job: str = "collective") -> dict[str, bool]:
    return {one.what: one.met for one in verdicts(job, kept, recoveries, stall_seconds=20)}


@pytest.mark.parametrize("seed", range(5))
def test_faults_are_spread_evenly_over_the_time_between_two_checkpoints(seed: int):
    found = moments(600, 60, seed)
    assert len(found) == 10
    assert all(60 * number < after < 60 * (number + 1) for number, after in enumerate(found))
    parts = sorted((after % 60 - 30 + SAVE_EVERY / 2) for after in found)
    assert parts == pytest.approx([SAVE_EVERY * (number + 0.5) / 10 for number in range(10)])
    assert moments(600, 60, seed) == found


def test_steps_are_judged_under_faults_that_are_noticed_at_once_only():
    assert met([recovery("kill", 6)], kept=87.9)["steps kept"] is False
    assert met([recovery("kill", 6), recovery("delete", 6)], kept=88)["steps kept"] is True
    assert met([recovery("kill", 6)], kept=90, job="ps")["steps kept"] is False
    assert "steps kept" not in met([recovery("kill", 6), recovery("freeze", 40)], kept=50)


def test_a_recovery_that_takes_longer_with_each_fault_is_found_and_repeated_steps_do_not_count():
    assert met([recovery("kill", 6 + number) for number in range(10)])["kill number 10"] is False
    assert met([recovery("kill", 6, repeated=number) for number in range(10)])["kill number 10"] is True


def test_kinds_are_compared_with_themselves():
    found = met([recovery("kill", 6), recovery("node", 19), recovery("kill", 6.5), recovery("node", 19)])
    assert found == {"kill number 2": True, "node number 2": True, "trains again after a killed node": True}


def test_a_hang_must_be_noticed_soon_after_stall_seconds():
    what = "a frozen worker is noticed after"
    assert met([recovery("freeze", 50, noticed=34)])[what] is True
    assert met([recovery("freeze", 50, noticed=36)])[what] is False
