"""The first process of a training container: runs the program, and restarts it in place when the operator says so.

The program has the agent's own standard streams, working directory and environment, gets its signals, and gives its
exit status to the container. A thread keeps one request open to the operator: it says what is, and is answered with an
order once something else should be. Without an answer the agent ends as the program did, so a channel that fails costs
nothing but the restart in place. Shipped alone into pods: only the standard library, for Python 3.8 and newer.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

HERE = os.path.dirname(os.path.abspath(__file__))
HOOK = os.path.join(HERE, "hook")  # With the module that lets Python processes show their stacks.
STACKS_SIGNAL, BUSY_SIGNAL, STACKS_FILE = 50, 51, "paddlejob-stacks"  # As in hook/sitecustomize.py.
PREFIX = b"PADDLEJOB_AGENT_"  # Of variables for the agent alone.
POLL_SECONDS, PATIENCE = 25.0, 10.0
"""The operator answers after POLL_SECONDS at the latest; what has failed waits for PATIENCE without an answer."""
SHORTEST_DELAY, LONGEST_DELAY, LOOK_SECONDS = 0.5, 10.0, 0.02  # Between requests, and between looks at processes.
CANNOT_EXECUTE, NOT_FOUND, TERMINATED = 126, 127, 128 + signal.SIGTERM
MOST_PROCESSES, MOST_STACK, MOST_STACKS, MOST_SECONDS = 64, 8_000, 64_000, 3.0
"""Processes in a report, bytes of one stack, characters of all, and how long collecting them may take."""
NOT_CAUGHT = {
    signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTTIN, signal.SIGTTOU,
    signal.SIGSEGV, signal.SIGFPE, signal.SIGILL, signal.SIGBUS, signal.SIGTRAP, signal.SIGSYS,
}  # fmt: skip
"""They cannot be caught, are not meant for the program, or come from a defect of the agent itself."""
ENDING = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT}
RUNNING, STOPPING, CLEARING, EXITED, STOPPED = "running", "stopping", "clearing", "exited", "stopped"
"""Clearing: the program has failed, and processes of it are left. It is reported as running, as stopping is."""


class Agent:
    """The program and its attempts. The channel's thread only reads, and calls `give` and `accepts`."""

    def __init__(self, command: list[str]) -> None:
        given = initial_environment()
        self._channel: Channel | None = None
        self.url = os.fsdecode(given.get(PREFIX + b"URL", b""))
        self.attempt = int(given.get(PREFIX + b"ATTEMPT", b"1"))
        self.state, self.status, self.changed_at = RUNNING, 0, 0.0
        self.report = self._describe()
        self._environment = {name: value for name, value in given.items() if not name.startswith(PREFIX)}
        self._command, self._spawn = command, os.posix_spawnp
        self._program, self._kill_at = 0, 0.0
        self._terminating = False  # If the container is to end, the agent ends with its program in any case.
        self._orders: list[Order] = []
        self._wakes, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def run(self) -> NoReturn:
        adopt_orphans()
        self._catch_signals()
        self._start()
        if self.url:
            self._channel = Channel(self)
        while True:
            self._wait()
            self._reap()
            self._obey()
            self._settle()

    def give(self, order: Order) -> None:
        self._orders.append(order)
        os.write(self._wake, b"\0")

    def accepts(self, order: Order) -> bool:
        """Whether the order fits the state; a repeated or a late one does not."""
        if order.kind == "stop":
            return self.state == RUNNING and order.attempt > self.attempt and not self._terminating
        fits = order.kind == "release" or (order.kind == "start" and order.attempt > self.attempt)
        return fits and self.state in (EXITED, STOPPED)

    def _catch_signals(self) -> None:
        """Each signal is a byte in a pipe from now on. One that is ignored stays so, for the program as well."""
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        for number in signal.valid_signals() - NOT_CAUGHT:
            if signal.getsignal(number) != signal.SIG_IGN or number == signal.SIGCHLD:
                signal.signal(number, lambda *_: None)

    def _start(self) -> None:
        """A group of its own, so that a program that signals its group does not reach the agent."""
        environment = dict(self._environment)
        if os.path.isdir(HOOK):
            environment[b"PYTHONPATH"] = b":".join(filter(None, [os.fsencode(HOOK), environment.get(b"PYTHONPATH")]))
        restored = [signal.SIGPIPE, signal.SIGXFSZ] + [signal.SIGTTOU] * os.isatty(0)
        try:
            self._program = self._spawn(self._command[0], self._command, environment, setpgroup=0, setsigdef=restored)
        except (OSError, ValueError) as error:
            print(f"paddlejob: cannot start {self._command[0]}: {error}", file=sys.stderr, flush=True)
            leave(NOT_FOUND if isinstance(error, FileNotFoundError) else CANNOT_EXECUTE)
        if os.isatty(0):
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            with suppress(OSError):
                os.tcsetpgrp(0, self._program)

    def _wait(self) -> None:
        """Until a signal or an order comes, or it is time to look again. Signals are forwarded."""
        timeout = {RUNNING: None, EXITED: SHORTEST_DELAY, STOPPED: SHORTEST_DELAY}.get(self.state, LOOK_SECONDS)
        select.select([self._wakes], [], [], timeout)
        with suppress(BlockingIOError):
            for number in set(os.read(self._wakes, 4096)) - {0, signal.SIGCHLD}:
                kill([self._program], number)
                self._terminating |= number in ENDING

    def _reap(self) -> None:
        """All children that have ended, orphans too."""
        pid = -1
        with suppress(ChildProcessError):
            while pid:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid and pid == self._program:
                    self._program = 0
                    self.status = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
                    self._on_exit()

    def _on_exit(self) -> None:
        if self.state == STOPPING:
            # If SIGTERM made it end with 0, that is no success, and the container must not end with it.
            self.status = self.status or TERMINATED
            kill(descendants(), signal.SIGTERM)
        elif self.status == 0 or self._channel is None:
            leave(self.status)
        else:
            self.state, self._kill_at = CLEARING, time.monotonic()

    def _obey(self) -> None:
        while self._orders:
            order = self._orders.pop(0)
            if not self.accepts(order):
                continue
            if order.kind == "release":
                leave(self.status)
            if order.kind == "stop":
                self.state, self._kill_at = STOPPING, time.monotonic() + order.grace
                kill([self._program], signal.SIGTERM)
            else:
                self.attempt, self.status = order.attempt, 0
                merged = {**self._environment, **order.environment}
                self._environment = {name: value for name, value in merged.items() if value is not None}
                with suppress(OSError):  # The program may have ended in the middle of a line.
                    os.write(1, f"\npaddlejob: attempt {self.attempt} begins in place\n".encode())
                self._start()
                self._change(RUNNING)

    def _settle(self) -> None:
        """End what is left of an attempt, and the agent if nobody answers."""
        now = time.monotonic()
        if self._terminating and not self._program:
            leave(self.status)
        elif self.state in (STOPPING, CLEARING):
            left = descendants()
            if not left and not self._program:
                self._change(STOPPED if self.state == STOPPING else EXITED)
            elif now >= self._kill_at + PATIENCE:
                leave(self.status or TERMINATED)
            elif now >= self._kill_at:
                kill(left, signal.SIGKILL)
        elif self.state != RUNNING and self._channel and now >= self._channel.patience():
            leave(self.status)

    def _change(self, state: str) -> None:
        self.state, self.changed_at = state, time.monotonic()
        self.report = self._describe()
        if self._channel:
            self._channel.interrupt()

    def _describe(self) -> dict[str, Any]:
        """What the program prints is not seen here; it is in the log of the pod."""
        status = None if self.state == RUNNING else self.status
        return {"version": 1, "attempt": self.attempt, "state": self.state, "exitStatus": status, "output": ""}


class Order:
    """An answer of the operator, with the types that the agent relies on; raises if it has others."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.kind = str(answer["order"])
        self.id = str(answer.get("id", ""))
        self.attempt = int(answer.get("attempt", 0))
        self.grace = float(answer.get("graceSeconds", 0))
        given = answer.get("environment", {}).items()
        self.environment = {os.fsencode(name): None if value is None else os.fsencode(value) for name, value in given}


class Channel:
    """One request after the other to the operator, in a thread of its own. Nothing that fails here ends the program."""

    def __init__(self, agent: Agent) -> None:
        import threading

        self._agent = agent
        self._changed = threading.Condition()
        self._connection: Any = None
        self._waits = False  # Whether a request waits for its answer.
        self._reported = agent.report
        self._answered = (agent.report, 0.0)  # Until when the agent waits for an order.
        self._stacks: dict[str, Any] | None = None
        self._delay = 0.0
        threading.Thread(target=self._run, daemon=True).start()

    def patience(self) -> float:
        """Until when the agent waits for an order if the program has ended."""
        report, until = self._answered
        return until if report is self._agent.report else self._agent.changed_at + PATIENCE

    def interrupt(self) -> None:
        """What the request that waits has told is no longer true: end it, and report what is."""
        with self._changed:
            self._changed.notify_all()
            if self._waits:
                import socket

                with suppress(OSError, AttributeError):
                    socket.socket.shutdown(self._connection.sock, socket.SHUT_RDWR)

    def _run(self) -> None:
        while True:
            begun, fresh = time.monotonic(), self._connection is None
            try:
                order = Order(self._exchange())
            except Exception:
                self._connection = self._connection and self._connection.close()
                if self._reported is self._agent.report:
                    self._answered = (self._reported, min(self.patience(), time.monotonic() + PATIENCE))
                    self._pause(SHORTEST_DELAY if fresh else 0.0)
                continue
            self._answered = (self._reported, time.monotonic() + POLL_SECONDS + PATIENCE)
            if self._handle(order) or time.monotonic() - begun > SHORTEST_DELAY:
                self._delay = 0.0
            else:
                self._pause(0.0)

    def _pause(self, first: float) -> None:
        """For longer each time unless the program has ended, a little different in each pod; a change ends it."""
        self._wait(self._delay * (0.75 + os.urandom(1)[0] / 512) if self._delay else first)
        longest = LONGEST_DELAY if self._agent.state == RUNNING else SHORTEST_DELAY
        self._delay = min(longest, self._delay * 2 or SHORTEST_DELAY)

    def _wait(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._agent.report is not self._reported, seconds)

    def _handle(self, order: Order) -> bool:
        """Whether it makes a difference: if not, the same answer would come at once again."""
        if order.kind == "stacks":
            self._stacks = {"id": order.id, "processes": stacks(descendants())}
        elif self._agent.accepts(order):
            self._agent.give(order)
            self._wait(PATIENCE + order.grace)
        return order.kind == "stacks" or self._agent.report is not self._reported

    def _exchange(self) -> Any:
        """Tell what is, and return the answer. Token and certificates are read again, as they may be renewed."""
        import json

        self._reported = self._agent.report
        if self._connection is None or self._connection.sock is None:
            self._connection = connect(self._agent.url)
        with open(os.path.join(HERE, "token")) as file:
            headers = {"Authorization": "Bearer " + file.read().strip(), "Content-Type": "application/json"}
        with self._changed:
            self._reported, self._waits = self._agent.report, True
        told = {**self._reported, "stacks": self._stacks} if self._stacks else self._reported
        try:
            self._connection.request("POST", "/v1/agent", json.dumps(told), headers)
            answer = self._connection.getresponse()
            content = answer.read()
        finally:
            self._waits = False
        if answer.status != 200:
            raise OSError(answer.status)
        self._stacks = None
        return json.loads(content.decode())


def connect(url: str) -> Any:
    import http.client
    import ssl

    context = ssl.create_default_context(cafile=os.path.join(HERE, "ca.crt"))
    connection = http.client.HTTPSConnection(url.partition("://")[2].rstrip("/"), timeout=PATIENCE, context=context)
    connection.connect()
    connection.sock.settimeout(POLL_SECONDS + PATIENCE)
    return connection


def initial_environment() -> dict[bytes, bytes]:
    """As the container has it: in the C locale Python itself adds LC_CTYPE to os.environ."""
    with open("/proc/self/environ", "rb") as file:
        entries = [entry.partition(b"=") for entry in file.read().split(b"\0")]
    return {name: value for name, _, value in entries if name}


def adopt_orphans() -> None:
    """Process 1 is the parent of all orphans; another process has to ask for those that descend from it."""
    if os.getpid() != 1:
        with suppress(ImportError, OSError, AttributeError):
            import ctypes

            ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def descendants() -> list[int]:
    """All processes below this one that have not ended, whatever their group and session."""
    states = {int(name): stat(int(name)) for name in os.listdir("/proc") if name.isdigit()}
    children: dict[str, list[int]] = {}
    for pid, fields in states.items():
        children.setdefault(fields[1], []).append(pid)
    found, level = [], [os.getpid()]
    while level:
        level = [child for pid in level for child in children.get(str(pid), [])]
        found += level
    return [pid for pid in found if states[pid][0] not in "ZX"]


def stat(pid: int) -> list[str]:  # Its state, its parent, and more.
    return proc(pid, "stat").rpartition(")")[2].split() or ["X", ""]


def proc(pid: int, name: str) -> str:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def stacks(pids: list[int]) -> list[dict[str, Any]]:
    """What these processes are, and the Python stacks of those that can show them."""
    found, left, ends = [], MOST_STACKS, time.monotonic() + MOST_SECONDS
    for pid in pids[:MOST_PROCESSES]:
        stack = python_stack(pid)[:left] if time.monotonic() < ends else ""
        left -= len(stack)
        command, fields = " ".join(proc(pid, "cmdline").replace("\0", " ").split())[:200], stat(pid)
        described = {"pid": pid, "parent": int(fields[1] or 0), "command": command, "state": fields[0]}
        found.append({**described, "stack": stack})
    return found


def python_stack(pid: int) -> str:
    """Of the main thread; empty if the process has no hook, or does not come to handle a signal.

    The file has no name, and forked processes share it, so they are asked one after the other. While Python executes,
    its frames may be incomplete, so a thread that does not sleep is asked first by the signal that Python handles.
    """
    caught = int((proc(pid, "status").partition("SigCgt:")[2].split() or ["0"])[0], 16)
    if not caught >> (STACKS_SIGNAL - 1) & 1 or stat(pid)[0] in "TtX":
        return ""
    with suppress(OSError):
        opened = [f"/proc/{pid}/fd/{name}" for name in os.listdir(f"/proc/{pid}/fd")]
        with open(next((path for path in opened if STACKS_FILE in os.readlink(path)), ""), "r+b", 0) as file:
            file.truncate(0)
            for number in ([] if sleeps(pid) else [BUSY_SIGNAL]) + [STACKS_SIGNAL]:
                if not file.seek(0, os.SEEK_END):
                    os.kill(pid, number)
                ends = time.monotonic() + SHORTEST_DELAY
                while not file.seek(0, os.SEEK_END) and time.monotonic() < ends:
                    time.sleep(LOOK_SECONDS / 4)
            time.sleep(LOOK_SECONDS)
            return os.pread(file.fileno(), MOST_STACK, 0).decode(errors="replace")
    return ""


def sleeps(pid: int) -> bool:
    """Whether the main thread sleeps and does not wake up for a moment."""
    before, state = proc(pid, "status").partition("voluntary_ctxt_switches:")[2], stat(pid)[0]
    time.sleep(LOOK_SECONDS)
    return state != "R" and before == proc(pid, "status").partition("voluntary_ctxt_switches:")[2]


def kill(pids: list[int], number: int) -> None:
    for pid in filter(None, pids):
        with suppress(OSError):
            os.kill(pid, number)


def leave(status: int) -> NoReturn:
    """End with the exit status of the container, and leave nothing of the program behind."""
    kill(descendants(), signal.SIGKILL)
    os._exit(status)


if __name__ == "__main__":
    program = sys.argv[sys.argv.index("--") + 1 :]
    try:
        agent = Agent(program)
    except Exception:  # Python 3.7, or no /proc: as if there were no agent.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.execvp(program[0], program)
    agent.run()
