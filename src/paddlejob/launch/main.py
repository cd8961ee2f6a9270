"""From the environment of a pod to the exit status of its trainer."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from queue import SimpleQueue
from typing import Any

from paddlejob.launch.finding import Finder, TrainingIsOver, finder
from paddlejob.launch.group import Group
from paddlejob.launch.link import Link
from paddlejob.launch.meeting import Line, NotMet, meet
from paddlejob.launch.paddle_2016 import find_paddle, old_commands
from paddlejob.launch.paddle_today import new_commands, outside, program, refuse_missing_program
from paddlejob.launch.processes import Command
from paddlejob.launch.run import Pair, catch_signals, end_on_signal, run_alone
from paddlejob.launch.settings import Settings, read_settings, refuse_missing_config
from paddlejob.launch.words import LaunchError, say
from paddlejob.launch.workspace import workspace

MEET_AGAIN_SECONDS = 0.5


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> int:
    try:
        return launch(sys.argv[1:] if arguments is None else arguments, os.environ if environ is None else environ)
    except LaunchError as error:
        say(str(error))
        return error.status
    except TrainingIsOver:
        say("the other pods of this job have succeeded: there is nothing left to train")
        return 0


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
    group, lines = _come_together(finder(environ, settings), settings)
    say(f"trainer {group.rank} of {len(group.addresses)} at {group.own}; the group is {','.join(group.addresses)}")
    events: SimpleQueue[Any] = SimpleQueue()
    catch_signals(events)
    link = Link(group, lines, events.put)
    try:
        server, trainer = _commands(paddle, settings, group, environ)
        with workspace(settings, group.rank) as directory:
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


def _come_together(find: Finder, settings: Settings) -> tuple[Group, dict[int, Line]]:
    """Look who is there and meet them, again until all see the same group."""
    deadline = time.monotonic() + settings.wait_seconds
    while True:
        group = find.look(deadline)
        try:
            return group, meet(group, settings.meeting_port, deadline)
        except NotMet as reason:
            if time.monotonic() >= deadline:
                raise LaunchError(
                    f"the pods did not come together within {settings.wait_seconds} s: {reason}; port "
                    f"{settings.meeting_port} must be open between them"
                ) from None
        time.sleep(MEET_AGAIN_SECONDS)


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
