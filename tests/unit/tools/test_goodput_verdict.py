"""The verdict of bench/goodput.py: when faults come, and what counts as a goal that is met."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from bench.goodput import CHECKPOINT, SAVE_EVERY, next_checkpoint, parts
from bench.recovery.timeline import Fault
from bench.recovery.verdict import Recovery, verdicts


def recovery(kind: str, seconds: float, *, noticed: float = 0.5, repeated: float = 2.0) -> Recovery:
    took = {"noticed": noticed, "decided": 0.0, "stepped": seconds - noticed, "caught up": repeated}
    return Fault(0.0, kind, 1), took


def met(recoveries: list[Recovery], kept: float = 90.0, job: str = "collective") -> dict[str, bool]:
    return {one.what: one.met for one in verdicts(job, kept, recoveries, stall_seconds=20)}


@pytest.mark.parametrize("seed", range(5))
def test_faults_are_spread_evenly_over_the_time_between_two_checkpoints(seed: int):
    found = parts(10, seed)
    assert sorted(found) == pytest.approx([SAVE_EVERY * (number + 0.5) / 10 for number in range(10)])
    assert parts(10, seed) == found


async def test_a_fault_waits_for_the_next_checkpoint_but_not_for_ever(tmp_path: Path):
    newest = tmp_path / CHECKPOINT
    newest.touch()
    os.utime(newest, (1, 1))
    await next_checkpoint(tmp_path, patience=0.2)
    waiting = asyncio.create_task(next_checkpoint(tmp_path, patience=600))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    os.utime(newest, (time.time() + 1, time.time() + 1))
    await waiting


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
    del found["recoveries that ended"]
    assert found == {"kill number 2": True, "node number 2": True, "trains again after a killed node": True}


def test_a_recovery_that_has_not_ended_is_not_passed_over():
    fault, took = recovery("freeze", 50, noticed=34)
    unfinished = {stage: seconds for stage, seconds in took.items() if stage not in ("stepped", "caught up")}
    found = met([(fault, unfinished)])
    assert found == {"recoveries that ended": False, "a frozen worker is noticed after": True}


def test_a_hang_must_be_noticed_soon_after_stall_seconds():
    what = "a frozen worker is noticed after"
    assert met([recovery("freeze", 50, noticed=34)])[what] is True
    assert met([recovery("freeze", 50, noticed=36)])[what] is False
