"""The process that runs jobs for a command: it ends with its jobs, and they end with the command."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from paddlejob.api.types import Phase
from paddlejob.local import runner
from paddlejob.local.options import RunOptions
from paddlejob.local.sandbox.proc import descendants
from paddlejob.local.state.changes import change_spec
from paddlejob.local.state.store import JobFolder, Store
from tests.support.processes import is_alive
from tests.support.tiny_jobs import FOREVER, MACHINE, status, tiny_job, until


class Commands:
    """A runner in this process, and the pipe through which a command controls it."""

    def __init__(self, root: Path, **jobs: list[str]) -> None:
        self.store = Store(root)
        self.held = [
            self.store.begin(tiny_job(name, command), RunOptions(), time.time()) for name, command in jobs.items()
        ]
        self.reading, self.writing = os.pipe()

    async def run(self, commands: int | None = None) -> None:
        given = self.reading if commands is None else commands
        await asyncio.wait_for(runner._run_jobs(self.store, self.held, given, MACHINE), 60)

    def folder(self, name: str) -> JobFolder:
        return self.store.folder(("default", name))

    async def running(self, name: str) -> None:
        await until(lambda: status(self.folder(name)).phase is Phase.RUNNING)

    def messages(self, name: str) -> str:
        return "\n".join(one["message"] for one in self.folder(name).events())


async def test_a_runner_ends_with_the_last_of_its_jobs_and_gives_them_up(tmp_path: Path):
    commands = Commands(tmp_path, one=["true"], two=["true"])
    await commands.run()
    for name in ("one", "two"):
        assert status(commands.folder(name)).phase is Phase.COMPLETED
        assert not commands.folder(name).has_runner


async def test_a_command_interrupts_its_runner_which_suspends_the_jobs(tmp_path: Path):
    commands = Commands(tmp_path, mnist=FOREVER)
    run = asyncio.create_task(commands.run())
    await commands.running("mnist")
    runner.AttachedRunner(0, commands.writing).interrupt()
    await run
    assert status(commands.folder("mnist")).phase is Phase.SUSPENDED
    assert "pdj run was interrupted" in commands.messages("mnist")


async def test_a_runner_notices_that_its_command_was_killed(tmp_path: Path):
    commands = Commands(tmp_path, mnist=FOREVER)
    run = asyncio.create_task(commands.run())
    await commands.running("mnist")
    os.close(commands.writing)
    await run
    assert status(commands.folder("mnist")).phase is Phase.SUSPENDED
    assert "pdj run was killed" in commands.messages("mnist")


async def test_a_command_kills_everything_at_once(tmp_path: Path):
    commands = Commands(tmp_path, mnist=FOREVER)
    run = asyncio.create_task(commands.run())
    await commands.running("mnist")
    (record,) = commands.folder("mnist").pods() or [None]
    runner.AttachedRunner(0, commands.writing).kill()
    await run
    assert status(commands.folder("mnist")).phase is Phase.RUNNING, "there was no time to suspend it"
    assert record is None or not is_alive(record.pid or -1)


async def test_a_detached_runner_suspends_its_jobs_on_a_signal(tmp_path: Path):
    commands = Commands(tmp_path, mnist=FOREVER)
    run = asyncio.create_task(commands.run(-1))
    await commands.running("mnist")
    os.kill(os.getpid(), signal.SIGHUP)
    await run
    assert status(commands.folder("mnist")).phase is Phase.SUSPENDED
    assert "received SIGHUP" in commands.messages("mnist")


async def test_a_job_whose_files_cannot_be_used_fails_and_the_others_run(tmp_path: Path):
    commands = Commands(tmp_path, bad=["true"], good=["true"])
    (commands.folder("bad").path / "run.json").write_text('{"unknown": 1}')
    await commands.run()
    assert status(commands.folder("bad")).phase is Phase.FAILED
    assert "run.json is damaged" in status(commands.folder("bad")).message
    assert not commands.folder("bad").has_runner
    assert status(commands.folder("good")).phase is Phase.COMPLETED


async def test_only_a_runner_with_a_command_keeps_finished_jobs(tmp_path: Path):
    commands = Commands(tmp_path, mnist=["true"])
    change_spec(commands.folder("mnist"), ttlSecondsAfterFinished=0)
    await commands.run()
    assert commands.folder("mnist").path.exists()


def ended(attached: runner.AttachedRunner) -> None:
    ends = time.monotonic() + 30
    while attached.alive:
        assert time.monotonic() < ends, "the runner does not end"
        time.sleep(0.01)


def test_an_attached_runner_is_a_process_of_its_own_that_holds_the_locks_of_its_jobs(tmp_path: Path):
    commands = Commands(tmp_path, mnist=FOREVER)
    attached = runner.start_attached(commands.store, commands.held, MACHINE)
    folder = commands.folder("mnist")
    asyncio.run(commands.running("mnist"))
    assert attached.pid != os.getpid()
    assert os.getsid(attached.pid) == attached.pid, "a signal to the command's group does not reach it"
    assert folder.has_runner
    assert attached.alive
    attached.interrupt()
    ended(attached)
    assert not folder.has_runner
    assert status(folder).phase is Phase.SUSPENDED
    attached.kill()
    assert not attached.alive, "and asking again does no harm"


def test_a_killed_attached_runner_leaves_no_process(tmp_path: Path):
    commands = Commands(tmp_path, mnist=FOREVER)
    attached = runner.start_attached(commands.store, commands.held, MACHINE)
    asyncio.run(commands.running("mnist"))
    attached.kill()
    ended(attached)
    asyncio.run(until(lambda: not any(one.pid and is_alive(one.pid) for one in commands.folder("mnist").pods())))


def test_a_detached_runner_is_no_child_of_the_command(tmp_path: Path):
    commands = Commands(tmp_path, mnist=["true"])
    before = set(descendants(os.getpid()))
    runner.start_detached(commands.store, commands.held, MACHINE)
    assert set(descendants(os.getpid())) <= before
    asyncio.run(until(lambda: status(commands.folder("mnist")).phase is Phase.COMPLETED))
    asyncio.run(until(lambda: not commands.folder("mnist").has_runner))


def test_a_runner_that_fails_writes_why_to_its_log_and_to_its_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def broken(*_: object) -> None:
        print("before")
        raise KeyError("machine")

    monkeypatch.setattr(runner, "run_jobs", broken)
    commands = Commands(tmp_path, one=["true"], two=["true"])
    with capsys.disabled():
        attached = runner.start_attached(commands.store, commands.held, MACHINE)
    ended(attached)
    log = (commands.folder("one").path / "engine.log").read_text()
    assert log.startswith("before\nthe engine ends:")
    assert "KeyError: 'machine'" in log
    for name in ("one", "two"):
        assert "KeyError: 'machine'" in status(commands.folder(name)).message
        assert not commands.folder(name).has_runner
