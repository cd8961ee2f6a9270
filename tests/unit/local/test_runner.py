"""The process that runs jobs for a command: it ends with its jobs, and they end with the command."""

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
from paddlejob.local.runner import AttachedRunner
from paddlejob.local.sandbox.proc import descendants
from paddlejob.local.state.changes import change_spec
from paddlejob.local.state.store import JobFolder, JobStore
from tests.support.processes import is_alive
from tests.support.tiny_jobs import FOREVER, MACHINE, status, tiny_job, until


class Commands:
    """A runner in this process, and the pipe through which a command controls it."""

    def __init__(self, root: Path, **jobs: list[str]) -> None:
        self.store = JobStore(root)
        self.held = [
            self.store.begin(tiny_job(name, command), RunOptions(), time.time()) for name, command in jobs.items()
        ]
        self.folders = [folder for folder, _ in self.held]
        self.reading, self.writing = os.pipe()

    async def run(self, commands: int | None = None) -> None:
        given = self.reading if commands is None else commands
        await asyncio.wait_for(runner.run_until_idle(self.store, self.held, given, MACHINE), 60)

    async def running(self) -> None:
        for folder in self.folders:
            await until(lambda folder=folder: status(folder).phase is Phase.RUNNING)

    def phases(self) -> list[Phase | None]:
        return [status(folder).phase for folder in self.folders]


def wait(condition: Callable[[], object]) -> None:
    asyncio.run(until(condition))


async def test_a_runner_ends_with_the_last_of_its_jobs_and_gives_them_up(tmp_path: Path):
    commands = Commands(tmp_path, one=["true"], two=["true"])
    await commands.run()
    assert commands.phases() == [Phase.COMPLETED] * 2
    assert not any(folder.has_runner for folder in commands.folders)


@pytest.mark.parametrize(
    ("end", "commands_from", "message"),
    [
        (lambda pipe: AttachedRunner(0, pipe).interrupt(), None, "pdj run was interrupted; continue the job with"),
        (os.close, None, "pdj run was killed, and the processes of the job ended"),
        (lambda _: os.kill(os.getpid(), signal.SIGHUP), -1, "the engine of the job received SIGHUP"),
    ],
)
async def test_jobs_are_suspended_when_their_command_is_interrupted_or_ends(
    tmp_path: Path, end: Callable[[int], None], commands_from: int | None, message: str
):
    commands = Commands(tmp_path, mnist=FOREVER)
    run = asyncio.create_task(commands.run(commands_from))
    await commands.running()
    end(commands.writing)
    await run
    assert commands.phases() == [Phase.SUSPENDED]
    assert any(one["message"].startswith(message) for one in commands.folders[0].events())


async def test_a_command_kills_everything_at_once(tmp_path: Path):
    commands = Commands(tmp_path, mnist=FOREVER)
    run = asyncio.create_task(commands.run())
    await commands.running()
    (record,) = commands.folders[0].pods() or [None]
    AttachedRunner(0, commands.writing).kill()
    await run
    assert commands.phases() == [Phase.RUNNING], "there was no time to suspend it"
    assert record is None or not is_alive(record.pid or -1)


async def test_a_job_whose_files_cannot_be_used_fails_and_the_others_run(tmp_path: Path):
    commands = Commands(tmp_path, bad=["true"], good=["true"])
    (commands.folders[0].path / "run.json").write_text('{"unknown": 1}')
    await commands.run()
    assert commands.phases() == [Phase.FAILED, Phase.COMPLETED]
    assert "run.json is damaged" in status(commands.folders[0]).message
    assert not commands.folders[0].has_runner


async def test_only_a_runner_with_a_command_keeps_finished_jobs(tmp_path: Path):
    commands = Commands(tmp_path, mnist=["true"])
    change_spec(commands.folders[0], ttlSecondsAfterFinished=0)
    await commands.run()
    assert commands.folders[0].path.exists()


Start = Callable[[Commands], AttachedRunner]
both_ways = pytest.mark.parametrize(
    "start",
    [
        pytest.param(lambda given: runner.start_attached(given.store, given.held, MACHINE), id="forked"),
        pytest.param(lambda given: runner.start_spawned(given.store, given.held), id="spawned"),
    ],
)


def descriptors(pid: int) -> dict[int, str]:
    """The targets of a process's open files."""
    return {int(one.name): str(one.readlink()) for one in Path(f"/proc/{pid}/fd").iterdir()}


def closes_on_exec(descriptor: Path) -> bool:
    (flags,) = re.findall(r"^flags:\s+(\d+)$", descriptor.read_text(), re.MULTILINE)
    return bool(int(flags, 8) & os.O_CLOEXEC)


@both_ways
def test_an_attached_runner_is_a_process_of_its_own_that_holds_the_locks_of_its_jobs(tmp_path: Path, start: Start):
    commands = Commands(tmp_path, one=FOREVER, two=FOREVER)
    attached = start(commands)
    assert [lock.descriptor for _, lock in commands.held] == [-1, -1], "the command gave the locks up"
    asyncio.run(commands.running())
    assert os.getsid(attached.pid) == attached.pid != os.getpid(), "signals to the command's group do not reach it"
    assert attached.alive and all(folder.has_runner for folder in commands.folders)
    files, log = descriptors(attached.pid), str(commands.folders[0].path / "engine.log")
    assert (files[0], files[1], files[2]) == ("/dev/null", log, log), "it reads nothing and writes to its log"
    attached.interrupt()
    wait(lambda: not attached.alive)
    assert not any(folder.has_runner for folder in commands.folders)
    assert commands.phases() == [Phase.SUSPENDED] * 2
    attached.kill()
    assert not attached.alive, "and asking again does no harm"


@both_ways
def test_an_attached_runner_ends_its_jobs_when_the_command_has_ended(tmp_path: Path, start: Start):
    commands = Commands(tmp_path, mnist=FOREVER)
    attached = start(commands)
    asyncio.run(commands.running())
    os.close(attached.pipe)
    attached.pipe = -1
    wait(lambda: not attached.alive)
    assert commands.phases() == [Phase.SUSPENDED]
    assert any("pdj run was killed" in one["message"] for one in commands.folders[0].events())


def test_no_file_of_a_spawned_runner_is_inherited_by_what_it_starts(tmp_path: Path):
    commands = Commands(tmp_path, mnist=FOREVER)
    attached = runner.start_spawned(commands.store, commands.held)
    asyncio.run(commands.running())
    inherited = [one.name for one in Path(f"/proc/{attached.pid}/fdinfo").iterdir() if not closes_on_exec(one)]
    attached.kill()
    wait(lambda: not attached.alive)
    assert sorted(inherited) == ["0", "1", "2"]


def test_runs_of_a_notebook_leave_no_descriptor_open(tmp_path: Path):
    before = len([*Path("/proc/self/fd").iterdir()])
    for name in ("one", "two"):
        commands = Commands(tmp_path / name, job=["true"])
        attached = runner.start_spawned(commands.store, commands.held)
        wait(lambda attached=attached: not attached.alive)
        os.close(commands.reading)
        os.close(commands.writing)
    assert len([*Path("/proc/self/fd").iterdir()]) == before


def test_a_spawned_runner_imports_nothing_from_the_directory_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("signal", "asyncio", "json"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('a module of the program')")
    monkeypatch.chdir(tmp_path)
    commands = Commands(tmp_path / "state", mnist=["true"])
    attached = runner.start_spawned(commands.store, commands.held)
    wait(lambda: not attached.alive)
    assert commands.phases() == [Phase.COMPLETED]


def test_a_killed_attached_runner_leaves_no_process(tmp_path: Path):
    commands = Commands(tmp_path, mnist=FOREVER)
    attached = runner.start_attached(commands.store, commands.held, MACHINE)
    asyncio.run(commands.running())
    attached.kill()
    wait(lambda: not attached.alive)
    wait(lambda: not any(one.pid and is_alive(one.pid) for one in commands.folders[0].pods()))


def test_a_detached_runner_is_no_child_of_the_command_which_keeps_no_lock(tmp_path: Path):
    commands = Commands(tmp_path, one=["true"], two=["true"])
    before = set(descendants(os.getpid()))
    runner.start_detached(commands.store, commands.held, MACHINE)
    assert set(descendants(os.getpid())) <= before
    for folder in commands.folders:
        wait(lambda folder=folder: status(folder).phase is Phase.COMPLETED)
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
    commands = Commands(tmp_path, mnist=FOREVER)
    runner.start_detached(commands.store, commands.held, MACHINE)
    asyncio.run(commands.running())
    pid = runner_of(commands.folders[0])
    assert pid, "it writes to the log of its job"
    assert os.getsid(pid) not in (0, os.getsid(0))
    assert {signal.SIGTERM, signal.SIGHUP} <= signals(pid, "SigCgt")
    inherited = str(Path(f"/proc/self/fd/{commands.writing}").readlink())
    assert inherited not in descriptors(pid).values(), "or who reads that pipe would wait for as long as it trains"
    os.kill(pid, signal.SIGTERM)
    wait(lambda: not commands.folders[0].has_runner)
    assert commands.phases() == [Phase.SUSPENDED]


def test_a_signal_that_nohup_ignores_stays_ignored(tmp_path: Path):
    commands = Commands(tmp_path, mnist=FOREVER)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        attached = runner.start_attached(commands.store, commands.held, MACHINE)
    finally:
        signal.signal(signal.SIGHUP, before)
    asyncio.run(commands.running())
    assert signal.SIGHUP in signals(attached.pid, "SigIgn")
    assert signal.SIGTERM in signals(attached.pid, "SigCgt")
    attached.interrupt()
    wait(lambda: not attached.alive)


def exit_code(attached: AttachedRunner) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(attached.pid, 0)[1])


def test_a_runner_that_fails_says_why_in_its_log_in_its_jobs_and_by_its_exit_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def broken(*_: object) -> None:
        print("before")
        raise KeyError("machine")

    commands = Commands(tmp_path / "fine", mnist=["true"])
    assert exit_code(runner.start_attached(commands.store, commands.held, MACHINE)) == 0
    monkeypatch.setattr(runner, "run_jobs", broken)
    commands = Commands(tmp_path, one=["true"], two=["true"])
    with capsys.disabled():
        attached = runner.start_attached(commands.store, commands.held, MACHINE)
    assert exit_code(attached) == 1
    assert not attached.alive
    log = (commands.folders[0].path / "engine.log").read_text()
    assert log.startswith("before\nthe engine ends:")
    assert "KeyError: 'machine'" in log
    for folder in commands.folders:
        assert "KeyError: 'machine'" in status(folder).message
        assert not folder.has_runner
