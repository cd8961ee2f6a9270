"""The embedded engine, with a real supervisor and programs that take no time."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from paddlejob.api.types import Phase
from paddlejob.local import engine as under_test
from paddlejob.local.clock import steady_clock
from paddlejob.local.engine import LocalEngine
from paddlejob.local.kubelet import Kubelet
from paddlejob.local.options import RunOptions
from paddlejob.local.runtime.pod_worker import PodWorker
from paddlejob.local.runtime.processes import Processes, ProcessSpec
from paddlejob.local.state.changes import change_spec, mark_for_deletion
from paddlejob.local.state.leftovers import remove_leftovers
from paddlejob.local.state.store import JobStore
from paddlejob.plan import times
from tests.support.processes import is_alive, supervisor
from tests.support.tiny_jobs import FOREVER, MACHINE, idle, running, status, tiny_job, until


async def test_a_job_runs_to_its_end_and_is_then_given_up_for_others_to_run(tmp_path: Path):
    async with LocalEngine(JobStore(tmp_path), MACHINE) as engine:
        key = await engine.submit(tiny_job("mnist", ["true"]))
        folder = engine.store.folder(key)
        assert folder.has_runner
        assert not engine.release_inactive_jobs([key])
        await idle(engine, key)
        assert engine.status(key) == status(folder)
        assert status(folder).phase is Phase.COMPLETED
        assert engine.status(("default", "other")) is None
        assert engine.release_inactive_jobs([key])
        assert not folder.has_runner
        assert engine.release_inactive_jobs([key]), "once is enough"


async def test_closing_the_engine_ends_its_processes_and_frees_its_jobs(tmp_path: Path):
    async with LocalEngine(JobStore(tmp_path), MACHINE) as engine:
        key = await engine.submit(tiny_job("mnist", FOREVER))
        folder = await running(engine, key)
        await until(lambda: [one.pid for one in folder.pods() if one.pid])
        (record,) = folder.pods()
        assert is_alive(record.pid)
        allocation = engine.jobs[key].allocation
        assert allocation.port is not None
    assert not is_alive(record.pid)
    assert not folder.has_runner
    assert allocation.port is None
    assert not engine.lost.is_set(), "closing it is no loss"


async def test_interrupting_suspends_active_jobs_and_says_why(tmp_path: Path):
    async with LocalEngine(JobStore(tmp_path), MACHINE) as engine:
        done = await engine.submit(tiny_job("done", ["true"]))
        key = await engine.submit(tiny_job("mnist", FOREVER))
        await idle(engine, done)
        folder = await running(engine, key)
        engine.interrupt("pdj run was interrupted")
        await idle(engine, key)
        assert status(folder).phase is Phase.SUSPENDED
        (event,) = [one for one in folder.events() if one["reason"] == "Interrupted"]
        assert (event["message"], event["warning"]) == ("pdj run was interrupted", True)
        assert status(engine.store.folder(done)).phase is Phase.COMPLETED
        assert "Interrupted" not in [one["reason"] for one in engine.store.folder(done).events()]
        assert engine.release_inactive_jobs([done, key])


async def test_an_interruption_that_cannot_be_stored_ends_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with LocalEngine(JobStore(tmp_path), MACHINE) as engine:
        await running(engine, await engine.submit(tiny_job("mnist", FOREVER)))

        def full(*_: object, **__: object) -> None:
            raise OSError("No space left on device")

        monkeypatch.setattr(under_test, "change_spec", full)
        engine.interrupt("pdj run was interrupted")
        assert engine.lost.is_set()


async def test_changes_of_other_commands_are_noticed(tmp_path: Path):
    async with LocalEngine(JobStore(tmp_path), MACHINE) as engine:
        key = await engine.submit(tiny_job("mnist", FOREVER))
        folder = await running(engine, key)
        change_spec(JobStore(tmp_path).folder(key), suspend=True)
        await idle(engine, key)
        change_spec(folder, suspend=False)
        await running(engine, key)
        mark_for_deletion(folder, time.time())
        await until(lambda: not folder.path.exists())
        await idle(engine, key)
        assert engine.release_inactive_jobs([key]), "its lock went with it"


async def test_a_job_that_is_marked_for_deletion_is_not_given_up_before_it_is_gone(tmp_path: Path):
    async with LocalEngine(JobStore(tmp_path), MACHINE) as engine:
        key = await engine.submit(tiny_job("mnist", ["true"]))
        await idle(engine, key)
        folder = engine.store.folder(key)
        mark_for_deletion(folder, time.time())
        assert not engine.release_inactive_jobs([key])
        await until(lambda: not folder.path.exists())


@pytest.mark.parametrize("kept", [False, True])
async def test_a_finished_job_is_removed_after_its_time_unless_a_command_waits(tmp_path: Path, kept: bool):
    async with LocalEngine(JobStore(tmp_path), MACHINE) as engine:
        if kept:
            engine.keep_finished_jobs()
        key = await engine.submit(tiny_job("mnist", ["true"], ttlSecondsAfterFinished=0))
        await idle(engine, key)
        folder = engine.store.folder(key)
        if kept:
            await asyncio.sleep(0.3)
            assert folder.path.exists()
        else:
            await until(lambda: not folder.path.exists())


async def test_a_pod_over_its_memory_limit_is_killed(tmp_path: Path):
    hungry = ["python3", "-c", "x = b'x' * (200 << 20); import time; time.sleep(300)"]
    made = tiny_job("mnist", hungry, backoffLimit=0)
    made["spec"]["worker"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"memory": "64Mi"}}
    async with LocalEngine(JobStore(tmp_path), MACHINE) as engine:
        key = await engine.submit(made)
        await idle(engine, key)
        (record,) = engine.store.folder(key).pods()
        assert (record.reason, record.exit_code) == ("OOMKilled", 137)


async def test_a_clock_that_is_set_back_or_forward_while_the_engine_runs_changes_no_delay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    before = time.time()
    engine = LocalEngine(JobStore(tmp_path), MACHINE)
    for step in (-3600, 3600):
        monkeypatch.setattr(time, "time", lambda step=step: before + step)
        key = await engine.submit(tiny_job(f"mnist{step}", ["true"]))
        document = engine.store.folder(key).document()
        assert document is not None
        assert abs(times.parse(document["metadata"]["creationTimestamp"]) - before) < 60
        engine.jobs[key].release()
    assert abs(steady_clock()() - before - 3600) < 60, "a new engine begins with the time of day"


async def test_an_engine_without_its_supervisor_is_lost(tmp_path: Path):
    async with LocalEngine(JobStore(tmp_path), MACHINE) as engine:
        await running(engine, await engine.submit(tiny_job("mnist", FOREVER)))
        os.kill(supervisor(), signal.SIGKILL)
        await asyncio.wait_for(engine.lost.wait(), 30)


async def test_an_engine_that_lost_one_of_its_parts_ends_and_its_jobs_say_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def broken(*_: object) -> None:
        raise KeyError("memory")

    monkeypatch.setattr(Kubelet, "enforce_memory_limits", broken)
    async with LocalEngine(JobStore(tmp_path), MACHINE) as engine:
        key = await engine.submit(tiny_job("mnist", FOREVER))
        await asyncio.wait_for(engine.lost.wait(), 30)
        assert status(engine.store.folder(key)).reason == "EngineError"
        assert "KeyError: 'memory'" in status(engine.store.folder(key)).message


async def test_a_report_that_the_engine_cannot_take_fails_that_job_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with LocalEngine(JobStore(tmp_path), MACHINE) as engine:
        other = await engine.submit(tiny_job("other", FOREVER))
        await running(engine, other)
        key = await engine.submit(tiny_job("mnist", ["true"]))

        on_report = PodWorker.on_report

        def broken(worker: PodWorker, *report: Any) -> None:
            if worker.job.key == key:
                raise KeyError("pod")
            on_report(worker, *report)

        monkeypatch.setattr(PodWorker, "on_report", broken)
        await idle(engine, key)
        assert status(engine.store.folder(key)).phase is Phase.FAILED
        assert "KeyError: 'pod'" in status(engine.store.folder(key)).message
        assert status(engine.store.folder(other)).phase is Phase.RUNNING
        assert engine.release_inactive_jobs([key])
        assert not engine.release_inactive_jobs([key, other])


async def test_a_new_engine_removes_what_a_killed_one_left(tmp_path: Path):
    store = JobStore(tmp_path)
    folder, lock = store.begin(tiny_job("killed", ["true"]), RunOptions(), time.time())
    (folder.path / "pods" / "uid-1").mkdir(parents=True)
    remove_leftovers(store)
    assert (folder.path / "pods").exists(), "an engine runs it"
    lock.release()
    async with LocalEngine(store, MACHINE):
        await asyncio.sleep(0)
        assert not (folder.path / "pods").exists()
        assert folder.path.exists()
    assert not folder.has_runner


async def test_an_error_while_a_report_is_taken_is_passed_on(tmp_path: Path):
    errors: list[Exception] = []

    def broken(name: str, report: dict[str, Any]) -> None:
        raise KeyError(name)

    processes = Processes(lambda: None, errors.append)
    await processes.open(broken)
    made = {"env": {}, "cwd": "/", "log": str(tmp_path / "log"), "stage": str(tmp_path)}
    processes.start(ProcessSpec(mounts=[], id="pod/a", argv=["/bin/true"], **made))
    await until(lambda: errors)
    assert isinstance(errors[0], KeyError)
    await processes.close()
