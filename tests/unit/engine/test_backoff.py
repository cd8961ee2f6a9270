"""How long the queue waits after failures, and what it keeps of requests that were overtaken."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from paddlejob.api.types import Phase, RoleStatus, Status
from paddlejob.engine import queue as queue_module
from paddlejob.engine.queue import FEW, KeyedQueue
from paddlejob.engine.reconcile import _only_counts_differ


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(queue_module.time, "monotonic", lambda: self.now)


def test_each_failure_doubles_the_wait_up_to_the_longest(monkeypatch: pytest.MonkeyPatch):
    Clock(monkeypatch)
    monkeypatch.setattr(random, "uniform", lambda least, most: most)
    queue = KeyedQueue[str](first_backoff=0.5, longest_backoff=5.0)
    waits = []
    for _ in range(6):
        queue._retry("a", KeyError())
        waits.append(queue._due.pop("a") - 1000.0)
    assert waits == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]


def test_waits_are_spread_so_that_failures_do_not_come_back_together(monkeypatch: pytest.MonkeyPatch):
    Clock(monkeypatch)
    waits = set()
    for _ in range(20):
        queue = KeyedQueue[str](first_backoff=1.0)
        queue._retry("a", KeyError())
        waits.add(queue._due["a"] - 1000.0)
    assert len(waits) > 1
    assert all(0.5 <= wait <= 1.0 for wait in waits)


def test_requests_that_were_overtaken_do_not_pile_up(monkeypatch: pytest.MonkeyPatch):
    Clock(monkeypatch)
    queue = KeyedQueue[str]()
    for key in "abcdefghij":
        for seconds in range(1000, 0, -1):
            queue.add_after(key, seconds)
    assert queue.depth == 10
    assert len(queue._heap) <= 2 * 10 + FEW + 1


async def test_a_key_that_is_wanted_earlier_has_its_turn_then_and_not_again(monkeypatch: pytest.MonkeyPatch):
    clock = Clock(monkeypatch)
    queue = KeyedQueue[str](min_interval=0.0)
    queue.add_after("a", 60)
    queue.add_after("a", 10)
    queue.add_after("a", 30)
    clock.now += 10
    assert await queue._next() == ("a", 1010.0)
    assert queue.depth == 0
    clock.now += 100
    queue.stop()
    assert await queue._next() is None


async def test_the_time_that_a_key_waited_and_worked_is_observed():
    observed: list[tuple[float, float]] = []
    queue = KeyedQueue[str](observe=lambda waited, worked: observed.append((waited, worked)))

    async def work(key: str) -> None:
        await asyncio.sleep(0.05)
        queue.stop()

    queue.add("a")
    await asyncio.wait_for(queue.run(work, 1), 30)
    ((waited, worked),) = observed
    assert waited >= 0.0
    assert worked >= 0.05


def status(**fields: Any) -> Status:
    return Status(phase=Phase.RUNNING, attempt=1, **fields)


@pytest.mark.parametrize("field", ["ps", "worker", "heter"])
def test_a_count_of_any_role_can_wait_and_so_can_a_message(field: str):
    assert _only_counts_differ(status(**{field: RoleStatus(running=1)}), status(**{field: RoleStatus(running=2)}))
    assert _only_counts_differ(status(message="1 of 2 run"), status(message="2 of 2 run"))
    assert not _only_counts_differ(status(reason="a"), status(reason="b"))
    assert not _only_counts_differ(status(), status(restarts=1))
