"""The process that runs jobs for a command. It lives while a job of its own is under way, and no longer.

Attached, it ends its jobs when the command goes away, however that happens; detached, it stays.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from paddlejob.engine.backend import Key
from paddlejob.local.engine import LocalEngine
from paddlejob.local.files import LifeLock
from paddlejob.local.machine.resources import Machine
from paddlejob.local.store import JobFolder, Store

INTERRUPT, END_AT_ONCE = b".", b"!"
A_MOMENT = 0.1
Held = list[tuple[JobFolder, LifeLock]]


@dataclass
class AttachedRunner:
    pid: int
    _line: int

    def interrupt(self) -> None:
        """The jobs are suspended, their processes asked to end."""
        self._say(INTERRUPT)

    def end_at_once(self) -> None:
        self._say(END_AT_ONCE)

    def _say(self, word: bytes) -> None:
        with suppress(BrokenPipeError):
            os.write(self._line, word)

    @property
    def alive(self) -> bool:
        try:
            return os.waitpid(self.pid, os.WNOHANG)[0] == 0
        except ChildProcessError:
            return False


def start_attached(store: Store, held: Held, machine: Machine | None = None) -> AttachedRunner:
    """Fork a host. It hears from us through a pipe, and that the pipe ends when we do."""
    back, line = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(line)
        _be_host(lambda: run_jobs(store, held, back, machine), held[0][0])
    os.close(back)
    for _, lock in held:
        lock.release()
    return AttachedRunner(pid, line)


def start_detached(store: Store, held: Held, machine: Machine | None = None) -> None:
    """Fork twice, so that the host has no parent that waits for it."""
    middle = os.fork()
    if middle == 0:
        os.setsid()
        if os.fork() != 0:
            os._exit(0)
        _be_host(lambda: run_jobs(store, held, -1, machine), held[0][0])
    os.waitpid(middle, 0)
    for _, lock in held:
        lock.release()


def _be_host(run: Callable[[], object], folder: JobFolder) -> None:
    code = 1
    try:
        if os.getsid(0) != os.getpid():
            os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        log = os.open(folder.path / "engine.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for descriptor, standard in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(descriptor, standard)
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        run()
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def run_jobs(store: Store, held: Held, line: int, machine: Machine | None) -> None:
    asyncio.run(_run_jobs(store, held, line, machine))


async def _run_jobs(store: Store, held: Held, line: int, machine: Machine | None) -> None:
    loop = asyncio.get_running_loop()
    now = asyncio.Event()
    async with LocalEngine(store, machine) as engine:
        for folder, lock in held:
            engine.adopt(folder, lock)
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, engine.interrupt, f"its engine got {signal.Signals(number).name}")
        if line >= 0:
            engine.keep_ended_jobs()
            loop.add_reader(line, _hear_command, line, engine, now)
        keys = [folder.key for folder, _ in held]
        ends = (_all_rest(engine, keys), now.wait(), engine.lost.wait())
        waits: list[asyncio.Task[object]] = [asyncio.create_task(end) for end in ends]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()


def _hear_command(line: int, engine: LocalEngine, now: asyncio.Event) -> None:
    said = os.read(line, 16)
    if END_AT_ONCE in said:
        now.set()
    elif said:
        engine.interrupt("pdj run was interrupted; `pdj resume` lets the job go on")
    else:
        asyncio.get_running_loop().remove_reader(line)
        engine.interrupt("pdj run was killed; its processes were ended, and `pdj resume` lets the job go on")


async def _all_rest(engine: LocalEngine, keys: list[Key]) -> None:
    """Until no job is under way; a job that was resumed at the last moment is seen through."""
    while True:
        for key in keys:
            await engine.rest(key)
        if engine.let_go_of_resting(keys):
            return
        await asyncio.sleep(A_MOMENT)
