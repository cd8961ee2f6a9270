"""Leader election while the server refuses, conflicts or does not respond."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from paddlejob.kube.client import Client
from paddlejob.kube.leader_election import LeaderElector

from .conftest import Serve
from .test_lease import Clock, LeaseServer, elector, until


class Refusing(LeaseServer):
    """Answers writes of one method with an error, as often as the test wants."""

    def __init__(self, method: str, code: int, times: int) -> None:
        super().__init__()
        self.method, self.code, self.left = method, code, times

    async def handle(self, request: web.Request) -> web.Response:
        if request.method == self.method and self.left:
            self.left -= 1
            return self._status(self.code, "Conflict" if self.code == 409 else "InternalError")
        return await super().handle(request)


@pytest.mark.parametrize("code", [403, 409, 500])
async def test_a_lease_that_cannot_be_created_is_tried_again(serve: Serve, code: int):
    server = Refusing("POST", code, 2)
    async with Client(await serve(server.handle)) as client, elector(client, Clock()) as mine:
        assert mine.is_leader()
        assert server.left == 0


async def test_a_renewal_that_fails_once_does_not_cost_the_lease(serve: Serve):
    server = Refusing("PUT", 500, 1)
    async with Client(await serve(server.handle)) as client, elector(client, Clock()) as mine:
        await until(lambda: server.left == 0 and len(server.writes) > 1)
        assert mine.is_leader()


@pytest.mark.parametrize(("code", "logged"), [(409, False), (500, True)])
async def test_a_lease_that_cannot_be_released_is_no_error_and_another_may_hold_it_already(
    serve: Serve, caplog: pytest.LogCaptureFixture, code: int, logged: bool
):
    server = Refusing("PUT", code, 0)
    async with Client(await serve(server.handle)) as client:
        mine = elector(client, Clock())
        await mine.__aenter__()
        server.left = 1000
        caplog.clear()
        await mine.__aexit__(None, None, None)
        assert not mine.is_leader()
        assert ("failed to release the lease" in caplog.text) is logged


async def test_contact_is_any_response_about_the_lease_even_if_another_holds_it(serve: Serve):
    server = LeaseServer()
    server.held_by("b", leaseDurationSeconds=3600)
    async with Client(await serve(server.handle)) as client:
        mine = elector(client, Clock())
        before = mine.last_contact
        waiting = asyncio.create_task(mine.__aenter__())
        await until(lambda: mine.last_contact > before)
        waiting.cancel()
        assert not mine.is_leader()
        assert [one["holderIdentity"] for one in server.writes] == ["b"]


async def test_an_elector_that_never_led_has_nothing_to_lose(serve: Serve):
    async with Client(await serve(LeaseServer().handle)) as client:
        async with asyncio.timeout(30):
            await elector(client, Clock()).lost()
            await elector(client, Clock()).__aexit__(None, None, None)


async def test_a_server_that_does_not_answer_is_the_reason_in_the_log(serve: Serve, caplog: pytest.LogCaptureFixture):
    async def never(request: web.Request) -> web.Response:
        await asyncio.sleep(3600)
        raise AssertionError

    async with Client(await serve(never)) as client:
        mine = LeaderElector(client, "ml", "op", "me", renew_deadline=0.1, retry_period=0.01)
        waiting = asyncio.create_task(mine.__aenter__())
        await until(lambda: "failed to acquire or renew the lease: no answer in time" in caplog.text)
        waiting.cancel()
