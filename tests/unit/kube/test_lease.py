"""Leader election against a server that stores one lease, with a clock that the test moves."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

from paddlejob.kube.client import Client
from paddlejob.kube.leader_election import LeaderElector

from .conftest import Serve


class LeaseServer:
    """Stores a lease as an API server does: a write with an old version is a conflict."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.writes: list[dict[str, Any]] = []
        self.down = False

    async def handle(self, request: web.Request) -> web.Response:
        if self.down:
            return self._status(500, "InternalError")
        if request.method == "GET":
            return web.json_response(self.lease) if self.lease else self._status(404, "NotFound")
        sent = await request.json()
        known = self.lease["metadata"]["resourceVersion"] if self.lease else ""
        if sent["metadata"].get("resourceVersion", "") != known:
            return self._status(409, "Conflict")
        self.write(sent)
        return web.json_response(self.lease)

    def write(self, lease: dict[str, Any]) -> None:
        self.writes.append(lease["spec"])
        version = str(len(self.writes))
        self.lease = {**lease, "metadata": {**lease["metadata"], "resourceVersion": version}}

    def held_by(self, identity: str, **spec: Any) -> None:
        metadata = {"name": "operator", "namespace": "system"}
        self.write({"metadata": metadata, "spec": {"holderIdentity": identity, **spec}})

    def _status(self, code: int, reason: str) -> web.Response:
        return web.json_response({"kind": "Status", "code": code, "reason": reason}, status=code)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def elector(client: Client, clock: Clock, identity: str = "a") -> LeaderElector:
    seconds = {"lease_duration": 8.0, "renew_deadline": 5.0, "retry_period": 0.02}
    return LeaderElector(client, "system", "operator", identity, **seconds, clock=clock)


async def until(condition: Any) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_the_first_process_creates_the_lease_and_releases_it_at_the_end(serve: Serve) -> None:
    server, clock = LeaseServer(), Clock()
    async with Client(await serve(server.handle)) as client:
        mine = elector(client, clock)
        assert not mine.is_leader()
        async with mine:
            assert mine.is_leader()
            first = server.writes[0]
            assert (first["holderIdentity"], first["leaseDurationSeconds"], first["leaseTransitions"]) == ("a", 8, 0)
            assert first["acquireTime"] == first["renewTime"]
            await until(lambda: len(server.writes) > 2)
            renewed = server.writes[-1]
            assert (renewed["acquireTime"], renewed["leaseTransitions"]) == (first["acquireTime"], 0)
            assert renewed["renewTime"] > first["renewTime"]
        assert not mine.is_leader()
    assert (server.writes[-1]["holderIdentity"], server.writes[-1]["leaseDurationSeconds"]) == ("", 1)


async def test_a_lease_that_was_released_is_taken_at_once_and_the_change_is_counted(serve: Serve) -> None:
    server, clock = LeaseServer(), Clock()
    server.held_by("", leaseTransitions=4)
    async with Client(await serve(server.handle)) as client, elector(client, clock, "b") as mine:
        assert mine.is_leader()
        assert (server.writes[1]["holderIdentity"], server.writes[1]["leaseTransitions"]) == ("b", 5)


async def test_a_lease_of_another_is_taken_only_after_its_whole_duration_without_a_change(serve: Serve) -> None:
    server, clock = LeaseServer(), Clock()
    server.held_by("b", leaseDurationSeconds=30)
    async with Client(await serve(server.handle)) as client:
        mine = elector(client, clock)
        waiting = asyncio.create_task(mine.__aenter__())
        contact = mine.last_contact
        await until(lambda: mine.last_contact > contact)
        clock.now += 30
        await asyncio.sleep(0.2)
        assert not waiting.done(), "30 seconds are not more than 30"
        server.held_by("b", leaseDurationSeconds=30)
        contact = mine.last_contact
        await until(lambda: mine.last_contact > contact)
        clock.now += 29
        await asyncio.sleep(0.2)
        assert not waiting.done(), "it was renewed in between"
        clock.now += 2
        await until(waiting.done)
        assert mine.is_leader()
        await mine.__aexit__(None, None, None)


async def test_a_leader_that_cannot_renew_stops_by_its_own_clock(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    server, clock = LeaseServer(), Clock()
    async with Client(await serve(server.handle)) as client, elector(client, clock) as mine:
        server.down = True
        written = len(server.writes)
        clock.now += 4.9
        assert mine.is_leader()
        clock.now += 0.2
        assert not mine.is_leader()
        async with asyncio.timeout(30):
            await mine.lost()
        clock.now -= 5
        assert not mine.is_leader(), "a lost lease is not regained"
        server.down = False
    assert len(server.writes) == written, "and it is not released, because another may hold it"
    assert "no longer the leader: not renewed for 5 s" in caplog.text


async def test_a_leader_whose_lease_was_taken_stops_at_once(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    server, clock = LeaseServer(), Clock()
    async with Client(await serve(server.handle)) as client, elector(client, clock) as mine:
        await until(lambda: len(server.writes) > 1)
        assert server.lease is not None
        while server.lease["spec"]["holderIdentity"] != "b":
            server.held_by("b", leaseDurationSeconds=30)
        async with asyncio.timeout(30):
            await mine.lost()
        assert not mine.is_leader()
    assert server.writes[-1]["holderIdentity"] == "b"
    assert "no longer the leader: b holds the lease" in caplog.text


@pytest.mark.parametrize("seconds", [(15.0, 15.0, 2.0), (15.0, 2.0, 2.0), (5.0, 10.0, 2.0)])
def test_a_lease_must_outlast_its_renewal_and_that_the_retries(seconds: tuple[float, float, float]) -> None:
    duration, deadline, period = seconds
    with pytest.raises(ValueError, match="less than"):
        LeaderElector(
            Client.__new__(Client), "system", "operator", "a",
            lease_duration=duration, renew_deadline=deadline, retry_period=period,
        )  # fmt: skip
