"""The lease when the server misbehaves; tests/apiserver runs elections on a real one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from paddlejob.kube.client import Client
from paddlejob.kube.leader_election import LeaderElector, steady_clock

from .conftest import Serve

QUICK = {"lease_duration": 60.0, "renew_deadline": 1.0, "retry_period": 0.02}


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


class LeaseServer:
    """Stores one Lease. Renewals get `answer` instead once it is set."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] = {
            "metadata": {"name": "op", "namespace": "ml", "resourceVersion": "1"},
            "spec": {"holderIdentity": "", "leaseDurationSeconds": 60},
        }
        self.answer: Any = None
        self.writes = 0

    async def respond(self, request: web.Request) -> web.Response:
        if self.answer is not None:
            return web.json_response(self.answer)
        if request.method == "PUT":
            self.lease = await request.json()
            self.writes += 1
            self.lease["metadata"]["resourceVersion"] = str(self.writes + 1)
        return web.json_response(self.lease)


async def test_a_process_takes_up_its_own_lease_at_once_after_it_lost_it(serve: Serve) -> None:
    """After an outage of the API server a sole operator would wait for its own lease to expire."""
    server = LeaseServer()
    async with Client(await serve(server.respond)) as client:
        async with LeaderElector(client, "ml", "op", "me", **QUICK) as first:
            server.answer = {}
            async with asyncio.timeout(30):
                await first.lost()
            assert not first.is_leader()
        server.answer = None
        assert server.lease["spec"]["holderIdentity"] == "me", "there was no server to release it to"
        async with asyncio.timeout(30), LeaderElector(client, "ml", "op", "me", **QUICK) as second:
            assert second.is_leader()
            assert not first.is_leader(), "what the earlier term began stays withheld"
        assert server.lease["spec"]["leaseTransitions"] == 0


async def test_a_response_that_is_no_lease_does_not_end_the_renewals(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    server = LeaseServer()
    async with (
        Client(await serve(server.respond)) as client,
        LeaderElector(client, "ml", "op", "me", **(QUICK | {"renew_deadline": 30.0})) as elector,
    ):
        server.answer = {"kind": "Surprise"}
        await until(lambda: "failed to renew" in caplog.text)
        server.answer = None
        before = server.writes
        await until(lambda: server.writes >= before + 2)
        assert elector.is_leader()
    assert "never retrieved" not in caplog.text


def test_the_lease_also_expires_while_the_machine_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "CLOCK_BOOTTIME", 7, raising=False)
    monkeypatch.setattr(time, "clock_gettime", lambda clock: clock + 0.5)
    assert steady_clock() == 7.5
    monkeypatch.delattr(time, "CLOCK_BOOTTIME")
    monkeypatch.setattr(time, "monotonic", lambda: 3.0)
    assert steady_clock() == 3.0
