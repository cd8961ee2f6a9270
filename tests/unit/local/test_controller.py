"""The controller of the embedded engine, with containers that a test plays: jobs run, wait, end, and leave nothing."""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from paddlejob.api.types import PaddleJob, Phase
from paddlejob.local import controller as under_test
from paddlejob.local.backend import LocalBackend
from paddlejob.local.controller import JobController
from paddlejob.local.job import JobRegistry, LocalJob
from paddlejob.local.kubelet import Kubelet
from paddlejob.local.log_watch import LogWatch
from paddlejob.local.machine.resources import Machine
from paddlejob.local.options import RunOptions
from paddlejob.local.scheduler import Scheduler
from paddlejob.local.state.changes import change_spec, mark_for_deletion
from paddlejob.local.state.store import JobFolder, JobStore
from paddlejob.locks import ProcessLock
from paddlejob.plan import PodPhase
from tests.support.builders import document, template
from tests.support.scripted_supervisor import ScriptedSupervisor

MACHINE = Machine("laptop", cpus=4, memory=8 << 30)


class Job:
    """A job of one worker, and the supervisor of its container."""

    def __init__(self, engine: Engine, folder: JobFolder, lock: ProcessLock) -> None:
        self.key, self.folder, self.engine = folder.key, folder, engine
        self.local = LocalJob(folder, lock, partial(engine.controller.queue.add, folder.key))

    @property
    def job(self) -> PaddleJob:
        found = self.folder.job()
        assert found is not None
        return found

    @property
    def requests(self) -> list[str]:
        """To the supervisor, about the pods that exist."""
        made = self.engine.supervisor.by_pod
        return [request for pod in self.local.pods.values() for request in made.get(pod.seen.uid, [])]

    def report(self, **report: Any) -> None:
        (pod,) = self.local.pods.values()
        self.engine.kubelet.on_report(f"{pod.seen.uid}/paddle", report)

    async def run(self) -> None:
        await until(lambda: "start paddle" in self.requests)
        self.report(started=1)
        await until(lambda: self.job.status.phase is Phase.RUNNING)

    async def end(self, code: int = 0) -> None:
        self.report(ended=code, oom=False)
        self.report(gone=True)


class Engine:
    def __init__(self, root: Path) -> None:
        self.store = JobStore(root)
        self.jobs = JobRegistry()
        self.scheduler = Scheduler(self.store, MACHINE)
        self.supervisor = ScriptedSupervisor(isolated=True)
        self.kubelet = Kubelet(self.store, self.supervisor, self.clock)
        self.now: float | None = None
        backend, logs = LocalBackend(self.jobs, self.kubelet, self.clock), LogWatch(self.jobs, self.clock)
        self.controller = JobController(self.jobs, backend, self.scheduler, self.kubelet, logs, self.clock)
        self.running: asyncio.Task[None] | None = None

    def clock(self) -> float:
        return time.time() if self.now is None else self.now

    def job(self, name: str, cpu: int = 1, **spec: Any) -> Job:
        limited = template(command=["train"], resources={"limits": {"cpu": cpu}})
        made = document(name, workers=1, worker_={"template": limited}, **spec)
        folder, lock = self.store.begin(made, RunOptions(), time.time())
        job = Job(self, folder, lock)
        self.jobs.add(job.local)
        self.controller.queue.add(folder.key)
        return job

    async def close(self) -> None:
        self.controller.queue.stop()
        if self.running:
            await self.running
        for job in self.jobs:
            job.allocation.clear()
            job.release()


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    made = Engine(tmp_path)
    made.running = asyncio.create_task(made.controller.run())
    yield made
    await made.close()


async def until(condition: Callable[[], object]) -> None:
    ends = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < ends, "it never came true"
        await asyncio.sleep(0.01)


async def idle(job: Job) -> None:
    await asyncio.wait_for(job.local.idle.wait(), 30)


async def test_a_job_is_planned_bound_started_and_at_its_end_gives_back_what_it_held(engine: Engine):
    job = engine.job("mnist")
    await job.run()
    (pod,) = job.local.pods.values()
    assert (pod.seen.node, pod.seen.phase) == ("laptop", PodPhase.RUNNING)
    assert job.local.allocation.port is not None
    assert job.job.status.worker is not None
    assert not job.local.idle.is_set()
    await job.end()
    await idle(job)
    assert job.job.status.phase is Phase.COMPLETED
    assert job.local.allocation.port is None
    assert not (job.folder.path / "claim.json").exists()
    assert [record.state for record in job.folder.pods()] == ["Succeeded"]


async def test_a_job_is_not_idle_while_a_process_of_it_lives(engine: Engine):
    job = engine.job("mnist")
    await job.run()
    job.report(ended=0, oom=False)
    await until(lambda: job.job.status.phase is Phase.COMPLETED)
    await asyncio.sleep(0.1)
    assert not job.local.idle.is_set()
    assert job.local.allocation.port is not None
    job.report(gone=True)
    await idle(job)


async def test_records_for_other_commands_are_written_while_the_job_runs(engine: Engine):
    job = engine.job("mnist")
    await job.run()
    engine.controller.queue.add(job.key)
    await until(lambda: [record.state for record in job.folder.pods()] == ["Running"])


async def test_a_suspended_job_is_idle_and_holds_nothing_until_it_is_resumed(engine: Engine):
    job = engine.job("mnist")
    await job.run()
    change_spec(job.folder, suspend=True)
    engine.controller.queue.add(job.key)
    await until(lambda: "terminate paddle" in job.requests)
    await job.end(143)
    await idle(job)
    assert job.job.status.phase is Phase.SUSPENDED
    assert job.local.allocation.port is None
    change_spec(job.folder, suspend=False)
    engine.controller.queue.add(job.key)
    await job.run()
    assert not job.local.idle.is_set()


async def test_a_waiting_job_is_bound_as_soon_as_another_gives_its_resources_back(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(under_test, "RESCHEDULE_EVERY", 3600.0)
    first = engine.job("first", cpu=4)
    await first.run()
    second = engine.job("second", cpu=4)
    await until(lambda: [pod.seen.reason for pod in second.local.pods.values()] == ["Unschedulable"])
    await until(lambda: engine.controller.queue.depth == 1)
    await first.end()
    await second.run()


async def test_a_waiting_job_notices_what_other_engines_give_back(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(under_test, "RESCHEDULE_EVERY", 0.05)
    other = Engine(engine.store.root)
    holder = other.job("holder", cpu=4)
    other.running = asyncio.create_task(other.controller.run())
    await holder.run()
    waiting = engine.job("waiting", cpu=4)
    await until(lambda: [pod.seen.reason for pod in waiting.local.pods.values()] == ["Unschedulable"])
    await holder.end()
    await waiting.run()
    await other.close()


async def test_the_planner_is_asked_again_when_it_wanted_to_be(engine: Engine):
    """Nothing changes but the clock, which stands still until the job runs."""
    engine.now = time.time()
    job = engine.job("mnist", activeDeadlineSeconds=1)
    await job.run()
    engine.now += 1
    await until(lambda: "terminate paddle" in job.requests)


async def test_a_deleted_job_leaves_nothing_once_its_last_process_is_gone(engine: Engine):
    job = engine.job("mnist")
    await job.run()
    mark_for_deletion(job.folder, time.time())
    engine.controller.queue.add(job.key)
    await until(lambda: "terminate paddle" in job.requests)
    await asyncio.sleep(0.1)
    assert job.folder.path.exists()
    await job.end(143)
    await idle(job)
    assert not job.folder.has_runner
    assert engine.jobs.get(job.key) is None
    assert not job.folder.path.exists()
    assert job.local.allocation.port is None


async def test_a_job_whose_folder_was_removed_ends_as_well(engine: Engine):
    job = engine.job("mnist")
    await job.run()
    job.folder.remove()
    engine.controller.queue.add(job.key)
    await until(lambda: "terminate paddle" in job.requests)
    await job.end(143)
    await idle(job)
    assert engine.jobs.get(job.key) is None


async def test_a_turn_of_a_job_that_is_gone_does_nothing(engine: Engine):
    job = engine.job("mnist")
    await job.run()
    engine.jobs.remove(job.local)
    before = list(job.requests)
    engine.controller.queue.add(job.key)
    await until(lambda: engine.controller.queue.depth == 0)
    await asyncio.sleep(0.05)
    assert job.requests == before
    job.local.allocation.clear()


class Broken:
    """A scheduler that raises."""

    def __init__(self, engine: Engine, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
        self.error: Exception | None = error
        self.calls = 0
        self._schedule = engine.scheduler.schedule
        monkeypatch.setattr(engine.scheduler, "schedule", self)

    def __call__(self, *arguments: Any, **options: Any) -> None:
        self.calls += 1
        if self.error:
            raise self.error
        self._schedule(*arguments, **options)


async def test_an_error_that_passes_is_on_the_job_meanwhile_and_does_not_end_it(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    broken = Broken(engine, monkeypatch, KeyError("cpu"))
    job = engine.job("mnist")
    await until(lambda: job.job.status.reason == "EngineError")
    assert "KeyError: 'cpu'" in job.job.status.message
    assert job.job.status.phase is not Phase.FAILED
    assert job.local.error is None
    broken.error = None
    await job.run()


async def test_errors_that_last_fail_the_job_alone(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    engine.now = time.time()
    broken = Broken(engine, monkeypatch, KeyError("cpu"))
    job = engine.job("mnist")
    await until(lambda: broken.calls > under_test.MOST_FAILURES)
    assert job.local.error is None, "many errors in no time may still pass"
    engine.now += under_test.FAILING_SECONDS
    await idle(job)
    assert job.local.error
    assert (job.job.status.phase, job.job.status.reason) == (Phase.FAILED, "EngineError")
    assert job.local.allocation.port is None
    broken.error = None
    await engine.job("other").run()


async def test_few_errors_over_a_long_time_do_not_fail_a_job(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    engine.now = time.time()
    broken = Broken(engine, monkeypatch, KeyError("cpu"))
    job = engine.job("mnist")
    await until(lambda: broken.calls == 1)
    engine.now += 1000
    await until(lambda: broken.calls == 3)
    assert job.local.error is None


async def test_errors_before_a_turn_that_succeeded_do_not_count(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(under_test, "MOST_FAILURES", 2)
    monkeypatch.setattr(under_test, "FAILING_SECONDS", 0.0)
    broken = Broken(engine, monkeypatch, KeyError("cpu"))
    first = engine.job("first", cpu=4)
    await until(lambda: broken.calls == 1)
    broken.error = None
    await first.run()
    broken.error = KeyError("cpu")
    first.local.update(next(iter(first.local.pods.values())), node="")
    await until(lambda: broken.calls >= 3)
    broken.error = None
    first.local.update(next(iter(first.local.pods.values())), node="laptop")
    assert first.local.error is None


async def test_a_full_disk_never_fails_a_job(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(under_test, "MOST_FAILURES", 1)
    monkeypatch.setattr(under_test, "FAILING_SECONDS", 0.0)
    broken = Broken(engine, monkeypatch, OSError(errno.ENOSPC, "No space left on device"))
    job = engine.job("mnist")
    await until(lambda: broken.calls >= 3)
    assert job.local.error is None
    assert job.job.status.phase is not Phase.FAILED


async def test_an_abandoned_job_ends_its_processes_before_it_is_idle(engine: Engine):
    job = engine.job("mnist")
    await job.run()
    job.local.abandon(KeyError("x"))
    await until(lambda: "terminate paddle" in job.requests)
    await asyncio.sleep(0.1)
    assert not job.local.idle.is_set()
    await job.end(143)
    await idle(job)
    assert job.job.status.phase is Phase.FAILED
    assert job.local.allocation.port is None
    assert [record.removed for record in job.folder.pods()] == [True]


async def test_processes_that_cannot_be_ended_in_order_are_killed(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    job = engine.job("mnist")
    await job.run()

    def broken(job: LocalJob) -> None:
        raise KeyError("containers")

    monkeypatch.setattr(engine.kubelet, "delete_all", broken)
    job.local.abandon(KeyError("x"))
    await until(lambda: job.requests[-1] == "kill paddle")
    await job.end(137)
    await idle(job)
