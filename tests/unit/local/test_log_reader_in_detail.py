"""Reading the logs of a job on this machine: a log that shrinks, the worker with rank 0, and who hears of news."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from paddlejob.api.types import Progress
from paddlejob.engine.backend import Key
from paddlejob.local import log_watch
from paddlejob.local.log_reader import MOST_AT_ONCE, MOST_UNFINISHED, LogReader
from paddlejob.local.log_watch import LogWatch
from paddlejob.plan import PodPhase
from paddlejob.plan.world import LogReading
from tests.support.builders import NOON
from tests.unit.local.test_log_reader import Watched


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    made = Watched(tmp_path, stallSeconds=60)
    yield made
    made.objects.allocation.clear()


def read(watched: Watched, reader: LogReader | None = None) -> LogReading:
    found = (reader or watched.reader).read()
    assert found is not None
    return found


def log_of(watched: Watched, worker: int = 0) -> Path:
    return watched.objects.folder.log(1, f"mnist-worker-{worker}")


async def test_a_log_that_was_cut_is_read_from_its_beginning(watched: Watched):
    await watched.begin()
    watched.write("step: 1/9 loss: 1\nstep: 2/9 loss: 1\nstep: 3")
    assert read(watched).step == 2
    log_of(watched).write_text("step: 7/9 loss: 1\n")
    assert read(watched).step == 7


async def test_what_is_read_at_once_is_bounded_exactly(watched: Watched):
    await watched.begin()
    line = "step: 5/9 loss: 1\n"
    watched.write(line + "x" * (MOST_AT_ONCE - len(line) - 1) + "\n")
    assert read(watched).step == 5
    watched.write("step: 6/9 loss: 1\n" + "x" * MOST_AT_ONCE + "\n")
    assert read(watched).step == 5, "skipped"


async def test_the_beginning_of_a_line_without_an_end_is_forgotten(watched: Watched):
    await watched.begin()
    watched.write("step: 5/9 " + "x" * (MOST_UNFINISHED - 10))
    read(watched)
    watched.write(" \n")
    assert read(watched).step == 5
    watched.write("step: 6/9 " + "x" * MOST_UNFINISHED)
    read(watched)
    watched.write(" \n")
    assert read(watched).step == 5


async def test_output_without_a_whole_line_is_output(watched: Watched):
    await watched.begin()
    assert read(watched).last_output is None
    watched.write("loading")
    assert read(watched).last_output == NOON


async def test_the_steps_of_earlier_attempts_are_known(watched: Watched):
    await watched.begin()
    folder = watched.objects.folder
    job = folder.job()
    assert job is not None
    folder.write_status(job.status.model_copy(update={"progress": Progress(highestStep=50)}))
    watched.write("step: 40/90 loss: 1\n")
    assert read(watched).ahead_since is None
    watched.write("step: 60/90 loss: 1\n")
    assert read(watched).ahead_since == NOON


async def test_the_log_of_the_worker_with_rank_0_is_read(watched: Watched):
    await watched.begin()
    folder = watched.objects.folder
    job = folder.job()
    assert job is not None
    worker = job.status.role("worker").model_copy(update={"members": "1"})
    folder.write_status(job.status.model_copy(update={"worker": worker}))
    watched.write("step: 1/9 loss: 1\n", worker=0)
    watched.write("step: 7/9 loss: 1\n", worker=1)
    assert read(watched).step == 7


@pytest.mark.parametrize("status", [{"attempt": 0}, {"phase": "Failed", "completionTime": "2027-01-15T08:00:00Z"}])
async def test_a_job_that_has_not_begun_or_has_ended_is_not_read(watched: Watched, status: dict[str, object]):
    await watched.begin()
    watched.write("step: 1/9 loss: 1\n")
    folder = watched.objects.folder
    job = folder.job()
    assert job is not None
    folder.write_status(type(job.status).model_validate(job.status.model_dump(mode="json") | status))
    assert watched.reader.read() is None
    assert await watched.reader.look() is None


async def test_a_job_that_is_gone_is_not_read(watched: Watched):
    await watched.begin()
    watched.objects.folder.remove()
    assert watched.reader.read() is None
    assert await watched.reader.look() is None


async def test_while_a_pod_is_being_deleted_silence_does_not_count(watched: Watched):
    await watched.begin()
    await watched.silent_after(0)
    watched.objects.pods["mnist-worker-1"].change(deletion_due=NOON + 30)
    assert await watched.silent_after(30) is None


async def test_without_a_limit_nothing_hangs(tmp_path: Path):
    watched = Watched(tmp_path)
    await watched.begin()
    await watched.silent_after(0)
    assert await watched.silent_after(10_000) == 10_000
    assert not watched.reader.hangs
    watched.objects.allocation.clear()


async def test_output_of_another_worker_is_the_last_output_too(watched: Watched):
    await watched.begin()
    await watched.silent_after(0)
    watched.write("hello\n", worker=1)
    found = await watched.reader.look()
    assert found is not None
    assert found.last_output == NOON


@contextlib.asynccontextmanager
async def watching(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[Key]]:
    monkeypatch.setattr(log_watch, "LOOK_EVERY", 0.005)
    news: list[Key] = []
    watch = LogWatch(watched.engine.backend, lambda: NOON, lambda: watched.moment)
    task = asyncio.create_task(watch.run(news.append))
    try:
        yield news
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def test_a_turn_follows_news_but_not_silence_alone(watched: Watched, monkeypatch: pytest.MonkeyPatch):
    await watched.begin()
    watched.moment = 1000.0
    readings = watched.engine.backend.readings
    async with watching(watched, monkeypatch) as news:
        await until(lambda: news)
        watched.write("step: 3/9 loss: 1\n")
        await until(lambda: watched.key in readings and readings[watched.key].step == 3)
        await until(lambda: len(news) >= 2)
        watched.moment += 10
        await until(lambda: readings[watched.key].silent_seconds == 10)
        seen = len(news)
        watched.moment += 10
        await until(lambda: readings[watched.key].silent_seconds == 20)
        assert len(news) == seen
        watched.moment += 100
        await until(lambda: len(news) > seen)
        assert set(news) == {watched.key}


async def test_a_job_without_a_kubelet_is_forgotten(watched: Watched, monkeypatch: pytest.MonkeyPatch):
    await watched.begin()
    watched.write("step: 3/9 loss: 1\n")
    backend = watched.engine.backend
    async with watching(watched, monkeypatch):
        await until(lambda: watched.key in backend.readings)
        kubelet = backend.kubelets.pop(watched.key)
        await until(lambda: watched.key not in backend.readings)
        backend.kubelets[watched.key] = kubelet


async def test_before_a_turn_the_last_lines_are_read(watched: Watched):
    await watched.begin()
    watch = LogWatch(watched.engine.backend, lambda: NOON)
    watched.write("step: 3/9 loss: 1\n")
    watch.read(watched.key)
    assert watched.engine.backend.readings[watched.key].step == 3
    watch.read(("default", "unknown"))
    assert ("default", "unknown") not in watched.engine.backend.readings
    for pod in watched.objects.pods.values():
        pod.change(phase=PodPhase.SUCCEEDED)
    watched.objects.folder.remove()
    watch.read(watched.key)
    assert watched.key not in watched.engine.backend.readings
