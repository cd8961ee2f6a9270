"""The channel of agents: what it answers, and what it does not let anybody do to the operator."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from paddlejob.engine.backend import Key
from paddlejob.operator.agents import server as channel
from paddlejob.operator.agents.agents import Agents
from paddlejob.operator.agents.authority import load_serving_certificate, make_authority
from paddlejob.operator.agents.gate import agent_files
from paddlejob.operator.agents.identity import Caller, Denied, PodIdentity
from paddlejob.operator.agents.server import AgentServer
from paddlejob.plan import Order, OrderAgents
from paddlejob.plan.world import AgentReport, AgentState

AUTHORITY = make_authority()
RUNNING = {"version": 1, "attempt": 1, "state": "running"}


class Tokens:
    """Every token is that of the pod with this uid, but `stolen` is nobody's."""

    async def of(self, authorization: str) -> Caller:
        token = authorization.removeprefix("Bearer ")
        if token in ("", "stolen"):
            raise Denied(401, "the API server does not accept the token")
        return Caller(PodIdentity("ml", token, token), ("ml", "mnist"))


class Served:
    def __init__(self, port: int, agents: Agents) -> None:
        self.port = port
        self.agents = agents
        self.news: asyncio.Queue[Key] = asyncio.Queue()
        self.leader = True
        self.tls = ssl.create_default_context(cadata=AUTHORITY.certificate.decode())

    async def post(self, body: Any, token: str = "uid-0") -> tuple[int, Any]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        url, headers = f"https://127.0.0.1:{self.port}/v1/agent", {"Authorization": f"Bearer {token}"}
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, data=data, headers=headers, ssl=self.tls) as response,
        ):
            text = await response.text()
            return response.status, json.loads(text) if response.status == 200 else text


@asynccontextmanager
async def serving(poll_seconds: float = 5.0) -> AsyncIterator[Served]:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_serving_certificate(tls, AUTHORITY, "127.0.0.1")
    served = Served(0, Agents())
    made = AgentServer(served.agents, Tokens(), served.news.put_nowait, lambda: served.leader, poll_seconds)
    async with made.serving("127.0.0.1:0", tls) as port:
        served.port = port
        yield served


async def test_an_agent_is_told_to_stop_and_to_start_when_it_should():
    async with serving() as served:
        asking = asyncio.create_task(served.post(RUNNING))
        await served.news.get()
        assert served.agents.reports(["uid-0"]) == {"uid-0": AgentReport(1, AgentState.RUNNING)}

        served.agents.order(OrderAgents(Order.STOP, ("uid-0",), 2, grace=2))
        assert await asking == (200, {"order": "stop", "attempt": 2, "graceSeconds": 2})

        served.agents.order(OrderAgents(Order.START, ("uid-0",), 2, environment={"SYS_JOB_ID": "u-2"}))
        stopped = {**RUNNING, "state": "stopped", "exitStatus": 143}
        assert await served.post(stopped) == (
            200,
            {"order": "start", "attempt": 2, "environment": {"SYS_JOB_ID": "u-2"}},
        )


async def test_an_order_that_was_followed_or_is_late_is_not_given_again():
    async with serving(poll_seconds=0.1) as served:
        served.agents.order(OrderAgents(Order.START, ("uid-0",), 2))
        served.agents.order(OrderAgents(Order.RELEASE, ("uid-1",), 2))
        assert await served.post({**RUNNING, "attempt": 2, "state": "exited", "exitStatus": 1}) == (
            200,
            {"order": "none"},
        )
        assert await served.post(RUNNING, "uid-1") == (200, {"order": "none"})
        assert await served.post({**RUNNING, "state": "exited", "exitStatus": 3}, "uid-1") == (
            200,
            {"order": "release"},
        )


async def test_a_report_of_an_earlier_attempt_changes_nothing():
    """A replayed request, or one that was delayed."""
    async with serving(poll_seconds=0.1) as served:
        await served.post({**RUNNING, "attempt": 3})
        await served.post({**RUNNING, "attempt": 2, "state": "exited", "exitStatus": 1})
        assert served.agents.reports(["uid-0"])["uid-0"] == AgentReport(3, AgentState.RUNNING)


async def test_a_second_request_of_an_agent_takes_the_place_of_the_first():
    async with serving() as served:
        first = asyncio.create_task(served.post(RUNNING))
        await served.news.get()
        second = asyncio.create_task(served.post(RUNNING))
        assert await first == (200, {"order": "none"})
        served.agents.order(OrderAgents(Order.STOP, ("uid-0",), 2, grace=1))
        assert (await second)[1]["order"] == "stop"


async def test_an_end_is_acknowledged_at_once_and_only_then_the_agent_waits_for_an_order():
    """It gives up after ten seconds without an answer, and the others may take longer to end."""
    exited = {**RUNNING, "state": "exited", "exitStatus": 1}
    async with serving(poll_seconds=600) as served:
        async with asyncio.timeout(20):
            assert await served.post(exited) == (200, {"order": "none"})
        assert await served.news.get() == ("ml", "mnist")
        again = asyncio.create_task(served.post(exited))
        served.agents.order(OrderAgents(Order.START, ("uid-0",), 2))
        assert (await again)[1]["order"] == "start"


async def test_the_end_of_the_server_does_not_wait_for_agents():
    """Whoever leads gives the lease back after that, within the ten seconds that its pod has."""
    async with asyncio.timeout(20):
        async with serving(poll_seconds=600) as served:
            asking = asyncio.create_task(served.post(RUNNING))
            await served.news.get()
        with pytest.raises(aiohttp.ClientError):
            await asking


async def test_a_pod_keeps_one_connection_however_many_it_opens():
    async with serving() as served:
        url, headers = f"https://127.0.0.1:{served.port}/v1/agent", {"Authorization": "Bearer uid-0"}
        async with aiohttp.ClientSession() as session:
            first = asyncio.create_task(session.post(url, json=RUNNING, headers=headers, ssl=served.tls))
            await served.news.get()
            second = asyncio.create_task(session.post(url, json=RUNNING, headers=headers, ssl=served.tls))
            assert (await first).headers["Connection"] == "close"
            served.agents.order(OrderAgents(Order.STOP, ("uid-0",), 2, grace=1))
            assert "Connection" not in (await second).headers


async def test_a_report_that_does_not_arrive_does_not_keep_its_connection_open(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(channel, "UNKNOWN_SECONDS", 0.2)
    async with serving() as served, asyncio.timeout(20):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port, ssl=served.tls)
        writer.write(b"POST /v1/agent HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer uid-0\r\nContent-Length: 9\r\n\r\n")
        await reader.read()
        writer.close()


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (b"{", 400, "cannot be read"),
        (b"[]", 400, "cannot be read"),
        (b"[" * 60_000, 400, "cannot be read"),
        ({"version": 1, "attempt": 1, "state": "asleep"}, 400, "cannot be read"),
        ({**RUNNING, "version": 0}, 400, "version 0 of the protocol is not supported"),
        ({**RUNNING, "version": 2}, 400, "version 2 of the protocol is not supported"),
        ({**RUNNING, "attempt": "1"}, 400, "small numbers"),
        ({**RUNNING, "attempt": True}, 400, "small numbers"),
        ({**RUNNING, "attempt": -1}, 400, "small numbers"),
        ({**RUNNING, "exitStatus": 2**40}, 400, "small numbers"),
        (b" " * 100_000, 413, ""),
    ],
)
async def test_a_report_that_cannot_be_read_is_denied_with_the_reason(body: Any, code: int, message: str):
    async with serving(poll_seconds=0.1) as served:
        found, text = await served.post(body)
        assert (found, message in text) == (code, True)
        assert served.agents.reports(["uid-0"]) == {}


async def test_who_has_no_token_or_asks_a_standby_is_denied():
    async with serving(poll_seconds=0.1) as served:
        assert (await served.post(RUNNING, "stolen"))[0] == 401
        served.leader = False
        assert (await served.post(RUNNING))[0] == 409
        assert served.news.empty()


async def test_a_connection_that_sends_nothing_is_closed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(channel, "HANDSHAKE_SECONDS", 0.2)
    monkeypatch.setattr(channel, "UNKNOWN_SECONDS", 0.4)
    async with serving() as served:
        silent = await asyncio.open_connection("127.0.0.1", served.port)
        idle = await asyncio.open_connection("127.0.0.1", served.port, ssl=served.tls)
        assert await silent[0].read() == b""
        assert await idle[0].read() == b""


async def test_connections_without_a_token_do_not_keep_agents_out_that_are_connected(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(channel, "MOST_UNKNOWN", 5)
    async with serving() as served:
        asking = asyncio.create_task(served.post(RUNNING))
        await served.news.get()
        sockets = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(50)]
        try:
            await asyncio.sleep(0.1)
            served.agents.order(OrderAgents(Order.STOP, ("uid-0",), 2, grace=1))
            assert (await asking)[1]["order"] == "stop"
            with pytest.raises(aiohttp.ClientError):
                await served.post(RUNNING)
        finally:
            for one in sockets:
                one.close()


async def test_the_serving_certificate_is_for_the_host_and_can_be_renewed():
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_serving_certificate(tls, AUTHORITY, "paddle-controller-manager-agents.paddle-system.svc")
    load_serving_certificate(tls, AUTHORITY, "127.0.0.1")
    async with AgentServer(Agents(), Tokens(), print, lambda: True).serving("127.0.0.1:0", tls) as port:
        trusting = ssl.create_default_context(cadata=AUTHORITY.certificate.decode())
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
        writer.close()
        stranger = ssl.create_default_context(cadata=make_authority().certificate.decode())
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.open_connection("127.0.0.1", port, ssl=stranger)


def test_pods_get_the_agent_and_all_it_imports():
    assert {"agent.py", "hook/sitecustomize.py"} <= agent_files().keys()
