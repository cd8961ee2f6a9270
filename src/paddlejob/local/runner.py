"""The process that runs jobs for a command. It lives while one of its jobs is active, and no longer.

Attached, it suspends its jobs when the command ends, however that happens; detached, it keeps running.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from paddlejob.engine.backend import Key
from paddlejob.local.engine import LocalEngine
from paddlejob.local.engine_error import log_error, report_error
from paddlejob.local.machine.resources import Machine
from paddlejob.local.state.runner_lock import RunnerLock
from paddlejob.local.state.store import JobFolder, JobStore

INTERRUPT, KILL = b".", b"!"
PAUSE = 0.1
SIGNALS = (signal.SIGTERM, signal.SIGHUP)
Held = list[tuple[JobFolder, RunnerLock]]
SOURCE = Path(__file__).parents[2]
START = "import sys; sys.path.append(sys.argv[1]); from paddlejob.local.runner import main; main(*sys.argv[2:])"
"""Not with -m: the directory of the user's program, which may have a signal.py, would be searched for modules."""
_spawned: list[AttachedRunner] = []
"""Those that a notebook has started, to close the pipes of those that have ended."""


@dataclass
class AttachedRunner:
    pid: int
    pipe: int
    """Its end tells the runner that the command has ended; -1 once the runner is known to have ended."""

    def interrupt(self) -> None:
        """Suspend the jobs and terminate their processes."""
        self._send(INTERRUPT)

    def kill(self) -> None:
        """Kill all processes now."""
        self._send(KILL)

    def _send(self, command: bytes) -> None:
        if self.pipe >= 0:
            with suppress(BrokenPipeError):
                os.write(self.pipe, command)

    @property
    def alive(self) -> bool:
        try:
            alive = os.waitpid(self.pid, os.WNOHANG)[0] == 0
        except ChildProcessError:
            alive = False
        if not alive and self.pipe >= 0:
            os.close(self.pipe)
            self.pipe = -1
        return alive


def start_attached(store: JobStore, held: Held, machine: Machine | None = None) -> AttachedRunner:
    """Fork a runner. It gets commands through a pipe, whose end tells it that this process has ended."""
    commands, pipe = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(pipe)
        _become_runner(lambda: run_jobs(store, held, commands, machine), held, commands)
    os.close(commands)
    for _, lock in held:
        lock.release()
    return AttachedRunner(pid, pipe)


def start_spawned(store: JobStore, held: Held) -> AttachedRunner:
    """Start a runner in a new interpreter: a notebook has threads and an event loop, which must not be forked."""
    _spawned[:] = [one for one in _spawned if one.alive]
    commands, pipe = os.pipe()
    pid = _spawn(store, held, commands)
    os.close(commands)
    _spawned.append(AttachedRunner(pid, pipe))
    return _spawned[-1]


def spawn_detached(store: JobStore, held: Held) -> None:
    """The same for a runner that goes on after this process."""
    _spawn(store, held, -1)


def _spawn(store: JobStore, held: Held, commands: int) -> int:
    inherited = [f"{folder.key[0]}/{folder.key[1]}:{lock.descriptor}" for folder, lock in held]
    started = subprocess.Popen(
        [sys.executable, "-P", "-c", START, str(SOURCE), str(store.root), str(commands), *inherited],
        pass_fds=[*([commands] if commands >= 0 else []), *(lock.descriptor for _, lock in held)],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    for _, lock in held:
        lock.release()
    return started.pid


def start_detached(store: JobStore, held: Held, machine: Machine | None = None) -> None:
    """Fork twice, so that the runner is no child of this process."""
    middle = os.fork()
    if middle == 0:
        os.setsid()
        if os.fork() != 0:
            os._exit(0)
        _become_runner(lambda: run_jobs(store, held, -1, machine), held)
    os.waitpid(middle, 0)
    for _, lock in held:
        lock.release()


def _become_runner(run: Callable[[], object], held: Held, commands: int = -1) -> None:
    """An error that ends the engine is written to its log and to each job."""
    code = 1
    try:
        _close_all_but({0, 1, 2, commands, *(lock.descriptor for _, lock in held)})
        if os.getsid(0) != os.getpid():
            os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        log = os.open(_log_of(held), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for descriptor, standard in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(descriptor, standard)
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        for number in (signal.SIGINT, *SIGNALS):
            if not _is_ignored(number):
                signal.signal(number, signal.SIG_DFL)
        run()
        code = 0
    except BaseException as error:
        log_error(error, "the engine ends")
        for folder, _ in held:
            report_error(folder, error, _log_of(held), time.time(), final=False)
    finally:
        for _, lock in held:
            lock.give_up()
        sys.stdout.flush()
        os._exit(code)


def _close_all_but(kept: set[int]) -> None:
    """A CI system waits until its pipes are closed, for as long as a job in the background trains."""
    for descriptor in {int(one.name) for one in Path("/proc/self/fd").iterdir()} - kept:
        with suppress(OSError):
            os.close(descriptor)


def _log_of(held: Held) -> Path:
    """The log of an engine lies with its first job."""
    return held[0][0].path / "engine.log"


def _is_ignored(number: int) -> bool:
    """As `nohup` sets it; such a signal stays ignored."""
    return signal.getsignal(number) is signal.SIG_IGN


def run_jobs(store: JobStore, held: Held, commands: int, machine: Machine | None) -> None:
    asyncio.run(run_until_idle(store, held, commands, machine))


async def run_until_idle(store: JobStore, held: Held, commands: int, machine: Machine | None) -> None:
    loop = asyncio.get_running_loop()
    killed = asyncio.Event()
    async with LocalEngine(store, machine, log=_log_of(held)) as engine:
        keys = [folder.key for folder, lock in held if _adopt(engine, folder, lock, _log_of(held))]
        for number in SIGNALS:
            if not _is_ignored(number):
                name = signal.Signals(number).name
                loop.add_signal_handler(number, engine.interrupt, f"the engine of the job received {name}")
        if commands >= 0:
            engine.keep_finished_jobs()
            loop.add_reader(commands, _on_command, commands, engine, killed)
        ends = (_wait_until_all_idle(engine, keys), killed.wait(), engine.lost.wait())
        waits: list[asyncio.Task[object]] = [asyncio.create_task(end) for end in ends]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()


def _adopt(engine: LocalEngine, folder: JobFolder, lock: RunnerLock, log: Path) -> bool:
    """A job whose files cannot be used fails; the others run."""
    try:
        engine.adopt(folder, lock)
    except Exception as error:
        log_error(error, f"{folder.key[0]}/{folder.key[1]}")
        report_error(folder, error, log, time.time(), final=True)
        lock.give_up()
        return False
    return True


def _on_command(commands: int, engine: LocalEngine, killed: asyncio.Event) -> None:
    received = os.read(commands, 16)
    if KILL in received:
        killed.set()
    elif received:
        engine.interrupt("pdj run was interrupted; continue the job with `pdj resume {job}`")
    else:
        asyncio.get_running_loop().remove_reader(commands)
        engine.interrupt("pdj run was killed, and the processes of the job ended; continue it with `pdj resume {job}`")


async def _wait_until_all_idle(engine: LocalEngine, keys: list[Key]) -> None:
    """Wait until all jobs are idle, also one that is resumed at the last moment."""
    while True:
        for key in keys:
            await engine.wait_until_idle(key)
        if engine.release_inactive_jobs(keys):
            return
        await asyncio.sleep(PAUSE)


def main(root: str, commands: str, *inherited: str) -> None:
    """The runner in a new interpreter."""
    store = JobStore(Path(root))
    held: Held = []
    for one in inherited:
        key, _, descriptor = one.rpartition(":")
        namespace, _, name = key.partition("/")
        folder = store.folder((namespace, name))
        lock = folder.runner_lock()
        lock.adopt(int(descriptor))
        os.set_inheritable(int(descriptor), False)
        held.append((folder, lock))
    if int(commands) >= 0:
        os.set_inheritable(int(commands), False)
    _become_runner(lambda: run_jobs(store, held, int(commands), None), held, int(commands))
