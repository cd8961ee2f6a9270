"""Reading logs on a cluster: what is asked of the API server, and what follows from its answers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from aiohttp import web

from paddlejob.api.types import Progress
from paddlejob.kube.client import Client
from paddlejob.operator.job_log import JobLog, Source, running_workers
from paddlejob.operator.pod_log import new_lines
from paddlejob.plan import PodPhase
from tests.support.builders import having, job, pod, running
from tests.unit.kube.conftest import Serve, serve

__all__ = ["serve"]
FIRST, SECOND = "2027-01-15T08:00:00.000000001Z", "2027-01-15T08:00:01.000000002Z"


@contextlib.asynccontextmanager
async def logging(serve: Serve, text: str) -> AsyncIterator[tuple[Client, list[dict[str, str]]]]:
    """An API server with one log, and the queries that it was asked."""
    queries: list[dict[str, str]] = []

    async def respond(request: web.Request) -> web.Response:
        queries.append({"path": request.path, **request.query})
        return web.Response(text=text)

    async with Client(await serve(respond)) as client:
        yield client, queries


async def test_the_last_lines_of_the_training_container_are_asked_for_with_their_times(serve: Serve):
    async with logging(serve, f"{FIRST} step: 1\n{SECOND} step: 2\n") as (client, queries):
        found = await new_lines(client, "ml", "mnist-worker-0", "paddle", most=20, after="")
        later = await new_lines(client, "ml", "mnist-worker-0", "paddle", most=20, after=found.last)
    assert [(at, text) for at, text in found.lines] == [(1800000000.0, "step: 1"), (1800000001.0, "step: 2")]
    assert (found.last, later.lines, later.last) == (SECOND, (), SECOND)
    first, second = queries
    assert first == {
        "path": "/api/v1/namespaces/ml/pods/mnist-worker-0/log",
        "container": "paddle",
        "timestamps": "true",
        "tailLines": "20",
        "limitBytes": str(128 * 1024),
    }
    assert second == first | {"sinceTime": SECOND}


async def test_only_lines_that_are_newer_than_the_last_and_have_a_time_are_taken(serve: Serve):
    async with logging(serve, f"{FIRST} old\n{SECOND} new\nrest of a bar\n") as (client, _):
        found = await new_lines(client, "ml", "a", "paddle", most=20, after=FIRST)
    assert ([text for _, text in found.lines], found.last) == (["new"], SECOND)


async def test_requests_are_sent_at_some_distance_whoever_asks():
    source = Source(Client.__new__(Client), lambda: 100.0)
    loop = asyncio.get_running_loop()
    begun = loop.time()
    for _ in range(3):
        await source.wait_for_turn()
    assert loop.time() - begun >= 0.1, "the second waits for one distance and the third for two"


def test_when_all_workers_may_have_been_silent_for_long_enough_is_known_in_advance():
    made = running(job())
    log = JobLog(made, Source(Client.__new__(Client), lambda: 130.0))
    assert (log.due(None), log.due(60)) == (None, None)
    log.follower.hear(100.0)
    assert (log.due(60), log.due(None)) == (30.0, None)


def test_a_new_reader_knows_the_steps_of_earlier_attempts():
    made = running(job())
    again = having(made, made.status.model_copy(update={"progress": Progress(highestStep=50), "attempt": 2}))
    log = JobLog(again, Source(Client.__new__(Client), lambda: 0.0))
    log.follower.feed([(10.0, "step: 40/90 loss: 1")])
    assert (log.follower.reading.ahead_since, log.follower.attempt, log.uid) == (None, 2, "uid-of-mnist")
    log.follower.feed([(20.0, "step: 60/90 loss: 1")])
    assert log.follower.reading.ahead_since == 15.0


def test_pods_of_other_attempts_and_servers_are_not_workers_that_run():
    made = running(job(ps=1))
    pods = [pod(made, "worker", 0), pod(made, "worker", 1, attempt=2), pod(made, "ps", 0)]
    assert list(running_workers(pods, 1) or ()) == [0]
    assert running_workers(pods[2:], 1) is None
    assert running_workers([pod(made, "worker", 0, PodPhase.SUCCEEDED)], 1) is None
