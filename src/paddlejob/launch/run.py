"""Training from the first process to the last, and the exit status it ends with."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any

from paddlejob.launch.events import AllEnded, PeerLost, ServerEnded, Signalled, TrainerEnded
from paddlejob.launch.group import Group
from paddlejob.launch.link import Link
from paddlejob.launch.processes import Command, Process, stop
from paddlejob.launch.settings import Settings
from paddlejob.launch.words import PEER_LOST, LaunchError, say

FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def end_on_signal() -> None:
    """While nothing is started yet, a signal ends the launcher wherever it is. Process 1 of a container needs this."""

    def end(number: int, _frame: FrameType | None) -> None:
        raise LaunchError(f"told to stop ({signal.Signals(number).name}) before training", 128 + number)

    for number in ENDING:
        signal.signal(number, end)


def catch_signals(events: SimpleQueue[Any]) -> None:
    """From here on a signal is an event like the others."""
    for number in FORWARDED:
        signal.signal(number, lambda caught, _frame: events.put(Signalled(caught)))


def stay_together(events: SimpleQueue[Any]) -> None:
    """Raise if the group has fallen apart before it trains."""
    with contextlib.suppress(Empty):
        event = events.get_nowait()
        if isinstance(event, PeerLost):
            raise LaunchError(_cannot_go_on(event.words), PEER_LOST)


class Pair:
    """The server and the trainer of this pod, and what is done about each event."""

    def __init__(self, settings: Settings, group: Group, link: Link, events: SimpleQueue[Any]) -> None:
        self._logs = settings.logs(group.rank)
        self._me = f"trainer {group.rank} ({group.own})"
        self._link = link
        self._events = events
        self._processes: list[Process] = []
        self._running = 0
        self._told = 0
        """The signal that asks this pod to end."""

    def run(self, server: Command, trainer: Command, directory: Path) -> int:
        """The trainer's status, or why there is none."""
        try:
            self._start(server, directory, "server.log", ServerEnded)
            self._start(trainer, directory, "train.log", TrainerEnded)
            while True:
                status = self._after(self._events.get())
                if status is not None:
                    return status
        finally:
            stop(self._processes)

    def _start(self, command: Command, directory: Path, log: str, ended: Any) -> None:
        tell = self._events.put
        self._processes.append(Process(command, directory, self._logs / log, lambda status: tell(ended(status))))
        self._running += 1

    def _after(self, event: Any) -> int | None:
        """The exit status once it is known."""
        if isinstance(event, (TrainerEnded, ServerEnded)):
            self._running -= 1
        if isinstance(event, Signalled):
            return self._signalled(event.number)
        if self._told:
            return None if self._running else 128 + self._told
        if isinstance(event, TrainerEnded):
            return self._trainer_ended(event.status)
        if isinstance(event, ServerEnded):
            return self._fail(f"the server of {self._me} ended with status {event.status}", event.status or 1)
        if isinstance(event, PeerLost):
            say(_cannot_go_on(event.words))
            return PEER_LOST
        return 0 if isinstance(event, AllEnded) else None

    def _trainer_ended(self, status: int) -> int | None:
        if status:
            return self._fail(f"{self._me} failed with status {status}", status)
        say(f"{self._me} has ended; its server stays until all have")
        self._link.ended_well()
        return None

    def _signalled(self, number: int) -> int | None:
        """Passed on. Who asks the pod to end has a clock of his own, and who asks twice is in a hurry."""
        for process in self._processes:
            process.signal(number)
        if number not in ENDING:
            return None
        if self._told:
            return 128 + number
        self._told = number
        return self._fail(f"{self._me} was told to stop ({signal.Signals(number).name})", None)

    def _fail(self, words: str, status: int | None) -> int | None:
        say(words)
        self._link.give_up(words)
        return status


def run_alone(command: Command, directory: Path, log: Path, events: SimpleQueue[Any]) -> int:
    """One process that an operator looks after."""
    process = Process(command, directory, log, lambda status: events.put(TrainerEnded(status)))
    told = 0
    while True:
        event = events.get()
        if isinstance(event, TrainerEnded):
            return 128 + told if told else event.status
        if isinstance(event, Signalled):
            process.signal(event.number)
            told = event.number if event.number in ENDING else told


def _cannot_go_on(words: str) -> str:
    return f"{words}: training cannot go on without it; ending, so that a new group can start"
