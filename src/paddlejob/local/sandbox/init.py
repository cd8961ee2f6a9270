"""The first process of a container: starts its command, forwards signals, and reaps what the command leaves.

In a PID namespace of its own it is process 1, and the kernel ends all others with it. Without one it adopts orphans
of its command, and finds them in /proc to end them.
"""

from __future__ import annotations

import json
import os
import select
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from paddlejob.local.sandbox import kernel
from paddlejob.local.sandbox.mounts import arrange
from paddlejob.local.sandbox.proc import descendants, out_of_memory_kills

KILL_ALL = signal.SIGUSR1
START_FAILED = 128
SIGNALS = {signal.SIGTERM, KILL_ALL}


def become_init(spec: dict[str, Any], report: int, life: int, isolated: bool) -> NoReturn:
    """Run one container to its end. `life` is a pipe that is closed when the supervisor ends."""
    code = START_FAILED
    try:
        if not isolated:
            kernel.die_with_parent(KILL_ALL)
        if not select.select([life], [], [], 0)[0]:
            code = _Init(spec, report, isolated).run()
    except Exception as error:
        _send(report, {"failed": _message(error)})
    finally:
        os._exit(code if code < 128 else START_FAILED)


class _Init:
    def __init__(self, spec: dict[str, Any], report: int, isolated: bool) -> None:
        self._spec = spec
        self._report = report
        self._isolated = isolated

    def run(self) -> int:
        """Open the log first, as a volume may be mounted over its directory; and read our process number before
        /proc is mounted again, as the engine sees it."""
        os.setsid()
        self._pid = int(Path("/proc/self").readlink().name)
        log = os.open(self._spec["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        if self._isolated:
            kernel.unshare(kernel.CLONE_NEWNS)
            if self._spec.get("hostname"):
                kernel.unshare(kernel.CLONE_NEWUTS)
                kernel.set_hostname(self._spec["hostname"])
            arrange(self._spec["mounts"], Path(self._spec["stage"]))
        else:
            kernel.adopt_orphans()
        before = out_of_memory_kills()
        main = self._start()
        # The program alone decides how its children end: a checkpoint may need them.
        signal.signal(signal.SIGTERM, lambda *_: _kill(main, signal.SIGTERM))
        signal.signal(KILL_ALL, lambda *_: self._kill_all())
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        code = _reap_until(main)
        oom = code == 128 + signal.SIGKILL and out_of_memory_kills() > before
        if not self._isolated:
            self._end_leftovers()
        _send(self._report, {"ended": code, "oom": oom})
        return 0

    def _start(self) -> int:
        """Fork and execute the command; an error of execve is returned through a pipe."""
        back, error_pipe = os.pipe()
        child = os.fork()
        if child == 0:
            _execute(self._spec, error_pipe)
        os.close(error_pipe)
        with os.fdopen(back, "rb") as pipe:
            message = pipe.read().decode(errors="replace")
        if message:
            raise RuntimeError(message)
        _send(self._report, {"started": self._pid})
        return child

    def _kill_all(self) -> None:
        if self._isolated:
            _kill(-1, signal.SIGKILL)
            return
        for pid in descendants(os.getpid()):
            _kill(pid, signal.SIGKILL)

    def _end_leftovers(self) -> None:
        while True:
            self._kill_all()
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return


def _execute(spec: dict[str, Any], error_pipe: int) -> NoReturn:
    command, cwd = spec["argv"][0], spec["cwd"]
    what = f"the working directory {cwd}"
    try:
        os.setsid()
        for number in SIGNALS | {signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ}:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.chdir(cwd)
        what = command
        os.execvpe(command, spec["argv"], spec["env"])
    except OSError as error:
        problem = error.strerror
        if isinstance(error, FileNotFoundError) and what == command:
            problem = _missing(command, spec["env"])
        os.write(error_pipe, f"{what}: {problem}".encode()[:4000])
    os._exit(127)


def _missing(command: str, environment: dict[str, str]) -> str:
    """What execve did not find: the command, or the program that runs it."""
    folders = [""] if "/" in command else environment.get("PATH", os.defpath).split(os.pathsep)
    found = next((path for folder in folders if (path := Path(folder, command)).is_file()), None)
    if found is None:
        return "no such command"
    with found.open("rb") as file:
        first = file.readline(256).decode(errors="replace")
    if first.startswith("#!") and first[2:].split():
        return f"needs {first[2:].split()[0]}, which does not exist"
    return "needs the loader of another system, which does not exist"


def _message(error: Exception) -> str:
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


def _send(pipe: int, report: dict[str, Any]) -> None:
    with suppress(BrokenPipeError):
        os.write(pipe, json.dumps(report).encode() + b"\n")
