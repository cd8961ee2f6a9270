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
from paddlejob.engine.backend import Key
from paddlejob.local import controller as under_test
from paddlejob.local.backend import LocalBackend
from paddlejob.local.controller import JobController
from paddlejob.local.kubelet import Kubelet
from paddlejob.local.machine.resources import Machine
from paddlejob.local.objects import JobObjects
from paddlejob.local.options import RunOptions
from paddlejob.local.runtime.pod_runtime import PodRuntime
from paddlejob.local.scheduler import Scheduler
from paddlejob.local.state.changes import change_spec, mark_for_deletion
from paddlejob.local.state.store import JobFolder, Store
from paddlejob.plan import PodPhase
from tests.support.builders import document, template
from tests.support.scripted_supervisor import ScriptedSupervisor

MACHINE = Machine("laptop", cpus=4, memory=8 << 30)


class Job:
    """A job of one worker, and the supervisor of its container."""

    def __init__(self, engine: Engine, folder: JobFolder) -> None:
        self.key, self.folder, self.engine = folder.key, folder, engine
        self.objects = JobObjects(folder, partial(engine.controller.queue.add, folder.key))
        self.supervisor = ScriptedSupervisor()
        runtime = PodRuntime(folder, engine.store, isolated=True)
        self.kubelet = Kubelet(self.objects, runtime, self.supervisor, time.time, engine.scheduler.unbind)

    @property
    def job(self) -> PaddleJob:
        found = self.folder.job()
        assert found is not None
        return found

    def report(self, **report: Any) -> None:
        (pod,) = self.objects.pods.values()
        self.kubelet.on_report(pod, "paddle", report)

    async def run(self) -> None:
        await until(lambda: "start paddle" in self.supervisor.requests)
        self.report(started=1)
        await until(lambda: self.job.status.phase is Phase.RUNNING)

    async def end(self, code: int = 0) -> None:
        self.report(ended=code, oom=False)
        self.report(gone=True)


class Engine:
    def __init__(self, root: Path) -> None:
        self.store = Store(root)
        self.backend = LocalBackend()
        self.scheduler = Scheduler(self.store, MACHINE)
        self.deleted: list[Key] = []
        self.now: float | None = None
        self.controller = JobController(self.backend, self.scheduler, self.clock, self.deleted.append)
        self._locks: list[Any] = []
        self.running: asyncio.Task[None] | None = None

    def clock(self) -> float:
        return time.time() if self.now is None else self.now

    def job(self, name: str, cpu: int = 1, **spec: Any) -> Job:
        limited = template(command=["train"], resources={"limits": {"cpu": cpu}})
        made = document(name, workers=1, worker_={"template": limited}, **spec)
        folder, lock = self.store.begin(made, RunOptions(), time.time())
        self._locks.append(lock)
        job = Job(self, folder)
        self.controller.add(folder.key, job.kubelet)
        return job

    async def close(self) -> None:
        self.controller.queue.stop()
        if self.running:
            await self.running
        for kubelet in self.backend.kubelets.values():
            kubelet.objects.allocation.clear()
        self.scheduler.close()
        for lock in self._locks:
            lock.release()


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


async def idle(engine: Engine, job: Job) -> None:
    await asyncio.wait_for(engine.controller.wait_until_idle(job.key), 30)


async def test_a_job_is_planned_bound_started_and_at_its_end_gives_back_what_it_held(engine: Engine):
    job = engine.job("mnist")
    await job.run()
    (pod,) = job.objects.pods.values()
    assert (pod.seen.node, pod.seen.phase) == ("laptop", PodPhase.RUNNING)
    assert job.objects.allocation.port is not None
    assert job.job.status.worker is not None
    assert not engine.controller.is_idle(job.key)
    await job.end()
    await idle(engine, job)
    assert job.job.status.phase is Phase.COMPLETED
    assert job.objects.allocation.port is None
    assert not (job.folder.path / "claim.json").exists()
    assert [record.state for record in job.folder.pods()] == ["Succeeded"]


async def test_a_job_is_not_idle_while_a_process_of_it_lives(engine: Engine):
    job = engine.job("mnist")
    await job.run()
    job.report(ended=0, oom=False)
    await until(lambda: job.job.status.phase is Phase.COMPLETED)
    await asyncio.sleep(0.1)
    assert not engine.controller.is_idle(job.key)
    assert job.objects.allocation.port is not None
    job.report(gone=True)
    await idle(engine, job)


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
    await until(lambda: "terminate paddle" in job.supervisor.requests)
    await job.end(143)
    await idle(engine, job)
    assert job.job.status.phase is Phase.SUSPENDED
    assert job.objects.allocation.port is None
    job.supervisor.take()
    change_spec(job.folder, suspend=False)
    engine.controller.queue.add(job.key)
    await job.run()
    assert not engine.controller.is_idle(job.key)


async def test_a_waiting_job_is_bound_as_soon_as_another_gives_its_resources_back(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(under_test, "RESCHEDULE_EVERY", 3600.0)
    first = engine.job("first", cpu=4)
    await first.run()
    second = engine.job("second", cpu=4)
    await until(lambda: [pod.seen.reason for pod in second.objects.pods.values()] == ["Unschedulable"])
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
    await until(lambda: [pod.seen.reason for pod in waiting.objects.pods.values()] == ["Unschedulable"])
    await holder.end()
    await waiting.run()
    await other.close()


async def test_the_planner_is_asked_again_when_it_wanted_to_be(engine: Engine):
    """Nothing changes but the clock, which stands still until the job runs."""
    engine.now = time.time()
    job = engine.job("mnist", activeDeadlineSeconds=1)
    await job.run()
    engine.now += 1
    await until(lambda: "terminate paddle" in job.supervisor.requests)


async def test_a_deleted_job_leaves_nothing_once_its_last_process_is_gone(engine: Engine):
    job = engine.job("mnist")
    await job.run()
    mark_for_deletion(job.folder, time.time())
    engine.controller.queue.add(job.key)
    await until(lambda: "terminate paddle" in job.supervisor.requests)
    await asyncio.sleep(0.1)
    assert job.folder.path.exists()
    assert engine.deleted == []
    await job.end(143)
    await idle(engine, job)
    assert engine.deleted == [job.key]
    assert job.key not in engine.backend.kubelets
    assert not job.folder.path.exists()
    assert job.objects.allocation.port is None


async def test_a_job_whose_folder_was_removed_ends_as_well(engine: Engine):
    job = engine.job("mnist")
    await job.run()
    job.folder.remove()
    engine.controller.queue.add(job.key)
    await until(lambda: "terminate paddle" in job.supervisor.requests)
    await job.end(143)
    await idle(engine, job)
    assert engine.deleted == [job.key]


async def test_a_turn_of_a_job_that_is_gone_does_nothing(engine: Engine):
    job = engine.job("mnist")
    await job.run()
    del engine.backend.kubelets[job.key]
    job.supervisor.take()
    engine.controller.queue.add(job.key)
    await until(lambda: engine.controller.queue.depth == 0)
    await asyncio.sleep(0.05)
    assert engine.deleted == []
    engine.backend.kubelets[job.key] = job.kubelet


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
    assert not engine.controller.is_abandoned(job.key)
    broken.error = None
    await job.run()


async def test_errors_that_last_fail_the_job_alone(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    engine.now = time.time()
    broken = Broken(engine, monkeypatch, KeyError("cpu"))
    job = engine.job("mnist")
    await until(lambda: broken.calls > under_test.MOST_FAILURES)
    assert not engine.controller.is_abandoned(job.key), "many errors in no time may still pass"
    engine.now += under_test.FAILING_SECONDS
    await idle(engine, job)
    assert engine.controller.is_abandoned(job.key)
    assert (job.job.status.phase, job.job.status.reason) == (Phase.FAILED, "EngineError")
    assert job.objects.allocation.port is None
    broken.error = None
    await engine.job("other").run()


async def test_few_errors_over_a_long_time_do_not_fail_a_job(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    engine.now = time.time()
    broken = Broken(engine, monkeypatch, KeyError("cpu"))
    job = engine.job("mnist")
    await until(lambda: broken.calls == 1)
    engine.now += 1000
    await until(lambda: broken.calls == 3)
    assert not engine.controller.is_abandoned(job.key)


async def test_errors_before_a_turn_that_succeeded_do_not_count(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(under_test, "MOST_FAILURES", 2)
    monkeypatch.setattr(under_test, "FAILING_SECONDS", 0.0)
    broken = Broken(engine, monkeypatch, KeyError("cpu"))
    first = engine.job("first", cpu=4)
    await until(lambda: broken.calls == 1)
    broken.error = None
    await first.run()
    broken.error = KeyError("cpu")
    first.objects.update(next(iter(first.objects.pods.values())), address="")
    await until(lambda: broken.calls >= 3)
    broken.error = None
    first.objects.update(next(iter(first.objects.pods.values())), address="127.64.0.1")
    assert not engine.controller.is_abandoned(first.key)


async def test_a_full_disk_never_fails_a_job(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(under_test, "MOST_FAILURES", 1)
    monkeypatch.setattr(under_test, "FAILING_SECONDS", 0.0)
    broken = Broken(engine, monkeypatch, OSError(errno.ENOSPC, "No space left on device"))
    job = engine.job("mnist")
    await until(lambda: broken.calls >= 3)
    assert not engine.controller.is_abandoned(job.key)
    assert job.job.status.phase is not Phase.FAILED


async def test_an_abandoned_job_ends_its_processes_before_it_is_idle(engine: Engine):
    job = engine.job("mnist")
    await job.run()
    engine.controller.abandon(job.key, KeyError("x"))
    assert "terminate paddle" in job.supervisor.requests
    await asyncio.sleep(0.1)
    assert not engine.controller.is_idle(job.key)
    await job.end(143)
    await idle(engine, job)
    assert job.job.status.phase is Phase.FAILED
    assert job.objects.allocation.port is None
    assert [record.removed for record in job.folder.pods()] == [True]


async def test_processes_that_cannot_be_ended_in_order_are_killed(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    job = engine.job("mnist")
    await job.run()

    def broken() -> None:
        raise KeyError("containers")

    monkeypatch.setattr(job.kubelet, "delete_all", broken)
    engine.controller.abandon(job.key, KeyError("x"))
    assert job.supervisor.requests[-1] == "kill paddle"
    await job.end(137)
    await idle(engine, job)
