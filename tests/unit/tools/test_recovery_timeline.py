"""Where bench/goodput.py says that the time of a recovery went."""

from __future__ import annotations

from bench.recovery.timeline import Fault, Mark, Sight, durations, highest_step, stages


def sight(time: float, attempt: int, published: int, *pods: tuple[str, int, bool]) -> Sight:
    return Sight(time, attempt, published, frozenset(pods))


SIGHTS = [
    sight(0, 1, 1, ("a", 1, True), ("b", 1, True)),
    sight(10.5, 1, 1, ("a", 1, True), ("b", 1, False)),
    sight(11, 2, 1, ("a", 1, False)),
    sight(13, 2, 1),
    sight(13.5, 2, 1, ("c", 2, True)),
    sight(14, 2, 1, ("c", 2, True), ("d", 2, True)),
    sight(15, 2, 2, ("c", 2, True), ("d", 2, True)),
]
MARKS = [Mark(9, "step", 0, 90), Mark(9.5, "started", 1, 0), Mark(10, "step", 0, 100)] + [
    Mark(15.5 + delay + rank / 10, what, rank, 0)
    for delay, what in enumerate(("started", "imported", "joined", "restored"))
    for rank in (0, 1)
]
STEPS = [Mark(20 + number / 10, "step", 0, 95 + number) for number in range(10)]


def test_every_stage_lasts_from_the_end_of_the_one_before_until_the_last_worker_is_there():
    fault = Fault(10, "kill", 1)
    took = durations(fault, stages(fault, SIGHTS, [*MARKS, *STEPS], workers=2))
    assert {stage: round(seconds, 2) for stage, seconds in took.items()} == {
        "noticed": 0.5,
        "decided": 0.5,
        "deleted": 2.0,
        "created": 1.0,
        "published": 1.0,
        "started": 0.6,
        "imported": 1.0,
        "joined": 1.0,
        "restored": 1.0,
        "stepped": 1.4,
        "caught up": 0.6,
    }
    assert round(sum(took.values()), 2) == 10.6, "until step 101, the first beyond those before the fault"


def test_a_recovery_that_another_fault_cut_short_has_no_later_stages():
    fault = Fault(10, "kill", 1)
    found = stages(fault, SIGHTS[:4], MARKS[:3], workers=2)
    assert [*found] == ["noticed", "decided", "deleted"]


def test_steps_that_are_repeated_after_a_checkpoint_count_once():
    assert highest_step([*MARKS, *STEPS], until=20.2) == 100
    assert highest_step([*MARKS, *STEPS], until=21) == 104
