"""Reading the logs of a job on this machine: only what is new, a bounded part at a time, each attempt for itself."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from paddlejob.api.types import Phase, Progress, Role
from paddlejob.engine.backend import Key
from paddlejob.local import log_watch
from paddlejob.local.job import JobRegistry, LocalJob
from paddlejob.local.log_reader import MOST_AT_ONCE, LogReader
from paddlejob.local.log_watch import LogWatch
from paddlejob.local.options import RunOptions
from paddlejob.local.pod import new_pod
from paddlejob.local.state.store import JobStore
from paddlejob.logs.record import NAME, read_samples
from paddlejob.plan import PodPhase
from paddlejob.plan.manifests.build_mark import build_mark
from paddlejob.plan.manifests.pod import pod_manifest
from paddlejob.plan.world import LogReading
from paddlejob.progress import Parser
from tests.support.builders import NOON, document


class Watched:
    """A job of two workers whose pods run, as far as the engine knows, and whose logs a test writes."""

    def __init__(self, root: Path, **options: object) -> None:
        folder, lock = JobStore(root).begin(document("mnist", workers=2, **options), RunOptions(), NOON)
        self.key, self.local, self.jobs = folder.key, LocalJob(folder, lock), JobRegistry()
        self.jobs.add(self.local)
        self.moment = 0.0
        self.reader = LogReader(self.local, lambda: NOON, lambda: self.moment)
        self.reader.read()  # As before the first turn.

    async def begin(self, attempt: int = 1) -> None:
        self.local.pods.clear()
        self.change_status(phase=Phase.RUNNING, attempt=attempt)
        job = self.local.folder.job()
        assert job is not None
        for index in range(2):
            manifest = pod_manifest(job, Role.WORKER, index, attempt, build_mark(job))
            pod = new_pod(f"uid-{index}", manifest, self.local.folder.path / "pods", NOON)
            pod.change(phase=PodPhase.RUNNING)
            self.local.add(pod)

    def write(self, text: str, worker: int = 0, attempt: int = 1) -> None:
        log = self.local.folder.log(attempt, f"mnist-worker-{worker}")
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a") as file:
            file.write(text)

    async def silent_after(self, seconds: float) -> float | None:
        self.moment += seconds
        reading = await self.reader.look()
        assert reading is not None
        return reading.silent_seconds

    def read(self) -> LogReading:
        found = self.reader.read()
        assert found is not None
        return found

    def change_status(self, **changes: object) -> None:
        folder = self.local.folder
        job = folder.job()
        assert job is not None
        folder.write_status(job.status.model_copy(update=changes))

    def recorded(self) -> list[tuple[int, float | None, int | None]]:
        """Attempt, time and step of each sample."""
        found = (one for batch in read_samples(self.local.folder.path, "mnist", None) for one in batch)
        return [(one.attempt, one.time, one.sample.step) for one in found]


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    made = Watched(tmp_path, stallSeconds=60)
    yield made
    made.local.release()


async def test_each_line_is_read_once_also_one_that_comes_in_parts(watched: Watched):
    await watched.begin()
    watched.write("step: 1/9 loss: 0.5\nstep: 2")
    reading = watched.read()
    assert reading.step == 1
    watched.write("/9 loss: 0.25\n")
    reading = watched.read()
    assert (reading.step, reading.metrics) == (2, {"loss": 0.25})


async def test_a_progress_bar_without_an_end_of_line_is_read(watched: Watched):
    await watched.begin()
    watched.write("\rstep: 1/9 loss: 1\rstep: 2/9 loss: 1\r")
    reading = watched.read()
    assert reading.step == 2


async def test_the_newest_state_of_a_progress_bar_is_read_before_it_is_drawn_again(watched: Watched):
    await watched.begin()
    for step in (1, 2, 3):
        watched.write(f"\rEpoch 1/2:  {step}0%|#  | {step}/10 [00:10<00:17, 3.6it/s, loss={step}.5]")
        reading = watched.read()
        assert (reading.step, reading.metrics["loss"]) == (step, step + 0.5)


async def test_of_a_flood_of_output_only_the_end_is_read(watched: Watched):
    await watched.begin()
    watched.write("step: 1/9 loss: 1\n" + "x" * 3 * MOST_AT_ONCE + "\nstep: 7/9 loss: 0.1\n")
    reading = watched.read()
    assert (reading.step, reading.highest) == (7, 7)


async def test_the_next_attempt_is_read_from_its_own_log(watched: Watched):
    await watched.begin()
    watched.write("step: 8/9 loss: 1\n")
    assert watched.reader.read() is not None
    await watched.begin(attempt=2)
    reading = watched.read()
    assert (reading.attempt, reading.step, reading.last_lines) == (2, None, "")


async def test_any_worker_that_prints_ends_the_silence(watched: Watched):
    await watched.begin()
    assert await watched.silent_after(0) == 0
    assert await watched.silent_after(50) == 50
    watched.write("still here\n", worker=1)
    assert await watched.silent_after(5) == 0
    assert await watched.silent_after(59) == 59
    assert not watched.reader.hangs
    assert await watched.silent_after(1) == 60
    assert watched.reader.hangs


async def test_a_worker_that_has_succeeded_is_not_waited_for_and_one_that_starts_is(watched: Watched):
    await watched.begin()
    await watched.silent_after(0)
    watched.local.pods["mnist-worker-0"].change(phase=PodPhase.SUCCEEDED)
    assert await watched.silent_after(30) == 30
    watched.local.pods["mnist-worker-1"].change(phase=PodPhase.PENDING)
    assert await watched.silent_after(30) is None
    watched.local.pods["mnist-worker-1"].change(phase=PodPhase.RUNNING)
    assert await watched.silent_after(30) == 0


async def test_nothing_is_read_where_progress_is_off(tmp_path: Path):
    watched = Watched(tmp_path, progress={"enabled": False})
    await watched.begin()
    watched.write("step: 1/9 loss: 1\n")
    assert watched.reader.read() is None
    assert await watched.reader.look() is None
    assert not (watched.local.folder.path / NAME).exists()
    watched.local.allocation.clear()


async def test_an_error_while_reading_is_logged_once_and_does_not_fail_the_job(
    watched: Watched, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    await watched.begin()
    watched.write("step: 1/9 loss: 1\n")
    monkeypatch.setattr(Parser, "parse", lambda self, line: 1 // 0)
    watch = LogWatch(watched.jobs, lambda: NOON)
    for _ in range(3):
        watched.write("step: 2/9 loss: 1\n")
        watch.read(watched.local)
    assert capsys.readouterr().out.count("its log cannot be read") == 1
    assert watched.local.reading is None


def log_of(watched: Watched, worker: int = 0) -> Path:
    return watched.local.folder.log(1, f"mnist-worker-{worker}")


async def test_a_log_that_was_cut_is_read_from_its_beginning(watched: Watched):
    await watched.begin()
    watched.write("step: 1/9 loss: 1\nstep: 2/9 loss: 1\nstep: 3")
    assert watched.read().step == 2
    log_of(watched).write_text("step: 7/9 loss: 1\n")
    assert watched.read().step == 7


async def test_output_without_a_whole_line_is_output(watched: Watched):
    await watched.begin()
    assert watched.read().last_output is None
    watched.write("loading")
    assert watched.read().last_output == NOON


async def test_the_steps_of_earlier_attempts_are_known(watched: Watched):
    await watched.begin()
    watched.change_status(progress=Progress(highestStep=50))
    watched.write("step: 40/90 loss: 1\n")
    assert watched.read().ahead_since is None
    watched.write("step: 60/90 loss: 1\n")
    assert watched.read().ahead_since == NOON


async def test_the_log_of_the_worker_with_rank_0_is_read(watched: Watched):
    await watched.begin()
    folder = watched.local.folder
    job = folder.job()
    assert job is not None
    worker = job.status.role("worker").model_copy(update={"members": "1"})
    folder.write_status(job.status.model_copy(update={"worker": worker}))
    watched.write("step: 1/9 loss: 1\n", worker=0)
    watched.write("step: 7/9 loss: 1\n", worker=1)
    assert watched.read().step == 7


@pytest.mark.parametrize("status", [{"attempt": 0}, {"phase": "Failed", "completionTime": "2027-01-15T08:00:00Z"}])
async def test_a_job_that_has_not_begun_or_has_ended_is_not_read(watched: Watched, status: dict[str, object]):
    await watched.begin()
    watched.write("step: 1/9 loss: 1\n")
    folder = watched.local.folder
    job = folder.job()
    assert job is not None
    folder.write_status(type(job.status).model_validate(job.status.model_dump(mode="json") | status))
    assert watched.reader.read() is None
    assert await watched.reader.look() is None


async def test_a_job_that_is_gone_is_not_read(watched: Watched):
    await watched.begin()
    watched.local.folder.remove()
    assert watched.reader.read() is None
    assert await watched.reader.look() is None


async def test_while_a_pod_is_being_deleted_silence_does_not_count(watched: Watched):
    await watched.begin()
    await watched.silent_after(0)
    watched.local.pods["mnist-worker-1"].change(deletion_due=NOON + 30)
    assert await watched.silent_after(30) is None


async def test_without_a_limit_nothing_hangs(tmp_path: Path):
    watched = Watched(tmp_path)
    await watched.begin()
    await watched.silent_after(0)
    assert await watched.silent_after(10_000) == 10_000
    assert not watched.reader.hangs
    watched.local.allocation.clear()


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
    watch = LogWatch(watched.jobs, lambda: NOON, lambda: watched.moment)
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
    job = watched.local
    async with watching(watched, monkeypatch) as news:
        await until(lambda: news)
        watched.write("step: 3/9 loss: 1\n")
        await until(lambda: job.reading and job.reading.step == 3)
        await until(lambda: len(news) >= 2)
        watched.moment += 10
        await until(lambda: job.reading and job.reading.silent_seconds == 10)
        seen = len(news)
        watched.moment += 10
        await until(lambda: job.reading and job.reading.silent_seconds == 20)
        assert len(news) == seen
        watched.moment += 15
        await until(lambda: len(news) > seen)
        watched.moment += 5
        await until(lambda: job.reading and job.reading.silent_seconds == 40)
        assert len(news) == seen + 1, "half of the limit is news once"
        watched.moment += 100
        await until(lambda: len(news) > seen + 1)
        assert set(news) == {watched.key}


async def test_before_a_turn_the_last_lines_are_read(watched: Watched):
    await watched.begin()
    watch = LogWatch(watched.jobs, lambda: NOON)
    watched.write("step: 3/9 loss: 1\n")
    watch.read(watched.local)
    assert watched.local.reading and watched.local.reading.step == 3
    for pod in watched.local.pods.values():
        pod.change(phase=PodPhase.SUCCEEDED)
    watched.local.folder.remove()
    watch.read(watched.local)
    assert watched.local.reading is None


async def test_every_sample_is_recorded_once_with_its_time(watched: Watched):
    await watched.begin()
    assert (watched.read().step, watched.recorded()) == (None, [])
    watched.write("step: 1/9 loss: 1\nnothing\nstep: 2")
    watched.read()
    assert watched.recorded() == [(1, NOON, 1)]
    watched.write("/9 loss: 1\n")
    await watched.begin(attempt=2)
    watched.write("step: 7/9 loss: 1\n", attempt=2)
    watched.read()
    assert watched.recorded() == [(1, NOON, 1), (2, NOON, 7)]


async def test_every_state_of_a_progress_bar_is_recorded_once_it_is_complete(watched: Watched):
    await watched.begin()
    watched.write("\rstep: 1/9 loss: 1\rstep: 2/9 loss: 1\rstep: 3/9 lo")
    assert watched.read().step == 3
    assert [step for _, _, step in watched.recorded()] == [1, 2]
    watched.write("ss: 1\n")
    watched.read()
    assert [step for _, _, step in watched.recorded()] == [1, 2, 3]


async def test_a_last_line_without_an_end_counts_once_its_worker_has_ended(watched: Watched):
    await watched.begin()
    watched.write("step: 8/9 loss: 1\nstep: 9/9 loss: 1")
    assert watched.read().step == 8
    watched.local.pods["mnist-worker-0"].change(phase=PodPhase.SUCCEEDED)
    assert watched.read().step == 9
    assert [step for _, _, step in watched.recorded()] == [8, 9]


async def test_a_record_that_cannot_be_written_does_not_stop_the_job(watched: Watched):
    (watched.local.folder.path / NAME).unlink()
    (watched.local.folder.path / NAME).mkdir()
    await watched.begin()
    watched.write("step: 1/9 loss: 1\n")
    assert watched.read().step == 1


async def test_an_engine_that_resumes_a_job_does_not_record_the_last_attempt_again(watched: Watched):
    await watched.begin()
    watched.write("step: 1/9 loss: 1\n")
    watched.read()
    resumed = LogReader(watched.local, lambda: NOON, lambda: 0.0)
    assert resumed.read()
    watched.change_status(attempt=2)
    watched.write("step: 2/9 loss: 1\n", attempt=2)
    assert resumed.read()
    assert watched.recorded() == [(1, NOON, 1), (2, NOON, 2)]
