"""The client when the server or the network misbehaves, byte by byte."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

import orjson
import pytest
from aiohttp import web

from paddlejob.errors import ApiError, Gone, NoCredentials, NotLeader, Overloaded, Unreachable
from paddlejob.kube import transport
from paddlejob.kube.access import Access, Credential
from paddlejob.kube.client import Client
from paddlejob.kube.resource import CONFIGMAPS, PODS, Resource
from paddlejob.kube.transport import Request
from tests.support.scripted_cluster import Serve

POD = {"metadata": {"name": "a", "namespace": "ml"}}


def status(code: int, reason: str, message: str = "a message", **headers: str) -> web.Response:
    body = {"kind": "Status", "code": code, "reason": reason, "message": message}
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.json_response(body, status=code, headers=names)


@pytest.fixture(autouse=True)
def short_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "FIRST_BACKOFF", 0.005)


class Server:
    """Answers requests in turn with what `answers` return, and with the last one from then on."""

    def __init__(self, *answers: Callable[[web.Request], web.Response]) -> None:
        self.answers = answers
        self.asked: list[web.Request] = []
        self.times: list[float] = []

    async def handle(self, request: web.Request) -> web.Response:
        self.asked.append(request)
        self.times.append(time.monotonic())
        return self.answers[min(len(self.asked), len(self.answers)) - 1](request)


def found(request: web.Request) -> web.Response:
    return web.json_response(POD)


def breaks(request: web.Request) -> web.Response:
    """The connection breaks without a response."""
    assert request.transport is not None
    request.transport.close()
    return web.Response()


def fails(code: int, reason: str, message: str = "a message", **headers: str) -> Callable[[web.Request], web.Response]:
    return lambda request: status(code, reason, message, **headers)


@pytest.mark.parametrize(("code", "reason"), [(429, "TooManyRequests"), (503, "ServiceUnavailable")])
async def test_a_request_is_retried_after_the_time_that_the_server_asks_for(
    serve: Serve, code: int, reason: str
) -> None:
    busy = fails(code, reason, Retry_After="0.1")
    server = Server(busy, busy, found)
    async with Client(await serve(server.handle)) as client:
        assert await client.create(PODS, POD) == POD
    assert len(server.times) == 3
    assert server.times[1] - server.times[0] >= 0.1


async def test_retries_end_with_the_servers_own_message(serve: Serve) -> None:
    server = Server(fails(429, "TooManyRequests", "too many of you", Retry_After="0"))
    async with Client(await serve(server.handle)) as client:
        with pytest.raises(Overloaded, match="too many of you"):
            await client.get(PODS, "a", "ml")
    assert len(server.asked) == transport.ATTEMPTS


async def test_a_read_whose_connection_breaks_is_retried(serve: Serve) -> None:
    async with Client(await serve(Server(breaks, breaks, breaks, found).handle)) as client:
        assert await client.get(PODS, "a", "ml") == POD


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (breaks, Unreachable, "create /api/v1/namespaces/ml/pods"),
        (lambda request: web.Response(status=503, text="upstream gone"), Overloaded, "upstream gone"),
    ],
    ids=["broken connection", "503 without Retry-After"],
)
async def test_a_create_that_may_have_arrived_is_not_retried(
    serve: Serve, answer: Any, error: type[Exception], message: str
) -> None:
    server = Server(answer)
    async with Client(await serve(server.handle)) as client:
        with pytest.raises(error, match=message):
            await client.create(PODS, POD)
    assert len(server.asked) == 1


async def test_a_create_that_was_never_sent_is_retried_and_then_names_the_unreachable_server() -> None:
    codes: list[int] = []
    access = Access("http://127.0.0.1:1")
    async with Client(access, observe=lambda verb, resource, code, seconds: codes.append(code)) as client:
        assert client.access is access
        with pytest.raises(Unreachable, match=r"is the API server http://127\.0\.0\.1:1 up and reachable\?"):
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
    server = Server(found)
    async with Client(await serve(server.handle), may_write=lambda: False) as client:
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
    assert [request.method for request in server.asked] == ["GET"]


async def test_a_write_is_not_retried_after_the_lease_is_lost(serve: Serve) -> None:
    server = Server(fails(429, "TooManyRequests", Retry_After="0"))
    async with Client(await serve(server.handle), may_write=lambda: not server.asked) as client:
        with pytest.raises(NotLeader):
            await client.create(PODS, POD)
    assert len(server.asked) == 1


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
    server = (await serve(Server(fails(401, "Unauthorized", "who are you")).handle)).server
    async with Client(Access(server, fetch=lambda: Credential("Bearer x"))) as client:
        with pytest.raises(NoCredentials, match="who are you"):
            await client.get(PODS, "a", "ml")


async def test_an_expired_token_is_renewed_before_it_is_used(serve: Serve) -> None:
    server = Server(found)

    def fetch() -> Credential:
        return Credential(f"Bearer {len(server.asked)}", expires_at=time.monotonic())

    async with Client(Access((await serve(server.handle)).server, fetch=fetch)) as client:
        for _ in range(3):
            await client.get(PODS, "a", "ml")
    assert [one.headers["Authorization"] for one in server.asked] == ["Bearer 0", "Bearer 1", "Bearer 2"]


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
    page = Server(lambda request: web.Response(text="<html>please log in</html>"))
    async with Client(await serve(page.handle)) as client:
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


@pytest.mark.parametrize("ahead", [0, 3600, -60])
async def test_times_are_those_of_the_server_whatever_the_clock_of_this_machine_says(
    serve: Serve, ahead: float
) -> None:
    """A clock that is ahead would let pods look long overdue that were deleted a moment ago."""

    def answer(ahead: float, code: int = 200) -> Callable[[web.Request], web.Response]:
        date = formatdate(time.time() - ahead, usegmt=True)
        return lambda request: web.json_response(POD, status=code, headers={"Date": date})

    # An error may come from a load balancer.
    server = Server(answer(7200, 404), answer(ahead), answer(7200, 404))
    async with Client(await serve(server.handle)) as client:
        for expected in (0, ahead, ahead):
            with contextlib.suppress(ApiError):
                await client.get(PODS, "a", "ml")
            assert abs(time.time() - expected - client.server_time()) < 1.5


@pytest.mark.parametrize("seconds", [3600, -3600])
async def test_a_clock_of_this_machine_that_is_set_does_not_change_the_time(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """A job must not fail by its deadline because somebody corrects a clock."""
    async with Client(await serve(Server(lambda request: web.json_response(POD)).handle)) as client:
        await client.get(PODS, "a", "ml")
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + seconds)
        assert abs(client.server_time() - now) < 1.5


@pytest.mark.parametrize("date", ["", "soon", "Thu, 99 Jan 2027"])
async def test_a_server_without_a_readable_date_leaves_the_clock_alone(serve: Serve, date: str) -> None:
    server = Server(lambda request: web.json_response(POD, headers={"Date": date}))
    async with Client(await serve(server.handle)) as client:
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


@pytest.mark.parametrize(
    ("text", "lines"),
    [("a\nb\n", [b"a", b"b"]), ("a\nb", [b"a", b"b"]), ("", []), ("a\n\nb\n", [b"a", b"", b"b"])],
)
async def test_the_last_line_of_a_log_counts_also_without_its_end(serve: Serve, text: str, lines: list[bytes]) -> None:
    access = await serve(Server(lambda request: web.Response(text=text)).handle)
    async with Client(access) as client, contextlib.aclosing(client.lines(PODS, "a", "ml", "log")) as read:
        assert [line async for line in read] == lines


@pytest.mark.parametrize(
    ("method", "writes", "idempotent"),
    [("GET", False, True), ("DELETE", True, True), ("POST", True, False), ("PATCH", True, False), ("PUT", True, False)],
)
def test_what_may_be_sent_twice_and_what_needs_the_lease(method: str, writes: bool, idempotent: bool) -> None:
    request = Request("verb", PODS, method, "/api/v1/pods")
    assert (request.writes, request.idempotent, str(request)) == (writes, idempotent, "verb /api/v1/pods")
