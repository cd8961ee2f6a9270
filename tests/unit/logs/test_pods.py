"""The log of one container on a cluster, read on after each request and each broken connection."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from paddlejob.errors import Forbidden
from paddlejob.kube.client import Client
from paddlejob.logs import pods
from paddlejob.logs.line import LogLine
from paddlejob.logs.pods import PodLog, PodReader
from paddlejob.plan import times
from tests.support.builders import NOON
from tests.support.scripted_cluster import Serve

LOG = PodLog("default", "mnist-worker-0", "paddle", "worker-0", 1)


class Node:
    """Serves one log. `cuts` are numbers of lines after which a connection breaks, one for each request."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.cuts: list[int] = []
        self.queries: list[dict[str, str]] = []
        self.answer: web.Response | None = None

    async def respond(self, request: web.Request) -> web.StreamResponse:
        assert request.path == "/api/v1/namespaces/default/pods/mnist-worker-0/log"
        query = dict(request.query)
        self.queries.append(query)
        if self.answer is not None:
            return self.answer
        tail = int(query.get("tailLines", len(self.lines)))
        since = int(moment(query["sinceTime"])) if "sinceTime" in query else 0
        shown = [line for line in self.lines[max(0, len(self.lines) - tail) :] if moment(line) >= since]
        response = web.StreamResponse()
        await response.prepare(request)
        cut = self.cuts.pop(0) if self.cuts else len(shown)
        await response.write("".join(f"{line}\n" for line in shown[:cut]).encode())
        if cut < len(shown) and request.transport:
            request.transport.close()
        return response


def moment(line: str) -> float:
    """Kubelets compare times; a line that has none is sent."""
    with contextlib.suppress(ValueError):
        return times.parse(line.split(" ")[0])
    return float("inf")


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.fixture
async def reader(node: Node, serve: Serve) -> AsyncIterator[PodReader]:
    async with Client(await serve(node.respond)) as client:
        yield PodReader(client, LOG)


def at(second: float, text: str) -> str:
    return f"2027-01-15T08:00:{second:012.9f}Z {text}"


async def texts(lines: AsyncIterator[LogLine]) -> list[str]:
    return [line.text async for line in lines]


async def test_lines_have_the_time_at_which_their_node_received_them(node: Node, reader: PodReader):
    node.lines = [at(1.5, "step 1"), "2027-01-15T16:00:02+08:00 step 2", "no time"]
    assert [line async for line in reader.lines()] == [
        LogLine("worker-0", 1, NOON + 1.5, b"step 1"),
        LogLine("worker-0", 1, NOON + 2, b"step 2"),
        LogLine("worker-0", 1, None, b"no time"),
    ]
    assert node.queries == [{"container": "paddle", "timestamps": "true"}]


async def test_each_request_continues_after_the_last_line_of_the_one_before(node: Node, reader: PodReader):
    node.lines = [at(1.2, "a"), at(1.4, "b"), at(1.4, "c")]
    assert await texts(reader.lines(tail=2, since=NOON, most_bytes=100)) == ["b", "c"]
    asked = {"sinceTime": "2027-01-15T08:00:00Z", "tailLines": "2", "limitBytes": "100"}
    assert node.queries[0].items() >= asked.items()
    assert await texts(reader.lines()) == [], "the server sends them again"
    node.lines += [at(1.4, "another in the same moment"), at(1.1, "the clock was set back a little"), at(2, "d")]
    assert await texts(reader.lines()) == ["another in the same moment", "the clock was set back a little", "d"]


SUMMER, WINTER = "2027-10-31T02:30:00.500000000+02:00 ", "2027-10-31T02:30:00.100000000+01:00 "


@pytest.mark.parametrize("tail", [-1, 5], ids=["all that is new", "the newest"])
@pytest.mark.parametrize(
    ("read", "printed"),
    [
        ([at(50, "a")], [at(1, "b"), at(2, "c")]),
        ([at(50, "a"), at(1, "b")], [at(2, "c"), at(55, "d")]),
        ([at(50, "a"), at(50, "a")], [at(50, "a"), at(1, "b")]),
        ([f"{SUMMER}summer"], [f"{WINTER}winter"]),
    ],
    ids=["the clock was set back", "and was right later", "one moment", "daylight saving time ended"],
)
async def test_every_line_is_read_once_whatever_the_clock_of_its_node_does(
    node: Node, reader: PodReader, read: list[str], printed: list[str], tail: int
):
    node.lines = read
    assert len(await texts(reader.lines(tail=tail))) == len(read)
    assert await texts(reader.lines(tail=tail)) == []
    node.lines = read + printed
    assert await texts(reader.lines(tail=tail)) == [line.split(" ", 1)[1] for line in printed]
    assert await texts(reader.lines(tail=tail)) == []


@pytest.mark.parametrize("follow", [False, True])
async def test_more_lines_than_are_asked_for_at_first_are_not_lost(node: Node, reader: PodReader, follow: bool):
    node.lines = [at(1, "first")]
    await texts(reader.lines())
    node.lines += [at(2 + number / 100, str(number)) for number in range(3 * pods.RESUMED)]
    assert await texts(reader.lines(follow=follow)) == [str(number) for number in range(3 * pods.RESUMED)]


async def test_a_log_that_was_rotated_is_new_even_if_the_clock_was_set_back_meanwhile(node: Node, reader: PodReader):
    node.lines = [at(50, "old")]
    await texts(reader.lines())
    node.lines = [at(1, "a"), at(2, "b")]
    assert await texts(reader.lines()) == ["a", "b"]


async def test_a_line_that_had_not_ended_is_read_again_when_it_has_grown(node: Node, reader: PodReader):
    node.lines = [at(1, "step 1")]
    await texts(reader.lines(tail=5))
    node.lines = [at(1, "step 12/50")]
    assert await texts(reader.lines(tail=5)) == ["step 12/50"]
    assert await texts(reader.lines(tail=5)) == []


async def test_the_rest_of_a_line_that_was_read_is_not_new(node: Node, reader: PodReader):
    node.lines = [at(1, "a"), "the rest of it"]
    assert len(await texts(reader.lines(tail=5))) == 2
    node.lines.append(at(2, "b"))
    assert await texts(reader.lines(tail=5)) == ["b"]


async def test_after_an_answer_that_was_too_long_fewer_lines_are_asked_for(node: Node, reader: PodReader):
    node.lines = [at(number, "x" * 50) for number in range(20)]
    for _ in range(3):
        await texts(reader.lines(tail=16, most_bytes=400))
    assert [query["tailLines"] for query in node.queries] == ["16", "8", "4"]
    assert not reader.cut, "this one has its newest line"


async def test_a_broken_connection_neither_loses_nor_doubles_a_line(
    node: Node, reader: PodReader, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pods, "PAUSE", 0.0)
    node.lines = [at(1.0, "a"), at(1.1, "b"), at(1.2, "c"), at(5.0, "d"), at(9.0, "e")]
    node.cuts = [2, 3]

    async def ended() -> bool:
        return len(node.queries) >= 2

    assert await texts(reader.follow(ended, tail=4)) == ["b", "c", "d", "e"]
    assert [query.get("tailLines") for query in node.queries] == ["4", "100", "100"]
    assert {query["follow"] for query in node.queries} == {"true"}


async def test_what_was_printed_before_the_end_was_seen_is_read(
    node: Node, reader: PodReader, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pods, "PAUSE", 0.0)

    async def ended() -> bool:
        node.lines.append(at(len(node.lines), "line"))
        return len(node.lines) > 2

    assert await texts(reader.follow(ended)) == ["line"] * 3


async def test_an_error_that_another_connection_does_not_cure_ends_following(node: Node, reader: PodReader):
    node.answer = web.json_response({"message": "no", "reason": "Forbidden"}, status=403)

    async def ended() -> bool:
        return False

    with pytest.raises(Forbidden):
        await texts(reader.follow(ended))


async def test_a_line_without_an_end_comes_in_parts(node: Node, reader: PodReader):
    node.lines = [at(1, "x" * 3_000_000)]
    found = await texts(reader.lines())
    assert len(found) >= 2 and max(map(len, found)) < 2 << 20
    assert sum(map(len, found)) == 3_000_000
