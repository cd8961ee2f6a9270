"""Runs the processes of a pod from start to exit, and decides the pod's exit code."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any

from paddlejob.launch.events import AllSucceeded, PeerLost, ServerExited, SignalReceived, TrainerExited
from paddlejob.launch.group import Group
from paddlejob.launch.heartbeat import Heartbeat
from paddlejob.launch.output import EXIT_PEER_LOST, LaunchError, log
from paddlejob.launch.processes import Command, Process, stop
from paddlejob.launch.settings import Settings

FORWARDED_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def exit_on_signal() -> None:
    """Until a process is started, a signal ends the launcher; PID 1 of a container has no default handlers."""

    def handle(number: int, _frame: FrameType | None) -> None:
        raise LaunchError(f"received {signal.Signals(number).name} before training started", 128 + number)

    for number in STOP_SIGNALS:
        signal.signal(number, handle)


def queue_signals(events: SimpleQueue[Any]) -> None:
    """From now on a signal is an event like any other."""
    for number in FORWARDED_SIGNALS:
        signal.signal(number, lambda received, _frame: events.put(SignalReceived(received)))


def check_peers(events: SimpleQueue[Any]) -> None:
    """Raise if a peer was lost before training started."""
    with contextlib.suppress(Empty):
        event = events.get_nowait()
        if isinstance(event, PeerLost):
            raise LaunchError(_peer_lost_message(event.message), EXIT_PEER_LOST)


class Supervisor:
    """Runs the server and the trainer of this pod and handles each event."""

    def __init__(self, settings: Settings, group: Group, heartbeat: Heartbeat, events: SimpleQueue[Any]) -> None:
        self._log_dir = settings.log_dir(group.rank)
        self._name = f"trainer {group.rank} ({group.own})"
        self._heartbeat = heartbeat
        self._events = events
        self._processes: list[Process] = []
        self._running = 0
        self._stop_signal = 0
        """The signal that asked this pod to stop, or 0."""

    def run(self, server: Command, trainer: Command, directory: Path) -> int:
        """The exit code of the pod."""
        try:
            self._start(server, directory, "server.log", ServerExited)
            self._start(trainer, directory, "train.log", TrainerExited)
            while True:
                exit_code = self._handle(self._events.get())
                if exit_code is not None:
                    return exit_code
        finally:
            stop(self._processes)

    def _start(self, command: Command, directory: Path, log_name: str, event: Any) -> None:
        put = self._events.put
        self._processes.append(Process(command, directory, self._log_dir / log_name, lambda code: put(event(code))))
        self._running += 1

    def _handle(self, event: Any) -> int | None:
        """The exit code once it is known."""
        if isinstance(event, (TrainerExited, ServerExited)):
            self._running -= 1
        if isinstance(event, SignalReceived):
            return self._handle_signal(event.number)
        if self._stop_signal:
            return None if self._running else 128 + self._stop_signal
        if isinstance(event, TrainerExited):
            return self._handle_trainer_exit(event.exit_code)
        if isinstance(event, ServerExited):
            message = f"the server of {self._name} exited with code {event.exit_code}"
            return self._fail(message, event.exit_code or 1)
        if isinstance(event, PeerLost):
            log(_peer_lost_message(event.message))
            return EXIT_PEER_LOST
        return 0 if isinstance(event, AllSucceeded) else None

    def _handle_trainer_exit(self, exit_code: int) -> int | None:
        if exit_code:
            return self._fail(f"{self._name} failed with exit code {exit_code}", exit_code)
        log(f"{self._name} succeeded; its server keeps running until all trainers have")
        self._heartbeat.report_success()
        return None

    def _handle_signal(self, number: int) -> int | None:
        """Forward the signal. The sender of a stop signal enforces its own deadline; a second one stops at once."""
        for process in self._processes:
            process.signal(number)
        if number not in STOP_SIGNALS:
            return None
        if self._stop_signal:
            return 128 + number
        self._stop_signal = number
        return self._fail(f"{self._name} received {signal.Signals(number).name}", None)

    def _fail(self, message: str, exit_code: int | None) -> int | None:
        log(message)
        self._heartbeat.report_failure(message)
        return exit_code


def run_single_role(command: Command, directory: Path, log_file: Path, events: SimpleQueue[Any]) -> int:
    """Run the one process of a PaddleJob's pod; the operator handles its failures."""
    process = Process(command, directory, log_file, lambda code: events.put(TrainerExited(code)))
    stop_signal = 0
    while True:
        event = events.get()
        if isinstance(event, TrainerExited):
            return 128 + stop_signal if stop_signal else event.exit_code
        if isinstance(event, SignalReceived):
            process.signal(event.number)
            stop_signal = event.number if event.number in STOP_SIGNALS else stop_signal


def _peer_lost_message(message: str) -> str:
    return f"{message}; training cannot continue without it; exiting so that a new group can start"
