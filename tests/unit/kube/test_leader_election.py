"""Leader election on a server that stores one lease and can fail, with a clock that the test moves."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from paddlejob.kube.client import Client
from paddlejob.kube.leader_election import LeaderElector
from paddlejob.kube.server_clock import steady_clock
from tests.support.scripted_cluster import Serve, failure
from tests.support.waiting import until

SECONDS = {"lease_duration": 8.0, "renew_deadline": 5.0, "retry_period": 0.02}


class LeaseServer:
    """Stores a lease as an API server does: a write with an old version is a conflict."""

    def __init__(self, holder: str | None = None, **spec: Any) -> None:
        self.lease: dict[str, Any] | None = None
        self.writes: list[dict[str, Any]] = []
        self.requests = 0
        self.errors: dict[str, list[int]] = {}
        """The codes of the next answers to requests of a method."""
        self.answer: Any = None
        """What every request gets instead."""
        self.hangs = False
        """The next renewal is written, but not answered."""
        if holder is not None:
            self.hold(holder, **spec)

    async def handle(self, request: web.Request) -> web.Response:
        self.requests += 1
        if self.answer is not None:
            return web.json_response(self.answer)
        if codes := self.errors.get(request.method):
            return self._error(codes.pop())
        if request.method == "GET":
            return web.json_response(self.lease) if self.lease else self._error(404)
        sent = await request.json()
        if sent["metadata"].get("resourceVersion", "") != (str(len(self.writes)) if self.writes else ""):
            return self._error(409)
        self._write(sent)
        if request.method == "PUT" and self.hangs:
            self.hangs = False
            await asyncio.sleep(3600)
        return web.json_response(self.lease)

    def hold(self, identity: str, **spec: Any) -> None:
        metadata = {"name": "operator", "namespace": "system"}
        self._write({"metadata": metadata, "spec": {"holderIdentity": identity, **spec}})

    async def has_been_read(self) -> None:
        """The lease as it is now reached a candidate, which asks again once it has read the first answer."""
        seen = self.requests
        await until(lambda: self.requests >= seen + 2)

    def fail(self, *methods: str) -> None:
        """Answer these with errors from now on."""
        self.errors = {method: [500] * 10_000 for method in methods or ("GET", "POST", "PUT")}

    @property
    def holders(self) -> list[str]:
        return [spec["holderIdentity"] for spec in self.writes]

    def _write(self, lease: dict[str, Any]) -> None:
        self.writes.append(lease["spec"])
        self.lease = {**lease, "metadata": {**lease["metadata"], "resourceVersion": str(len(self.writes))}}

    def _error(self, code: int) -> web.Response:
        reason = {404: "NotFound", 409: "Conflict"}.get(code, "InternalError")
        return web.json_response(failure(code, reason)[1], status=code)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@contextlib.asynccontextmanager
async def candidate(
    serve: Serve, server: LeaseServer, clock: Clock | None = None, identity: str = "a", **seconds: float
) -> AsyncIterator[LeaderElector]:
    async with Client(await serve(server.handle)) as client:
        timing = SECONDS | seconds
        yield LeaderElector(client, "system", "operator", identity, **timing, clock=clock or Clock())


async def lost(elector: LeaderElector) -> None:
    async with asyncio.timeout(30):
        await elector.lost()


async def test_the_first_process_creates_the_lease_and_releases_it_at_the_end(serve: Serve):
    server = LeaseServer()
    async with candidate(serve, server) as mine:
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


async def test_a_lease_that_was_released_is_taken_at_once_and_the_change_is_counted(serve: Serve):
    server = LeaseServer("", leaseTransitions=4)
    async with candidate(serve, server, identity="b") as mine, mine:
        assert mine.is_leader()
        assert (server.writes[1]["holderIdentity"], server.writes[1]["leaseTransitions"]) == ("b", 5)


async def test_a_lease_of_another_is_taken_only_after_its_whole_duration_without_a_change(serve: Serve):
    server, clock = LeaseServer("b", leaseDurationSeconds=30), Clock()
    async with candidate(serve, server, clock) as mine:
        waiting = asyncio.create_task(mine.__aenter__())
        await server.has_been_read()
        clock.now += 30
        await asyncio.sleep(0.2)
        assert not waiting.done(), "30 seconds are not more than 30"
        server.hold("b", leaseDurationSeconds=30)
        await server.has_been_read()
        clock.now += 29
        await asyncio.sleep(0.2)
        assert not waiting.done(), "it was renewed in between"
        assert server.holders == ["b", "b"]
        clock.now += 2
        await until(waiting.done)
        assert mine.is_leader()
        await mine.__aexit__(None, None, None)


async def test_a_leader_that_cannot_renew_stops_by_its_own_clock(serve: Serve, caplog: pytest.LogCaptureFixture):
    server, clock = LeaseServer(), Clock()
    async with candidate(serve, server, clock) as mine, mine:
        server.fail()
        written = len(server.writes)
        clock.now += 4.9
        failed = server.requests + 2
        await until(lambda: server.requests > failed)
        assert mine.is_leader()
        clock.now += 0.2
        assert not mine.is_leader(), "renewals that failed do not extend the lease"
        await lost(mine)
        clock.now -= 5
        assert not mine.is_leader(), "a lost lease is not regained"
        server.errors = {}
    assert len(server.writes) == written, "and it is not released, because another may hold it"
    assert "no longer the leader: not renewed for 5 s" in caplog.text


async def test_a_leader_whose_lease_was_taken_stops_at_once(serve: Serve, caplog: pytest.LogCaptureFixture):
    server = LeaseServer()
    async with candidate(serve, server) as mine, mine:
        await until(lambda: len(server.writes) > 1)
        while server.holders[-1] != "b":
            server.hold("b", leaseDurationSeconds=30)
        await lost(mine)
        assert not mine.is_leader()
    assert server.holders[-1] == "b"
    assert "no longer the leader: b holds the lease" in caplog.text


@pytest.mark.parametrize("seconds", [(15.0, 15.0, 2.0), (15.0, 2.0, 2.0), (5.0, 10.0, 2.0)])
async def test_a_lease_must_outlast_its_renewal_and_that_the_retries(serve: Serve, seconds: tuple[float, ...]):
    with pytest.raises(ValueError, match="less than"):
        async with candidate(serve, LeaseServer(), **dict(zip(SECONDS, seconds, strict=True))):
            pass


@pytest.mark.parametrize("code", [403, 409, 500])
async def test_a_lease_that_cannot_be_created_is_tried_again(serve: Serve, code: int):
    server = LeaseServer()
    server.errors = {"POST": [code, code]}
    async with candidate(serve, server) as mine, mine:
        assert mine.is_leader()
        assert server.errors == {"POST": []}


@pytest.mark.parametrize("held", [False, True])
async def test_a_server_that_fails_makes_no_leader(serve: Serve, held: bool):
    server = LeaseServer("b" if held else None, leaseDurationSeconds=3600)
    server.fail()
    async with candidate(serve, server) as mine:
        waiting = asyncio.create_task(mine.__aenter__())
        await until(lambda: server.requests > 3)
        assert not waiting.done() and not mine.is_leader()
        server.errors = {}
        if held:
            server.hold("")
        await until(waiting.done)
        assert mine.is_leader()
        await mine.__aexit__(None, None, None)


async def test_a_renewal_that_fails_once_does_not_cost_the_lease(serve: Serve):
    server = LeaseServer()
    server.errors = {"PUT": [500]}
    async with candidate(serve, server) as mine, mine:
        await until(lambda: not server.errors["PUT"] and len(server.writes) > 1)
        assert mine.is_leader()


async def test_a_response_that_is_no_lease_does_not_end_the_renewals(serve: Serve, caplog: pytest.LogCaptureFixture):
    server = LeaseServer()
    async with candidate(serve, server) as mine, mine:
        server.answer = {"kind": "Surprise"}
        await until(lambda: "failed to renew" in caplog.text)
        server.answer = None
        before = len(server.writes)
        await until(lambda: len(server.writes) >= before + 2)
        assert mine.is_leader()
    assert "never retrieved" not in caplog.text


async def test_a_lease_is_renewed_once_per_period(serve: Serve):
    server = LeaseServer()
    seconds = {"lease_duration": 9000.0, "renew_deadline": 6000.0, "retry_period": 3000.0}
    async with candidate(serve, server, **seconds) as mine, mine:
        await asyncio.sleep(0.2)
        assert mine.is_leader()
        assert server.holders == ["a"]
    assert server.holders == ["a", ""]


@pytest.mark.parametrize(("code", "logged"), [(409, False), (500, True)])
async def test_a_lease_that_cannot_be_released_is_no_error_and_another_may_hold_it_already(
    serve: Serve, caplog: pytest.LogCaptureFixture, code: int, logged: bool
):
    server = LeaseServer()
    async with candidate(serve, server) as mine:
        async with mine:
            server.errors = {"PUT": [code] * 1000}
            caplog.clear()
        assert not mine.is_leader()
        assert ("failed to release the lease" in caplog.text) is logged


async def test_a_lease_is_released_although_its_last_renewal_was_not_answered(serve: Serve):
    server = LeaseServer()
    async with candidate(serve, server) as mine, mine:
        server.hangs = True
        await until(lambda: not server.hangs)
    assert server.holders[-1] == ""


async def test_a_process_takes_up_its_own_lease_at_once_after_it_lost_it(serve: Serve):
    """After an outage of the API server a sole operator would wait for its own lease to expire."""
    server, clock = LeaseServer(), Clock()
    async with candidate(serve, server, clock) as first, first:
        server.answer = {}
        clock.now += 6
        await lost(first)
    server.answer = None
    assert server.holders[-1] == "a", "there was no server to release it to"
    async with asyncio.timeout(30), candidate(serve, server, clock) as second, second:
        assert second.is_leader()
        assert not first.is_leader(), "what the earlier term began stays withheld"
        assert server.writes[-1]["leaseTransitions"] == 0


async def test_an_elector_that_never_led_has_nothing_to_lose(serve: Serve):
    async with candidate(serve, LeaseServer()) as mine:
        await lost(mine)
        await mine.__aexit__(None, None, None)


async def test_a_server_that_does_not_answer_is_the_reason_in_the_log(serve: Serve, caplog: pytest.LogCaptureFixture):
    server = LeaseServer("a")
    server.hangs = True
    async with candidate(serve, server, renew_deadline=0.1) as mine:
        waiting = asyncio.create_task(mine.__aenter__())
        await until(lambda: "failed to acquire or renew the lease: no answer in time" in caplog.text)
        waiting.cancel()


def test_the_lease_also_expires_while_the_machine_sleeps(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(time, "CLOCK_BOOTTIME", 7, raising=False)
    monkeypatch.setattr(time, "clock_gettime", lambda clock: clock + 0.5)
    assert steady_clock() == 7.5
    monkeypatch.delattr(time, "CLOCK_BOOTTIME")
    monkeypatch.setattr(time, "monotonic", lambda: 3.0)
    assert steady_clock() == 3.0
