"""A small process that starts and reaps all containers of an engine; it ends with the engine, and they with it.

It is separate from the engine because it must have a single thread, and because forking it is cheap. Requests are
lines of JSON on standard input, reports are lines on standard output. When standard input ends, all containers do.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

from paddlejob.local.sandbox import kernel
from paddlejob.local.sandbox.init import KILL_ALL, SIGNALS, become_init
from paddlejob.local.sandbox.mounts import mount_memory
from paddlejob.local.sandbox.proc import end_orphans

SWITCH = "PADDLEJOB_NAMESPACES"
"""Set to 0, it runs containers without namespaces of their own."""


class Supervisor:
    def __init__(self, isolated: bool, why_not: str) -> None:
        self._life, self._alive = os.pipe()
        self._isolated = isolated
        if not isolated:
            kernel.adopt_orphans()
        self._own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC) if self._isolated else -1
        self._watch = selectors.DefaultSelector()
        self._inits: dict[str, int] = {}
        self._memory: set[str] = set()
        self._unread = b""
        self._report({"isolated": self._isolated, "why": why_not})

    def serve(self) -> None:
        self._watch.register(0, selectors.EVENT_READ, self._read_requests)
        while True:
            for key, _ in self._watch.select():
                if not key.data():
                    return

    def end_all(self) -> None:
        for pid in self._inits.values():
            self._kill(pid)
        for pid in self._inits.values():
            os.waitpid(pid, 0)

    def _read_requests(self) -> bool:
        got = os.read(0, 1 << 20)
        if not got:
            return False
        *lines, self._unread = (self._unread + got).split(b"\n")
        for line in lines:
            request = json.loads(line)
            if "argv" in request:
                self._start(request)
            elif (pid := self._inits.get(request["id"])) is not None:
                self._kill(pid) if request["kill"] else os.kill(pid, signal.SIGTERM)
        return True

    def _kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL if self._isolated else KILL_ALL)

    def _start(self, spec: dict[str, Any]) -> None:
        """What the system refuses to one container, such as another process, does not concern the others."""
        try:
            mount_memory(spec["mounts"], self._memory)
            back, self._inits[spec["id"]] = self._fork(spec)
        except OSError as error:
            self._report({"id": spec["id"], "failed": str(error.strerror)})
            self._report({"id": spec["id"], "gone": True})
            return
        self._watch.register(back, selectors.EVENT_READ, lambda: self._on_report(spec["id"], back))

    def _fork(self, spec: dict[str, Any]) -> tuple[int, int]:
        """Signals are blocked until the first process can handle them: process 1 would ignore them."""
        back, report = os.pipe()
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            if self._isolated:
                kernel.unshare(kernel.CLONE_NEWPID)
            pid = os.fork()
            if pid == 0:
                self._become_container(spec, report)
        except OSError:
            os.close(back)
            raise
        finally:
            if self._isolated:
                kernel.setns(self._own_pids, kernel.CLONE_NEWPID)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            os.close(report)
        return back, pid

    def _become_container(self, spec: dict[str, Any], report: int) -> NoReturn:
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nothing, standard)
        kept = sorted((self._life, report))
        for first, last in zip([3, kept[0] + 1, kept[1] + 1], [kept[0], kept[1], 1 << 16], strict=True):
            os.closerange(first, last)
        become_init(spec, report, self._life, self._isolated)

    def _on_report(self, name: str, back: int) -> bool:
        """Forward reports of a container's first process; the end of the pipe means that it has ended."""
        got = os.read(back, 1 << 16)
        for line in got.splitlines():
            self._report({"id": name, **json.loads(line)})
        if not got:
            self._watch.unregister(back)
            os.close(back)
            os.waitpid(self._inits.pop(name), 0)
            if not self._isolated:
                end_orphans(known=set(self._inits.values()))
            self._report({"id": name, "gone": True})
        return True

    def _report(self, report: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(report) + "\n")
        sys.stdout.flush()


def isolation() -> tuple[bool, str]:
    """Whether containers can have namespaces of their own here, and if not, why not. Changes this process."""
    if os.environ.get(SWITCH) == "0":
        return False, f"{SWITCH} is 0"
    try:
        if os.geteuid() != 0:
            _enter_user_namespace()
        if _try_namespaces() != 0:
            return False, "mounting /proc in a new namespace is not permitted"
    except OSError as error:
        return False, str(error.strerror)
    return True, ""


def probe() -> tuple[bool, str]:
    """The same, tried in a child process."""
    back, line = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(line, json.dumps(isolation()).encode())
        finally:
            os._exit(0)
    os.close(line)
    with os.fdopen(back, "rb") as pipe:
        isolated, why_not = json.loads(pipe.read() or '[false, "the attempt failed"]')
    os.waitpid(child, 0)
    return isolated, why_not


def _enter_user_namespace() -> None:
    user, group = os.geteuid(), os.getegid()
    kernel.unshare(kernel.CLONE_NEWUSER)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path("/proc/self", name).write_text(text)


def _try_namespaces() -> int:
    """Try in a child process, as a PID namespace cannot be left again."""
    child = os.fork()
    if child == 0:
        try:
            kernel.unshare(kernel.CLONE_NEWPID | kernel.CLONE_NEWNS)
            inner = os.fork()
            if inner == 0:
                kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
                kernel.mount("proc", "/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
                os._exit(0)
            os._exit(os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1]))
        except BaseException:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _enter_pid_namespace() -> None:
    """Continue as process 1 of a new PID namespace: when it ends, the kernel ends all that it started."""
    kernel.unshare(kernel.CLONE_NEWPID)
    child = os.fork()
    if child:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 255)
    kernel.die_with_parent(signal.SIGKILL)


def _enter_mount_namespace() -> None:
    """For volumes in memory, which all containers of a pod share and the host does not see."""
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_SLAVE)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    isolated, why_not = isolation()
    if isolated:
        _enter_pid_namespace()
        _enter_mount_namespace()
    supervisor = Supervisor(isolated, why_not)
    try:
        supervisor.serve()
    finally:
        supervisor.end_all()
