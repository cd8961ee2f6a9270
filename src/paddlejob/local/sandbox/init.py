"""The first process of a container: starts its command, passes on a request to end, and outlives everything in it.

In a PID namespace of its own it is process 1, and the kernel ends all others with it. Without one it adopts what its
command leaves behind, and ends it by walking /proc.
"""

from __future__ import annotations

import json
import os
import select
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from paddlejob.local.machine.proc import descendants, out_of_memory_kills
from paddlejob.local.sandbox import kernel
from paddlejob.local.sandbox.mounts import arrange

KILL_ALL = signal.SIGUSR1
START_FAILED = 128
SIGNALS = {signal.SIGTERM, KILL_ALL}


def become_init(launch: dict[str, Any], report: int, life: int, isolated: bool) -> NoReturn:
    """Run one container to its end. `life` hangs up when the nursery is gone."""
    code = START_FAILED
    try:
        if not isolated:
            kernel.die_with_parent(KILL_ALL)
        if not select.select([life], [], [], 0)[0]:
            code = _Init(launch, report, isolated).run()
    except Exception as error:
        _tell(report, {"failed": _reason(error)})
    finally:
        os._exit(code if code < 128 else START_FAILED)


class _Init:
    def __init__(self, launch: dict[str, Any], report: int, isolated: bool) -> None:
        self._launch = launch
        self._report = report
        self._isolated = isolated

    def run(self) -> int:
        """The log is opened first, as a volume may cover the directory that it lies in; and our process number is
        read as others see it, before /proc is our own."""
        os.setsid()
        self._pid = int(Path("/proc/self").readlink().name)
        log = os.open(self._launch["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        if self._isolated:
            kernel.unshare(kernel.CLONE_NEWNS)
            arrange(self._launch["mounts"], Path(self._launch["stage"]))
        else:
            kernel.adopt_orphans()
        signal.signal(signal.SIGTERM, lambda *_: self._send(signal.SIGTERM))
        signal.signal(KILL_ALL, lambda *_: self._send(signal.SIGKILL))
        before = out_of_memory_kills()
        main = self._start()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        code = _reap_until(main)
        oom = code == 128 + signal.SIGKILL and out_of_memory_kills() > before
        if not self._isolated:
            self._end_leftovers()
        _tell(self._report, {"ended": code, "oom": oom})
        return 0

    def _start(self) -> int:
        """Fork and execute the command; an error of execve comes back through a pipe."""
        back, error = os.pipe()
        child = os.fork()
        if child == 0:
            _execute(self._launch, error)
        os.close(error)
        with os.fdopen(back, "rb") as pipe:
            words = pipe.read().decode(errors="replace")
        if words:
            raise RuntimeError(words)
        _tell(self._report, {"started": self._pid})
        return child

    def _send(self, number: int) -> None:
        if self._isolated:
            _kill(-1, number)
            return
        for pid in descendants(os.getpid()):
            _kill(pid, number)

    def _end_leftovers(self) -> None:
        while True:
            self._send(signal.SIGKILL)
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return


def _execute(launch: dict[str, Any], error: int) -> NoReturn:
    command, cwd = launch["argv"][0], launch["cwd"]
    what = f"the working directory {cwd}"
    try:
        os.setsid()
        for number in SIGNALS | {signal.SIGINT, signal.SIGPIPE}:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.chdir(cwd)
        what = command
        os.execvpe(command, launch["argv"], launch["env"])
    except OSError as failure:
        missing = isinstance(failure, FileNotFoundError) and what == command
        os.write(error, f"{what}: {'no such command' if missing else failure.strerror}".encode()[:4000])
    os._exit(127)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def _reap_until(main: int) -> int:
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == main:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _kill(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _tell(pipe: int, words: dict[str, Any]) -> None:
    with suppress(BrokenPipeError):
        os.write(pipe, json.dumps(words).encode() + b"\n")
