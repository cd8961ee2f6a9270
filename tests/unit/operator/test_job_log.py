"""The log of one job on a cluster: what is asked of the API server, and since when its workers are silent."""

from __future__ import annotations

import asyncio

from aiohttp import web

from paddlejob.api.types import Progress
from paddlejob.kube.client import Client
from paddlejob.operator.job_log import JobLog, Source, running_workers
from paddlejob.plan import PodPhase
from tests.support.builders import having, job, pod, running
from tests.support.scripted_cluster import Serve

FIRST, SECOND = "2027-01-15T08:00:00.000000001Z", "2027-01-15T08:00:01.000000002Z"


async def test_new_lines_of_worker_0_are_asked_for_and_only_those_with_a_time_count(serve: Serve):
    queries: list[dict[str, str]] = []

    async def respond(request: web.Request) -> web.Response:
        queries.append(dict(request.query))
        return web.Response(text=f"{FIRST} step: 1/9 loss: 1\n{SECOND} step: 2/9 loss: 1\nstep: 7/9 loss: 1\n")

    made = running(job())
    async with Client(await serve(respond)) as client:
        log = JobLog(made, Source(client, lambda: 0.0))
        for _ in range(2):
            await log.read(pod(made, "worker", 0), "ml", "paddle", 20)
    assert log.follower.reading.step == 2
    first, second = queries
    assert first.items() >= {"container": "paddle", "tailLines": "20", "limitBytes": str(128 * 1024)}.items()
    assert second == first, "never those since a time: the clock of a node may be set back"


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
    assert (log.due(70), log.due(60), log.due(None)) == (5.0, 30.0, None)


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


async def test_only_lines_of_an_attempt_that_began_in_place_count(serve: Serve):
    """The pod's log begins with those of the attempt before; the first of the new one may not be there yet."""
    before, begins = f"{FIRST} step: 8/9 loss: 1\n", f"{SECOND} paddlejob: attempt 2 begins in place\n"
    texts = [before, before + begins + f"{SECOND} step: 2/9 loss: 1\n"]

    async def respond(request: web.Request) -> web.Response:
        return web.Response(text=texts.pop(0))

    made = running(job())
    made = having(made, made.status.model_copy(update={"attempt": 2, "builtAttempt": 1}))
    async with Client(await serve(respond)) as client:
        log = JobLog(made, Source(client, lambda: 0.0))
        await log.read(pod(made, "worker", 0), "ml", "paddle", 20)
        assert log.follower.reading.step is None
        await log.read(pod(made, "worker", 0), "ml", "paddle", 20)
    assert (log.follower.reading.step, log.follower.reading.last_lines) == (2, "step: 2/9 loss: 1")


async def test_a_log_of_which_only_the_end_is_read_counts_as_that_of_the_attempt(serve: Serve):
    async def respond(request: web.Request) -> web.Response:
        return web.Response(text=f"{FIRST} step: 5/9 loss: 1\n{SECOND} step: 6/9 loss: 1\n")

    made = running(job())
    made = having(made, made.status.model_copy(update={"attempt": 2, "builtAttempt": 1}))
    async with Client(await serve(respond)) as client:
        log = JobLog(made, Source(client, lambda: 0.0))
        await log.read(pod(made, "worker", 0), "ml", "paddle", 2)
    assert log.follower.reading.step == 6
