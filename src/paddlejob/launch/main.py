"""From the environment of a pod to the exit status of its trainer."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from queue import SimpleQueue
from typing import Any

from paddlejob.launch.by_api import TrainingIsOver
from paddlejob.launch.finding import Finder, finder
from paddlejob.launch.group import Group
from paddlejob.launch.link import Link
from paddlejob.launch.meeting import Line, NotMet, meet, refuse_taken_ports
from paddlejob.launch.paddle_2016 import find_paddle, old_commands, old_ports
from paddlejob.launch.paddle_today import new_commands, new_ports, outside, program, refuse_missing_program
from paddlejob.launch.processes import Command
from paddlejob.launch.run import Pair, catch_signals, end_on_signal, run_alone, stay_together
from paddlejob.launch.settings import Settings, read_settings, refuse_missing_config
from paddlejob.launch.words import BAD_SETUP, LaunchError, say
from paddlejob.launch.workspace import workspace

MEET_AGAIN_SECONDS = 0.5
SILENT_SECONDS = 10.0


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> int:
    try:
        return launch(sys.argv[1:] if arguments is None else arguments, os.environ if environ is None else environ)
    except LaunchError as error:
        say(str(error))
        return error.status
    except TrainingIsOver:
        say("the other pods of this job have succeeded: there is nothing left to train")
        return 0
    except OSError as error:
        say(f"cannot go on: {error}")
        return BAD_SETUP


def launch(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    settings = read_settings(environ, arguments)
    refuse_missing_config(settings)
    end_on_signal()
    if environ.get("PADDLE_PSERVERS_IP_PORT_LIST") and environ.get("TRAINING_ROLE"):
        return _one_role(settings, environ)
    paddle = find_paddle(environ.get("PATH"))
    if not paddle:
        refuse_missing_program(settings)
    say(f"job {settings.job}: waiting for {settings.trainers} pods")
    group, lines = Gathering(finder(environ, settings), settings, bool(paddle)).come_together()
    say(f"trainer {group.rank} of {len(group.addresses)} at {group.own}; the group is {','.join(group.addresses)}")
    if not paddle and ":" in group.own:
        say("warning: these are IPv6 addresses, which Paddle 2.6 cannot use with parameter servers")
    events: SimpleQueue[Any] = SimpleQueue()
    link = Link(group, lines, events.put)
    try:
        server, trainer = _commands(paddle, settings, group, environ)
        with workspace(settings, group.rank, lambda: stay_together(events)) as directory:
            catch_signals(events)
            return Pair(settings, group, link, events).run(server, trainer, directory)
    except LaunchError as error:
        link.give_up(f"trainer {group.rank} ({group.own}) cannot start: {error}".replace("\n", " "))
        raise
    finally:
        link.close()


def _commands(paddle: str, settings: Settings, group: Group, environ: Mapping[str, str]) -> tuple[Command, Command]:
    if paddle:
        return old_commands(paddle, settings, group, environ)
    return new_commands(settings, group, environ)


class Gathering:
    """Looks who is there and meets them, again until all see the same group."""

    def __init__(self, find: Finder, settings: Settings, old_paddle: bool) -> None:
        self._find = find
        self._settings = settings
        self._old_paddle = old_paddle
        self._said = ""

    def come_together(self) -> tuple[Group, dict[int, Line]]:
        began = time.monotonic()
        deadline = began + self._settings.wait_seconds
        while True:
            group = self._find.look(deadline)
            try:
                refuse_taken_ports(group.own, self._ports(group))
                return group, meet(group, self._settings.meeting_port, deadline)
            except NotMet as reason:
                self._again(str(reason), time.monotonic() - began)
            time.sleep(MEET_AGAIN_SECONDS)

    def _ports(self, group: Group) -> range | list[int]:
        return old_ports(self._settings) if self._old_paddle else new_ports(self._settings, group)

    def _again(self, reason: str, seconds: float) -> None:
        """Not at once: that the others are not there yet is no news."""
        if seconds >= self._settings.wait_seconds:
            raise LaunchError(f"the pods did not come together within {self._settings.wait_seconds} s: {reason}")
        if seconds >= SILENT_SECONDS and reason != self._said:
            say(f"{reason}; trying again")
            self._said = reason


def _one_role(settings: Settings, environ: Mapping[str, str]) -> int:
    """In a pod of a PaddleJob the operator has said who is who: bring the files, run the program."""
    refuse_missing_program(settings)
    trainer = environ["TRAINING_ROLE"] == "TRAINER"
    index = int(environ.get("PADDLE_TRAINER_ID") or 0)
    log = settings.logs(index) / ("train.log" if trainer else "server.log")
    events: SimpleQueue[Any] = SimpleQueue()
    with workspace(settings, index if trainer else None) as directory:
        catch_signals(events)
        return run_alone(Command(program(settings), dict(environ, **outside(settings))), directory, log, events)
