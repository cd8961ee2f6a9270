"""The client when the server or the network misbehaves, byte by byte."""

from __future__ import annotations

import asyncio
import time
from email.utils import formatdate

import orjson
import pytest
from aiohttp import web

from paddlejob.errors import ApiError, Gone, NoCredentials, NotLeader, Overloaded, Unreachable
from paddlejob.kube import transport
from paddlejob.kube.access import Access, Credential
from paddlejob.kube.client import Client
from paddlejob.kube.resource import CONFIGMAPS, PODS, Resource

from .conftest import Serve

POD = {"metadata": {"name": "a", "namespace": "ml"}}


def status(code: int, reason: str, message: str = "a message", **headers: str) -> web.Response:
    body = {"kind": "Status", "code": code, "reason": reason, "message": message}
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.json_response(body, status=code, headers=names)


@pytest.fixture(autouse=True)
def short_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "FIRST_BACKOFF", 0.005)


@pytest.mark.parametrize(("code", "reason"), [(429, "TooManyRequests"), (503, "ServiceUnavailable")])
async def test_a_request_is_retried_after_the_time_that_the_server_asks_for(
    serve: Serve, code: int, reason: str
) -> None:
    times: list[float] = []

    async def handler(request: web.Request) -> web.Response:
        times.append(time.monotonic())
        return web.json_response(POD) if len(times) == 3 else status(code, reason, Retry_After="0.1")

    async with Client(await serve(handler)) as client:
        assert await client.create(PODS, POD) == POD
    assert len(times) == 3
    assert times[1] - times[0] >= 0.1


async def test_retries_end_with_the_servers_own_message(serve: Serve) -> None:
    asked = 0

    async def handler(request: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        return status(429, "TooManyRequests", "too many of you", Retry_After="0")

    async with Client(await serve(handler)) as client:
        with pytest.raises(Overloaded, match="too many of you"):
            await client.get(PODS, "a", "ml")
    assert asked == transport.ATTEMPTS


async def test_a_503_without_retry_after_may_have_had_an_effect_and_is_not_retried(serve: Serve) -> None:
    asked = 0

    async def handler(request: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        return web.Response(status=503, text="upstream gone")

    async with Client(await serve(handler)) as client:
        with pytest.raises(Overloaded, match="upstream gone"):
            await client.create(PODS, POD)
    assert asked == 1


async def test_a_read_whose_connection_breaks_is_retried(serve: Serve) -> None:
    asked = 0

    async def handler(request: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        if asked < 4:
            assert request.transport is not None
            request.transport.close()
        return web.json_response(POD)

    async with Client(await serve(handler)) as client:
        assert await client.get(PODS, "a", "ml") == POD


async def test_a_create_whose_connection_breaks_is_not_retried_because_it_may_have_arrived(serve: Serve) -> None:
    asked = 0

    async def handler(request: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    async with Client(await serve(handler)) as client:
        with pytest.raises(Unreachable, match="create /api/v1/namespaces/ml/pods"):
            await client.create(PODS, POD)
    assert asked == 1


async def test_a_create_that_was_never_sent_is_retried_and_then_names_the_unreachable_server() -> None:
    codes: list[int] = []
    access = Access("http://127.0.0.1:1")
    async with Client(access, observe=lambda verb, resource, code, seconds: codes.append(code)) as client:
        with pytest.raises(Unreachable, match=r"http://127\.0\.0\.1:1 up and reachable"):
            await client.create(PODS, POD)
    assert codes == [0] * transport.ATTEMPTS


async def test_a_server_that_never_responds_times_out(serve: Serve) -> None:
    async def handler(request: web.Request) -> web.Response:
        await asyncio.sleep(60)
        return web.Response()

    async with Client(await serve(handler), timeout=0.1) as client:
        with pytest.raises(Unreachable, match="no response in time"):
            await client.create(PODS, POD)


async def test_without_the_lease_no_write_is_sent_but_reads_are(serve: Serve) -> None:
    methods: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        methods.append(request.method)
        return web.json_response(POD)

    async with Client(await serve(handler), may_write=lambda: False) as client:
        await client.get(PODS, "a", "ml")
        writes = [
            client.create(PODS, POD),
            client.replace(PODS, POD),
            client.replace_status(PODS, POD),
            client.patch(PODS, "a", "ml", {}),
            client.delete(PODS, "a", "ml"),
        ]
        for write in writes:
            with pytest.raises(NotLeader, match="was not sent"):
                await write
    assert methods == ["GET"]


async def test_a_write_is_not_retried_after_the_lease_is_lost(serve: Serve) -> None:
    leads = True
    asked = 0

    async def handler(request: web.Request) -> web.Response:
        nonlocal leads, asked
        asked += 1
        leads = False
        return status(429, "TooManyRequests", Retry_After="0")

    async with Client(await serve(handler), may_write=lambda: leads) as client:
        with pytest.raises(NotLeader):
            await client.create(PODS, POD)
    assert asked == 1


async def test_a_rejected_token_is_renewed_once_for_all_requests_in_flight(serve: Serve) -> None:
    fetched = 0

    def fetch() -> Credential:
        nonlocal fetched
        fetched += 1
        return Credential(f"Bearer {fetched}")

    async def handler(request: web.Request) -> web.Response:
        good = request.headers["Authorization"] == "Bearer 2"
        return web.json_response(POD) if good else status(401, "Unauthorized")

    server = (await serve(handler)).server
    async with Client(Access(server, fetch=fetch)) as client:
        responses = await asyncio.gather(*(client.create(PODS, POD) for _ in range(8)))
    assert responses == [POD] * 8
    assert fetched == 2


async def test_credentials_that_stay_rejected_are_an_error_of_their_own(serve: Serve) -> None:
    async def handler(request: web.Request) -> web.Response:
        return status(401, "Unauthorized", "who are you")

    server = (await serve(handler)).server
    async with Client(Access(server, fetch=lambda: Credential("Bearer x"))) as client:
        with pytest.raises(NoCredentials, match="who are you"):
            await client.get(PODS, "a", "ml")


async def test_an_expired_token_is_renewed_before_it_is_used(serve: Serve) -> None:
    headers: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        headers.append(request.headers["Authorization"])
        return web.json_response(POD)

    def fetch() -> Credential:
        return Credential(f"Bearer {len(headers)}", expires_at=time.monotonic())

    server = (await serve(handler)).server
    async with Client(Access(server, fetch=fetch)) as client:
        for _ in range(3):
            await client.get(PODS, "a", "ml")
    assert headers == ["Bearer 0", "Bearer 1", "Bearer 2"]


async def test_every_request_is_observed(serve: Serve) -> None:
    seen: list[tuple[str, Resource, int]] = []
    took: list[float] = []

    async def handler(request: web.Request) -> web.Response:
        await asyncio.sleep(0.05)
        return web.json_response(POD) if request.method == "GET" else status(403, "Forbidden")

    def observe(verb: str, what: Resource, code: int, seconds: float) -> None:
        seen.append((verb, what, code))
        took.append(seconds)

    access = await serve(handler)
    async with Client(access, observe=observe) as client:
        await client.get(PODS, "a", "ml")
        with pytest.raises(ApiError):
            await client.delete(CONFIGMAPS, "a", "ml")
    assert seen == [("get", PODS, 200), ("delete", CONFIGMAPS, 403)]
    assert min(took) >= 0.04, "until the server responded"


async def test_a_response_that_is_not_json_hints_at_a_proxy(serve: Serve) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(text="<html>please log in</html>")

    async with Client(await serve(handler)) as client:
        with pytest.raises(Unreachable, match="not JSON"):
            await client.get(PODS, "a", "ml")


async def stream(request: web.Request, *pieces: bytes, broken: bool = False) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for piece in pieces:
        await response.write(piece)
        await asyncio.sleep(0.01)
    if broken:
        assert request.transport is not None
        request.transport.close()
    return response


def line(type_: str, version: str) -> bytes:
    pod = {"metadata": {"name": "a", "resourceVersion": version}}
    return orjson.dumps({"type": type_, "object": pod}) + b"\n"


async def test_watch_lines_are_joined_however_the_bytes_are_split(serve: Serve) -> None:
    whole = line("ADDED", "1") + line("MODIFIED", "2") + line("DELETED", "3")

    async def handler(request: web.Request) -> web.StreamResponse:
        return await stream(request, whole[:10], whole[10:100], whole[100:101], whole[101:])

    async with Client(await serve(handler)) as client:
        events = [event async for event in client.watch(PODS, version="0")]
    assert [event.type for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert [event.object["metadata"]["resourceVersion"] for event in events] == ["1", "2", "3"]


async def test_a_watch_cut_within_a_line_ends_in_unreachable_after_the_whole_lines(serve: Serve) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        return await stream(request, line("ADDED", "1"), line("ADDED", "2")[:20], broken=True)

    seen: list[str] = []
    async with Client(await serve(handler)) as client:
        with pytest.raises(Unreachable):
            async for event in client.watch(PODS, version="0"):
                seen.append(event.object["metadata"]["resourceVersion"])
    assert seen == ["1"]


async def test_an_error_inside_a_watch_is_the_error_that_it_names(serve: Serve) -> None:
    gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}

    async def handler(request: web.Request) -> web.StreamResponse:
        return await stream(request, orjson.dumps({"type": "ERROR", "object": gone}) + b"\n")

    async with Client(await serve(handler)) as client:
        with pytest.raises(Gone, match="too old"):
            _ = [event async for event in client.watch(PODS, version="0")]


async def test_a_list_whose_snapshot_is_compacted_between_pages_is_taken_in_one_piece(serve: Serve) -> None:
    def items(names: str) -> list[dict[str, object]]:
        return [{"metadata": {"name": name}} for name in names]

    async def handler(request: web.Request) -> web.Response:
        if "continue" in request.query:
            return status(410, "Expired")
        if "limit" in request.query:
            return web.json_response({"metadata": {"resourceVersion": "5", "continue": "x"}, "items": items("ab")})
        return web.json_response({"metadata": {"resourceVersion": "9"}, "items": items("abc")})

    async with Client(await serve(handler)) as client:
        listed = await client.list(PODS, "ml")
    assert [pod["metadata"]["name"] for pod in listed] == ["a", "b", "c"]


async def test_a_client_that_is_not_open_raises() -> None:
    with pytest.raises(RuntimeError, match="async with"):
        await Client(Access("http://127.0.0.1:1")).get(PODS, "a", "ml")


async def test_times_are_those_of_the_server_whatever_the_clock_of_this_machine_says(serve: Serve) -> None:
    """A clock that is ahead would let pods look long overdue that were deleted a moment ago."""
    ahead = 0.0
    code = 200

    async def handler(request: web.Request) -> web.Response:
        date = formatdate(time.time() - ahead, usegmt=True)
        return web.json_response(POD, status=code, headers={"Date": date})

    async with Client(await serve(handler)) as client:
        await client.get(PODS, "a", "ml")
        assert abs(client.server_time() - time.time()) < 1.5
        ahead = 3600.0
        await client.get(PODS, "a", "ml")
        assert abs(time.time() - 3600 - client.server_time()) < 1.5
        ahead, code = 7200.0, 404
        with pytest.raises(ApiError):
            await client.get(PODS, "a", "ml")
        assert abs(time.time() - 3600 - client.server_time()) < 1.5, "an error may come from a load balancer"
        ahead, code = -60.0, 200
        await client.get(PODS, "a", "ml")
        assert abs(time.time() + 60 - client.server_time()) < 1.5


@pytest.mark.parametrize("date", ["", "soon", "Thu, 99 Jan 2027"])
async def test_a_server_without_a_readable_date_leaves_the_clock_alone(serve: Serve, date: str) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.json_response(POD, headers={"Date": date})

    async with Client(await serve(handler)) as client:
        await client.get(PODS, "a", "ml")
        assert abs(client.server_time() - time.time()) < 1.0


async def test_a_slow_response_is_not_mistaken_for_a_wrong_clock(serve: Serve) -> None:
    async def handler(request: web.Request) -> web.Response:
        date = formatdate(time.time(), usegmt=True)
        await asyncio.sleep(2.5)
        return web.json_response(POD, headers={"Date": date})

    async with Client(await serve(handler)) as client:
        await client.get(PODS, "a", "ml")
        assert abs(client.server_time() - time.time()) < 1.0
