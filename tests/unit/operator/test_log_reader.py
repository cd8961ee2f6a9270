"""Reading logs beside reconciling: which requests are sent, how often, and what follows from the answers."""

from __future__ import annotations

import asyncio
import contextlib
import time
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
from paddlejob.objects.resources import PADDLEJOBS
from paddlejob.operator import log_reader
from paddlejob.operator.informers import Informers
from paddlejob.operator.job_log import JobLog, Source
from paddlejob.operator.log_reader import LogReader
from paddlejob.operator.metrics import Metrics
from paddlejob.operator.pattern_budget import PatternBudget
from paddlejob.plan import PodPhase, times
from paddlejob.plan.manifests.pod import pod_manifest
from tests.support.builders import document, job, pod, running
from tests.support.scripted_cluster import JOB, Object, ScriptedCluster, Serve, failure
from tests.support.waiting import until

KEY = ("default", "mnist")
RUNNING = {"phase": "Running", "reason": "Running", "attempt": 1, "publishedAttempt": 1}


class Api(ScriptedCluster):
    """Counts whose logs were asked for, and may refuse them."""

    def __init__(self, *objects: tuple[str, Object]) -> None:
        super().__init__(*objects)
        self.asked_logs: list[str] = []
        self.refuse: Callable[[str], web.Response | None] = lambda pod: None

    async def respond(self, request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/log"):
            name = request.path.split("/")[-2]
            self.asked_logs.append(name)
            if refused := self.refuse(name):
                return refused
        return await super().respond(request)

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
        self.client = client
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
        await until(lambda: len(stage.api.asked_logs) > 2)
        stage.api.write("mnist-worker-0", "saved a checkpoint")
        await until(lambda: "saved" in stage.reader.readings["uid-of-mnist"].last_lines)
        reading = stage.reader.readings["uid-of-mnist"]
        assert reading.last_lines == "step: 7/100 loss: 0.5\nsaved a checkpoint", "no line is read twice"
        assert reading.step == 7, "a line that shows no step takes none away"


async def test_a_pattern_that_takes_too_long_is_no_longer_used_and_the_reading_says_so(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(log_reader, "READ_EVERY", 0.0)
    later = [0.0]
    slow = {"pattern": r"((a{0,500}){0,2})*z(?P<step>\d+)"}
    quick = {"pattern": r"round (?P<step>\d+)"}

    def clock() -> float:
        return time.monotonic() + later[0]

    async with staged(serve, *stored(1, progress=slow), *stored(1, "other", progress=quick), monotonic=clock) as stage:
        for line in ["a" * 2000] * 60 + ["z5"]:
            stage.api.write("mnist-worker-0", line)
        stage.api.write("other-worker-0", "round 7")
        await until(lambda: len(stage.api.asked_logs) > 4 and "uid-of-mnist" in stage.reader.readings)
        reading = stage.reader.readings["uid-of-mnist"]
        assert (reading.step, reading.pattern_too_slow) == (None, True)
        await until(lambda: "uid-of-other" in stage.reader.readings and stage.reader.readings["uid-of-other"].step == 7)
        assert not stage.reader.readings["uid-of-other"].pattern_too_slow
        changed = {**stage.api.objects[JOB]}
        changed["spec"] = changed["spec"] | {"progress": {"pattern": r"z(?P<step>\d+)"}}
        later[0] = 10.0
        stage.informers.record_write(PADDLEJOBS, stage.api.put(JOB, changed))
        await until(lambda: stage.reader.readings.get("uid-of-mnist", reading).step == 5)
        assert not stage.reader.readings["uid-of-mnist"].pattern_too_slow


def test_what_a_slow_pattern_has_cost_is_not_held_against_a_corrected_one():
    clock = [100.0]
    budget = PatternBudget(lambda: clock[0])
    budget.spend("slow", 5.0)
    clock[0] += 2
    budget.spend("corrected", 0.005)
    assert budget.slow == "slow"


async def test_a_corrected_pattern_is_used_at_once(serve: Serve):
    async with staged(serve, *stored(1, progress={"pattern": r"rond (?P<step>\d+)"})) as stage:
        stage.api.write("mnist-worker-0", "round 7")
        await until(lambda: stage.reader.readings)
        changed = {**stage.api.objects[JOB]}
        changed["spec"] = changed["spec"] | {"progress": {"pattern": r"round (?P<step>\d+)"}}
        stage.informers.record_write(PADDLEJOBS, stage.api.put(JOB, changed))
        await until(lambda: stage.reader.readings and stage.reader.readings["uid-of-mnist"].step == 7, seconds=5)


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
        async with asyncio.timeout(30):
            while not (events := await stage.events()):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert events == ["LogsNotRead"]
        assert stage.api.asked_logs == []


async def test_without_the_permission_it_is_said_once_and_nothing_is_concluded(
    serve: Serve, caplog: pytest.LogCaptureFixture
):
    async with staged(serve, *stored(stallSeconds=60), *stored(name="other")) as stage:
        stage.api.refuse = lambda name: status_of(403, "Forbidden")
        for _ in range(3):
            for path in (JOB, "default/paddlejobs/other"):
                stage.informers.record_write(PADDLEJOBS, stage.api.put(path, stage.api.objects[path]))
            await asyncio.sleep(0.6)
        assert await stage.events() == ["LogsNotRead"]
        assert stage.reader.readings == {}
        assert len(stage.api.asked_logs) <= 2, "it is not asked for again for minutes"
    assert sum("not permitted to read the logs" in one.message for one in caplog.records) == 1


def test_a_permission_that_was_missing_for_a_moment_costs_seconds_not_minutes():
    """An API server that has just started denies everything until it knows its roles."""
    clock = [1000.0]
    denials, pauses = log_reader.Denials(lambda: clock[0]), []
    for _ in range(7):
        denials.deny("team")
        clock[0] += 1
        denials.deny("team")
        pauses.append(1 + denials.pause("team"))
        clock[0] += denials.pause("team")
    assert pauses == [10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0], "whoever else asks meanwhile"
    assert bool(denials) and denials.pause("other") == 0
    denials.permit("team")
    assert not denials
    denials.deny("team")
    assert denials.pause("team") == 10.0, "a new denial begins anew"


async def test_a_job_is_read_once_it_is_permitted(serve: Serve, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(log_reader, "FIRST_DENIED", 0.1)
    async with staged(serve, *stored()) as stage:
        stage.api.refuse = lambda name: status_of(403, "Forbidden")
        stage.api.write("mnist-worker-0", "step: 7/100 loss: 0.5")
        await until(lambda: stage.api.asked_logs)
        stage.api.refuse = lambda name: None
        await until(lambda: stage.reader.readings)
        assert stage.reader.readings["uid-of-mnist"].step == 7


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


def test_with_more_jobs_each_is_read_less_often():
    assert 10 <= log_reader.read_interval(80) <= 12
    assert 500 / 20 < log_reader.read_interval(500) <= 75


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


async def test_others_are_asked_when_worker_0_was_silent_for_half_of_that_time_and_at_its_end(serve: Serve):
    async with listening(serve) as one:
        await one.look(0)
        await one.look(29)
        assert one.api.asked_logs == ["mnist-worker-0"]
        assert await one.look(1) == 30
        assert one.api.asked_logs == ["mnist-worker-0", "mnist-worker-1", "mnist-worker-2"]
        assert await one.look(29) == 30
        assert one.api.asked_logs == ["mnist-worker-0"]
        assert await one.look(1) == 60
        assert one.api.asked_logs == ["mnist-worker-0", "mnist-worker-1", "mnist-worker-2"]


async def test_one_worker_that_printed_is_enough_and_is_asked_first_the_next_time(serve: Serve):
    async with listening(serve) as one:
        await one.look(0)
        one.api.write("mnist-worker-2", "evaluating")
        assert await one.look(30) == 0
        one.api.write("mnist-worker-2", "still evaluating")
        assert await one.look(30) == 0
        assert one.api.asked_logs == ["mnist-worker-0", "mnist-worker-2"]


@pytest.mark.parametrize("workers", [1, 3])
async def test_a_hang_is_noticed_after_one_and_a_half_times_the_limit_at_the_latest(serve: Serve, workers: int):
    """What others printed before they were first looked at has an unknown age."""
    async with listening(serve, workers) as one:
        await one.look(0)
        for index in range(workers):
            one.api.write(f"mnist-worker-{index}", "the last words", ago=3600)
        silent = [await one.look(10) or 0 for _ in range(10)]
        assert max(silent) >= 60, f"after 100 s it counts {silent}"
        assert max(silent[:6]) < 60


@pytest.mark.parametrize("ago", [0.0, 61.0, 3600.0])
@pytest.mark.parametrize("speaker", [0, 2])
async def test_whatever_the_clock_of_its_node_shows_a_worker_that_prints_is_heard(
    serve: Serve, speaker: int, ago: float
):
    """The clock is behind all the time, or set back after the first lines."""
    async with listening(serve) as one:
        one.api.write(f"mnist-worker-{speaker}", "step: 1")
        await one.look(0)
        for number in range(30):
            one.api.write(f"mnist-worker-{speaker}", f"step: {number}", ago=ago)
            assert (await one.look(10) or 0) < 60


async def test_the_last_output_of_a_node_whose_clock_was_set_back_is_that_of_now(serve: Serve):
    async with listening(serve, workers=1) as one:
        one.api.write("mnist-worker-0", "step: 1", ago=60)
        await one.look(0)
        one.api.write("mnist-worker-0", "step: 2", ago=3600)
        await one.look(10)
        last = one.log.reading.last_output
        assert last is not None and time.time() - last < 30


async def test_a_worker_whose_last_line_only_grows_is_heard(serve: Serve):
    """A progress bar without an end: its node shows another 16 KiB of it now and then."""
    async with listening(serve, workers=1) as one:
        one.api.write("mnist-worker-0", "epoch 1")
        await one.look(0)
        for _ in range(10):
            at, text = one.api.logs["mnist-worker-0"].pop()
            one.api.logs["mnist-worker-0"].append((at, text + "\r 10%|#"))
            assert (await one.look(40) or 0) < 60


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
