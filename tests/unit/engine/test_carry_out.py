"""Many actions at once, but the first alone, and none after a rejection."""

from __future__ import annotations

import asyncio
import gc

import pytest

from paddlejob.engine.carry_out import MOST_IN_FLIGHT, carry_out
from paddlejob.plan import Action, Create, Delete, Kind


def creates(count: int, kind: Kind = Kind.POD) -> list[Action]:
    return [Create(kind, f"{kind}-{index}", {}) for index in range(count)]


class Recorder:
    def __init__(self, reject: str = "") -> None:
        self.begun: list[str] = []
        self.most = self._now = 0
        self._reject = reject

    async def perform(self, action: Action) -> None:
        assert isinstance(action, Create | Delete)
        self.begun.append(action.name)
        self._now += 1
        self.most = max(self.most, self._now)
        await asyncio.sleep(0)
        self._now -= 1
        if action.name == self._reject:
            raise PermissionError(action.name)


async def test_all_are_performed_and_no_more_than_so_many_at_once():
    seen = Recorder()
    await carry_out(creates(200), seen.perform)
    assert sorted(seen.begun) == sorted(action.name for action in creates(200))
    assert seen.most == MOST_IN_FLIGHT


async def test_a_kind_waits_for_the_kind_before_it():
    seen = Recorder()
    await carry_out([*creates(5, Kind.SERVICE), *creates(5), Delete(Kind.POD, "old", "u", "")], seen.perform)
    assert [name.partition("-")[0] for name in seen.begun] == ["Service"] * 5 + ["Pod"] * 5 + ["old"]


async def test_when_the_first_is_rejected_no_other_is_tried():
    seen = Recorder(reject="Pod-0")
    with pytest.raises(PermissionError):
        await carry_out([*creates(50), Delete(Kind.POD, "old", "u", "")], seen.perform)
    assert seen.begun == ["Pod-0"]


async def test_when_a_later_one_is_rejected_only_those_under_way_end():
    seen = Recorder(reject="Pod-40")
    with pytest.raises(PermissionError):
        await carry_out(creates(500), seen.perform)
    assert len(seen.begun) <= 41 + MOST_IN_FLIGHT


async def test_a_cancelled_turn_leaves_no_request_behind(caplog: pytest.LogCaptureFixture):
    """On the loss of the lease turns are cancelled; a request that is still under way must not go on without them."""
    begun, ended = asyncio.Event(), []

    async def perform(action: Action) -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            ended.append(action)
            raise PermissionError("not the leader") from None

    turn = asyncio.create_task(carry_out(creates(3), perform))
    await begun.wait()
    turn.cancel()
    await asyncio.wait([turn])
    assert turn.cancelled()
    assert ended == creates(1), "it has ended before the turn has"
    del turn
    gc.collect()
    assert "never retrieved" not in caplog.text


async def test_pods_are_created_once_their_services_exist():
    order: list[str] = []

    async def perform(action: Action) -> None:
        assert isinstance(action, Create)
        order.append(f"begin {action.kind}")
        await asyncio.sleep(0.01)
        order.append(f"end {action.kind}")

    await carry_out([*creates(3, Kind.SERVICE), *creates(3)], perform)
    last_service = max(index for index, what in enumerate(order) if what == "end Service")
    assert order.index("begin Pod") > last_service


async def test_it_ends_early_if_asked_to_and_says_so():
    seen, left = Recorder(), iter([True] * 40)
    complete = await carry_out(
        [*creates(500), Delete(Kind.POD, "old", "u", "")], seen.perform, lambda: next(left, False)
    )
    assert (complete, len(seen.begun)) == (False, 40)


async def test_only_creates_are_left_out():
    seen = Recorder()
    deletes = [Delete(Kind.POD, f"old-{index}", "u", "") for index in range(5)]
    assert await carry_out(deletes, seen.perform, lambda: False)
    assert len(seen.begun) == 5
