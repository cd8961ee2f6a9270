"""Runners as processes: what they inherit from the command that starts them, and what they do not."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from paddlejob.api.types import Phase
from paddlejob.local import runner
from paddlejob.local.options import RunOptions
from paddlejob.local.state.store import JobFolder, Store
from paddlejob.locks import ProcessLock
from tests.support.tiny_jobs import FOREVER, MACHINE, status, tiny_job, until

Held = list[tuple[JobFolder, ProcessLock]]


def begun(root: Path, *names: str, command: list[str] = FOREVER) -> tuple[Store, Held]:
    store = Store(root)
    return store, [store.begin(tiny_job(name, command), RunOptions(), time.time()) for name in names]


def wait(condition: Callable[[], bool]) -> None:
    asyncio.run(until(condition))


def reached(folder: JobFolder, phase: Phase) -> None:
    wait(lambda: status(folder).phase is phase)


def descriptors(pid: int) -> dict[int, str]:
    """The targets of a process's open files."""
    return {int(one.name): str(one.readlink()) for one in Path(f"/proc/{pid}/fd").iterdir()}


def test_a_spawned_runner_has_the_locks_of_its_jobs_and_obeys_the_command(tmp_path: Path):
    store, held = begun(tmp_path, "one", "two")
    attached = runner.start_spawned(store, held)
    folders = [folder for folder, _ in held]
    for folder in folders:
        reached(folder, Phase.RUNNING)
        assert folder.has_runner
    assert [lock.descriptor for _, lock in held] == [-1, -1], "the command gave the locks up"
    assert os.getsid(attached.pid) == attached.pid
    assert attached.alive
    attached.interrupt()
    wait(lambda: not attached.alive)
    for folder in folders:
        assert status(folder).phase is Phase.SUSPENDED
        assert not folder.has_runner


def test_a_spawned_runner_ends_its_jobs_when_the_command_has_ended(tmp_path: Path):
    store, held = begun(tmp_path, "mnist")
    attached = runner.start_spawned(store, held)
    reached(held[0][0], Phase.RUNNING)
    os.close(attached._pipe)
    wait(lambda: not attached.alive)
    assert status(held[0][0]).phase is Phase.SUSPENDED


@pytest.mark.parametrize("start", [runner.start_attached, lambda store, held, _: runner.start_spawned(store, held)])
def test_a_runner_reads_nothing_and_writes_to_the_log_of_its_first_job(
    tmp_path: Path, start: Callable[..., runner.AttachedRunner]
):
    store, held = begun(tmp_path, "mnist")
    attached = start(store, held, MACHINE)
    reached(held[0][0], Phase.RUNNING)
    files, log = descriptors(attached.pid), str(held[0][0].path / "engine.log")
    attached.kill()
    wait(lambda: not attached.alive)
    assert (files[0], files[1], files[2]) == ("/dev/null", log, log)


def test_no_file_of_a_spawned_runner_is_inherited_by_what_it_starts(tmp_path: Path):
    store, held = begun(tmp_path, "mnist")
    attached = runner.start_spawned(store, held)
    reached(held[0][0], Phase.RUNNING)
    inherited = [one.name for one in Path(f"/proc/{attached.pid}/fdinfo").iterdir() if not closes_on_exec(one)]
    attached.kill()
    wait(lambda: not attached.alive)
    assert sorted(inherited) == ["0", "1", "2"]


def closes_on_exec(descriptor: Path) -> bool:
    (flags,) = re.findall(r"^flags:\s+(\d+)$", descriptor.read_text(), re.MULTILINE)
    return bool(int(flags, 8) & os.O_CLOEXEC)


def test_an_attached_runner_ends_its_jobs_when_the_command_has_ended(tmp_path: Path):
    store, held = begun(tmp_path, "mnist")
    attached = runner.start_attached(store, held, MACHINE)
    reached(held[0][0], Phase.RUNNING)
    os.close(attached._pipe)
    wait(lambda: not attached.alive)
    assert status(held[0][0]).phase is Phase.SUSPENDED
    assert any("pdj run was killed" in one["message"] for one in held[0][0].events())


def test_the_command_keeps_no_lock_of_a_job_that_a_runner_has(tmp_path: Path):
    store, held = begun(tmp_path, "one", "two", command=["true"])
    runner.start_detached(store, held, MACHINE)
    for folder, _ in held:
        reached(folder, Phase.COMPLETED)
        wait(lambda folder=folder: not folder.has_runner)


def runner_of(folder: JobFolder) -> int:
    """The process that writes to the log of the job's engine, found as a detached runner is no child of this one."""
    log = str(folder.path / "engine.log")
    for process in (one for one in Path("/proc").iterdir() if one.name.isdigit()):
        with suppress(OSError):
            if descriptors(int(process.name)).get(1) == log:
                return int(process.name)
    return 0


def signals(pid: int, kind: str) -> set[int]:
    """The numbers of the signals that a process ignores (SigIgn) or handles (SigCgt)."""
    (mask,) = re.findall(rf"^{kind}:\s+(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return {number for number in range(1, 65) if int(mask, 16) >> (number - 1) & 1}


def test_a_detached_runner_has_a_session_of_its_own_and_ends_its_job_on_a_signal(tmp_path: Path):
    store, held = begun(tmp_path, "mnist")
    folder = held[0][0]
    runner.start_detached(store, held, MACHINE)
    reached(folder, Phase.RUNNING)
    pid = runner_of(folder)
    assert pid, "it writes to the log of its job"
    assert os.getsid(pid) not in (0, os.getsid(0))
    assert {signal.SIGTERM, signal.SIGHUP} <= signals(pid, "SigCgt")
    os.kill(pid, signal.SIGTERM)
    wait(lambda: not folder.has_runner)
    assert status(folder).phase is Phase.SUSPENDED


def test_a_signal_that_nohup_ignores_stays_ignored(tmp_path: Path):
    store, held = begun(tmp_path, "mnist")
    folder = held[0][0]
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        attached = runner.start_attached(store, held, MACHINE)
    finally:
        signal.signal(signal.SIGHUP, before)
    reached(folder, Phase.RUNNING)
    assert signal.SIGHUP in signals(attached.pid, "SigIgn")
    assert signal.SIGTERM in signals(attached.pid, "SigCgt")
    attached.interrupt()
    wait(lambda: not attached.alive)


def test_the_exit_status_of_a_runner_says_whether_its_engine_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store, held = begun(tmp_path, "mnist", command=["true"])
    attached = runner.start_attached(store, held, MACHINE)
    assert os.waitstatus_to_exitcode(os.waitpid(attached.pid, 0)[1]) == 0
    monkeypatch.setattr(runner, "run_jobs", lambda *_: 1 / 0)
    store, held = begun(tmp_path, "mnist", command=["true"])
    attached = runner.start_attached(store, held, MACHINE)
    assert os.waitstatus_to_exitcode(os.waitpid(attached.pid, 0)[1]) == 1
    assert not attached.alive
