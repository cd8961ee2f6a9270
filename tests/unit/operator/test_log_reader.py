"""Reading logs beside reconciling: which requests are sent, how often, and what follows from the answers."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web
from prometheus_client import generate_latest

from paddlejob.api.types import PaddleJob, Role
from paddlejob.engine.backend import Key
from paddlejob.engine.queue import KeyedQueue
from paddlejob.kube.client import Client
from paddlejob.kube.events import EventRecorder
from paddlejob.objects.stored_job import StoredJob
from paddlejob.operator import log_reader
from paddlejob.operator.informers import Informers
from paddlejob.operator.job_log import JobLog, Source
from paddlejob.operator.log_reader import LogReader
from paddlejob.operator.metrics import Metrics
from paddlejob.plan import PodPhase, times
from paddlejob.plan.objects.pod import pod_manifest
from tests.support.builders import document, job, pod, running
from tests.support.scripted_api import Object, ScriptedApi, failure
from tests.unit.kube.conftest import Serve, serve

__all__ = ["serve"]

KEY = ("default", "mnist")
RUNNING = {"phase": "Running", "reason": "Running", "attempt": 1, "publishedAttempt": 1}


class Api(ScriptedApi):
    """Also has the logs of pods, and counts who was asked for."""

    def __init__(self, *objects: tuple[str, Object]) -> None:
        super().__init__(*objects)
        self.logs: dict[str, list[tuple[datetime, str]]] = defaultdict(list)
        self.asked_logs: list[str] = []
        self.asked_since: list[str | None] = []
        self.refuse: Callable[[str], web.Response | None] = lambda pod: None

    async def respond(self, request: web.Request) -> web.StreamResponse:
        if not request.path.endswith("/log"):
            return await super().respond(request)
        name = request.path.split("/")[-2]
        self.asked_logs.append(name)
        refused = self.refuse(name)
        if refused is not None:
            return refused
        since = request.query.get("sinceTime")
        self.asked_since.append(since)
        lines = [line for line in self.logs[name] if not since or line[0] >= datetime.fromisoformat(since)]
        lines = lines[-int(request.query["tailLines"]) :]
        return web.Response(text="".join(f"{at:%Y-%m-%dT%H:%M:%S.%f}000Z {text}\n" for at, text in lines))

    def write(self, name: str, text: str, ago: float = 0.0) -> None:
        self.logs[name].append((datetime.now(UTC) - timedelta(seconds=ago), text))


def status_of(code: int, reason: str) -> web.Response:
    return web.json_response(failure(code, reason)[1], status=code)


def stored(workers: int = 2, name: str = "mnist", **spec: Any) -> list[tuple[str, Object]]:
    made = document(name, workers=workers, **spec)
    made["metadata"] |= {"uid": f"uid-of-{name}", "generation": 1}
    objects = [(f"default/paddlejobs/{name}", made | {"status": RUNNING})]
    for index in range(workers):
        one = pod_manifest(job(name, workers=workers, **spec), Role.WORKER, index, 1, "build")
        state = {"phase": "Running", "containerStatuses": [{"name": "paddle", "state": {"running": {}}}]}
        objects.append((f"default/pods/{name}-worker-{index}", one | {"status": state}))
    return objects


class Stage:
    def __init__(self, api: Api, client: Client, **options: Any) -> None:
        self.api = api
        self.informers = Informers(client, None)
        self.recorder = EventRecorder(client, "paddlejob")
        self.enqueued: list[Key] = []
        self.reader = LogReader(client, self.informers, self.recorder, self.enqueued.append, **options)

    async def events(self) -> list[str]:
        await self.recorder.flush()
        return [one.body["reason"] for one in self.api.written("POST", "events")]


@contextlib.asynccontextmanager
async def staged(serve: Serve, *objects: tuple[str, Object], **options: Any) -> AsyncIterator[Stage]:
    api = Api(*objects)
    async with Client(await serve(api.respond)) as client:
        stage = Stage(api, client, **options)
        watching = asyncio.create_task(stage.informers.run())
        await stage.informers.wait_for_sync()
        reading = asyncio.create_task(stage.reader.run())
        try:
            yield stage
        finally:
            for task in (reading, watching):
                task.cancel()
            api.watches_end.set()
            await asyncio.gather(reading, watching, return_exceptions=True)


async def until(holds: Callable[[], Any]) -> None:
    ends = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < ends
        await asyncio.sleep(0.02)


async def test_a_running_job_is_read_and_enqueued(serve: Serve):
    async with staged(serve, *stored()) as stage:
        stage.api.write("mnist-worker-0", "step: 7/100 loss: 0.5")
        await until(lambda: stage.reader.readings.get("uid-of-mnist") and stage.enqueued)
        reading = stage.reader.readings["uid-of-mnist"]
        assert (reading.attempt, reading.step, reading.total_steps) == (1, 7, 100)
        assert set(stage.api.asked_logs) == {"mnist-worker-0"}, "other workers are read only for stallSeconds"


async def test_an_attempt_that_is_followed_is_read_on_from_its_last_line(serve: Serve, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(log_reader, "READ_EVERY", 0.0)
    async with staged(serve, *stored()) as stage:
        stage.api.write("mnist-worker-0", "step: 7/100 loss: 0.5")
        await until(lambda: len(stage.api.asked_since) > 2)
        stage.api.write("mnist-worker-0", "saved a checkpoint")
        await until(lambda: len(stage.api.asked_since) > 4)
        first, *later = stage.api.asked_since
        assert first is None and all(later), "no line is read twice"
        assert stage.reader.readings["uid-of-mnist"].step == 7, "a line that shows no step takes none away"


@pytest.mark.parametrize("spec", [{"progress": {"enabled": False}}, {"suspend": True}])
async def test_a_job_that_does_not_want_it_or_does_not_train_is_not_read(serve: Serve, spec: dict[str, Any]):
    objects = stored(**spec)
    if "suspend" in spec:
        objects[0][1]["status"] = RUNNING | {"phase": "Suspended"}
    async with staged(serve, *objects) as stage:
        await asyncio.sleep(0.3)
        assert stage.api.asked_logs == []
        assert stage.reader.readings == {}


async def test_with_reading_switched_off_a_job_that_counts_on_it_has_an_event(serve: Serve):
    async with staged(serve, *stored(stallSeconds=60), enabled=False) as stage:
        await until(lambda: stage.reader._warned)
        assert await stage.events() == ["LogsNotRead"]
        assert stage.api.asked_logs == []


async def test_without_the_permission_it_is_said_once_and_nothing_is_concluded(
    serve: Serve, caplog: pytest.LogCaptureFixture
):
    async with staged(serve, *stored(stallSeconds=60), *stored(name="other")) as stage:
        stage.api.refuse = lambda name: status_of(403, "Forbidden")
        for _ in range(3):
            for key in (KEY, ("default", "other")):
                stage.reader._on_job(None, stage.informers.jobs.get(*key))
            await asyncio.sleep(0.6)
        assert await stage.events() == ["LogsNotRead"]
        assert stage.reader.readings == {}
        assert len(stage.api.asked_logs) <= 2, "it is not asked for again for minutes"
    assert sum("not permitted to read the logs" in one.message for one in caplog.records) == 1


async def test_a_permission_that_was_missing_for_a_moment_costs_seconds_not_minutes(serve: Serve):
    """An API server that has just started denies everything until it knows its roles."""
    clock, objects = [1000.0], stored()
    # The reader does not begin with it by itself.
    objects[0][1]["status"] = RUNNING | {"phase": "Suspended"}
    async with staged(serve, *objects, monotonic=lambda: clock[0]) as stage:
        stage.api.refuse = lambda name: status_of(403, "Forbidden")
        known = stage.informers.jobs.get(*KEY)
        assert isinstance(known, StoredJob)
        stage.reader._logs[KEY] = JobLog(known, stage.reader._source)
        pauses = []
        for _ in range(7):
            pauses.append(await stage.reader._read(KEY, known))
            clock[0] += pauses[-1]
        assert pauses == [10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0]
        stage.api.refuse = lambda name: None
        stage.api.write("mnist-worker-0", "step: 7/100 loss: 0.5")
        await stage.reader._read(KEY, known)
        assert stage.reader.readings["uid-of-mnist"].step == 7
        stage.api.refuse = lambda name: status_of(403, "Forbidden")
        assert await stage.reader._read(KEY, known) == 10.0, "a new denial begins anew"


async def test_a_node_that_does_not_answer_says_nothing_about_its_worker(serve: Serve):
    async with staged(serve, *stored()) as stage:
        stage.api.refuse = lambda name: status_of(500, "InternalError")
        await until(lambda: stage.api.asked_logs)
        await asyncio.sleep(0.2)
        assert stage.reader.readings == {}


async def test_however_many_jobs_there_are_requests_stay_below_twenty_a_second(serve: Serve):
    objects = [one for number in range(60) for one in stored(workers=1, name=f"job-{number}")]
    async with staged(serve, *objects) as stage:
        begun, before = time.monotonic(), len(stage.api.asked_logs)
        await until(lambda: len(stage.reader.readings) == 60)
        assert len(stage.api.asked_logs) - before <= (time.monotonic() - begun) * 20 + 1
        assert len(stage.api.asked_logs) == 60


async def test_with_more_jobs_each_is_read_less_often(serve: Serve):
    async with staged(serve, *stored()) as stage:
        await until(lambda: stage.reader.readings)
        made = stage.informers.jobs.get(*KEY)
        assert isinstance(made, StoredJob)
        assert 10 <= await stage.reader._read(KEY, made) <= 12
        stage.reader._logs |= {("default", f"job-{number}"): stage.reader._logs[KEY] for number in range(500)}
        assert await stage.reader._read(KEY, made) > 500 / 20


class Listening:
    """One job's log on a scripted server, with a clock that a test sets."""

    def __init__(self, api: Api, client: Client, workers: int) -> None:
        self.api = api
        self.moment = 1000.0
        made = running(job(workers=workers, stallSeconds=60))
        self.pods = {index: pod(made, "worker", index) for index in range(workers)}
        self.log = JobLog(made, Source(client, lambda: self.moment))

    async def look(self, after: float) -> float | None:
        """Time passes, then worker 0 is read and the others are listened to if needed."""
        self.moment += after
        self.api.asked_logs.clear()
        await self.log.read(self.pods[0], "default", "paddle", 20)
        await self.log.listen(self.pods, "default", "paddle", 60.0, self.moment)
        return self.log.follower.reading.silent_seconds


@contextlib.asynccontextmanager
async def listening(serve: Serve, workers: int = 3) -> AsyncIterator[Listening]:
    api = Api()
    async with Client(await serve(api.respond)) as client:
        yield Listening(api, client, workers)


async def test_others_are_asked_only_when_worker_0_was_silent_for_that_long(serve: Serve):
    async with listening(serve) as one:
        await one.look(0)
        await one.look(59)
        assert one.api.asked_logs == ["mnist-worker-0"]
        assert await one.look(1) == 60
        assert one.api.asked_logs == ["mnist-worker-0", "mnist-worker-1", "mnist-worker-2"]


async def test_one_worker_that_printed_is_enough_and_is_asked_first_the_next_time(serve: Serve):
    async with listening(serve) as one:
        await one.look(0)
        one.api.write("mnist-worker-2", "evaluating")
        assert await one.look(60) == 0
        one.api.write("mnist-worker-2", "still evaluating")
        assert await one.look(60) == 0
        assert one.api.asked_logs == ["mnist-worker-0", "mnist-worker-2"]
        assert await one.look(60) == pytest.approx(60, abs=2)


async def test_a_line_that_was_printed_long_before_it_was_found_does_not_delay_the_alarm(serve: Serve):
    async with listening(serve) as one:
        await one.look(0)
        one.api.write("mnist-worker-1", "the last words", ago=50)
        await one.look(60)
        assert await one.look(50) == pytest.approx(100, abs=2)


async def test_a_node_whose_clock_is_slow_causes_no_false_alarm(serve: Serve):
    async with listening(serve, workers=1) as one:
        await one.look(0)
        for _ in range(5):
            one.api.write("mnist-worker-0", "step: 1", ago=3600)
            await one.look(30)
            silent = one.log.follower.reading.silent_seconds
            assert silent is None or silent < 60


async def test_a_worker_that_cannot_be_read_leaves_it_open_whether_all_are_silent(serve: Serve):
    async with listening(serve) as one:
        await one.look(0)
        one.api.refuse = lambda name: status_of(500, "InternalError") if name == "mnist-worker-2" else None
        with contextlib.suppress(Exception):
            await one.look(100)
        assert not (one.log.follower.reading.silent_seconds or 0) >= 60
        one.api.refuse = lambda name: None
        assert await one.look(10) == 110


async def test_while_a_pod_is_missing_silence_does_not_count(serve: Serve):
    async with listening(serve) as one:
        await one.look(0)
        await one.log.listen(None, "default", "paddle", 60.0, one.moment)
        assert await one.look(1000) == 0


def test_a_pod_that_is_being_replaced_stops_the_count():
    made: PaddleJob = running(job(workers=2))
    both = [pod(made, "worker", 0), pod(made, "worker", 1)]
    assert set(log_reader.running_workers(both, 1) or ()) == {0, 1}
    assert log_reader.running_workers([both[0], pod(made, "worker", 1, PodPhase.PENDING)], 1) is None
    assert log_reader.running_workers([both[0], pod(made, "worker", 1, deletion_due=1.0)], 1) is None
    done = [pod(made, "worker", 0, PodPhase.SUCCEEDED), both[1]]
    assert set(log_reader.running_workers(done, 1) or ()) == {1}


async def test_goodput_is_a_gauge_of_each_job_that_trains(serve: Serve):
    since = times.format(time.time() - 100)
    progress = {"step": 5, "highestStep": 5, "productiveSeconds": 80, "countedSince": since}
    objects = [*stored(workers=1), *stored(workers=1, name="done"), *stored(workers=1, name="silent")]
    for number, phase in ((0, "Running"), (2, "Completed")):
        status = RUNNING | {"phase": phase, "progress": progress, "goodput": 80}
        objects[number][1]["status"] = status | ({"completionTime": since} if phase == "Completed" else {})
    metrics = Metrics(per_job=True)
    async with staged(serve, *objects) as stage:
        with metrics.collecting(stage.informers, KeyedQueue(), stage.recorder):
            lines = generate_latest(metrics.registry).decode().splitlines()
    (line,) = [line for line in lines if line.startswith("paddlejob_goodput_ratio{")]
    assert line.startswith('paddlejob_goodput_ratio{job="mnist",namespace="default"} 0.7')
