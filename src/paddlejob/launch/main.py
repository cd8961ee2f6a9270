"""The entry point: from the environment of a pod to its exit code."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from queue import SimpleQueue
from typing import Any

from paddlejob.launch.api_discovery import AlreadySucceeded
from paddlejob.launch.discovery import Discovery, choose_discovery
from paddlejob.launch.fleet_paddle import (
    fleet_commands,
    fleet_ports,
    program_argv,
    program_environment,
    require_program,
)
from paddlejob.launch.group import Group
from paddlejob.launch.heartbeat import Heartbeat
from paddlejob.launch.legacy_paddle import find_legacy_paddle, legacy_commands, legacy_ports
from paddlejob.launch.output import EXIT_BAD_SETUP, LaunchError, log
from paddlejob.launch.processes import Command
from paddlejob.launch.rendezvous import Connection, RendezvousFailed, rendezvous, require_free_ports
from paddlejob.launch.settings import Settings, read_settings, require_config
from paddlejob.launch.supervisor import Supervisor, check_peers, exit_on_signal, queue_signals, run_single_role
from paddlejob.launch.workspace import workspace

RENDEZVOUS_RETRY_SECONDS = 0.5
QUIET_SECONDS = 10.0


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> int:
    try:
        return launch(sys.argv[1:] if arguments is None else arguments, os.environ if environ is None else environ)
    except LaunchError as error:
        log(str(error))
        return error.exit_code
    except AlreadySucceeded:
        log("the other pods of this job have succeeded; nothing left to train")
        return 0
    except OSError as error:
        log(f"cannot continue: {error}")
        return EXIT_BAD_SETUP


def launch(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    settings = read_settings(environ, arguments)
    require_config(settings)
    exit_on_signal()
    if environ.get("PADDLE_PSERVERS_IP_PORT_LIST") and environ.get("TRAINING_ROLE"):
        return _launch_single_role(settings, environ)
    paddle = find_legacy_paddle(environ.get("PATH"))
    if not paddle:
        require_program(settings)
    log(f"job {settings.job}: waiting for {settings.trainers} pods")
    group, connections = GroupFormation(choose_discovery(environ, settings), settings, bool(paddle)).form()
    log(f"trainer {group.rank} of {len(group.addresses)} at {group.own}; the group is {','.join(group.addresses)}")
    if not paddle and ":" in group.own:
        log("warning: the pods have IPv6 addresses only, which parameter servers of Paddle 2.6 do not support")
    events: SimpleQueue[Any] = SimpleQueue()
    heartbeat = Heartbeat(group, connections, events.put)
    try:
        server, trainer = _commands(paddle, settings, group, environ)
        with workspace(settings, group.rank, lambda: check_peers(events)) as directory:
            queue_signals(events)
            return Supervisor(settings, group, heartbeat, events).run(server, trainer, directory)
    except LaunchError as error:
        heartbeat.report_failure(f"trainer {group.rank} ({group.own}) cannot start: {error}".replace("\n", " "))
        raise
    finally:
        heartbeat.close()


def _commands(paddle: str, settings: Settings, group: Group, environ: Mapping[str, str]) -> tuple[Command, Command]:
    if paddle:
        return legacy_commands(paddle, settings, group, environ)
    return fleet_commands(settings, group, environ)


class GroupFormation:
    """Repeats discovery and rendezvous until all pods agree on the group."""

    def __init__(self, discovery: Discovery, settings: Settings, legacy: bool) -> None:
        self._discovery = discovery
        self._settings = settings
        self._legacy = legacy
        self._last_logged = ""

    def form(self) -> tuple[Group, dict[int, Connection]]:
        started = time.monotonic()
        deadline = started + self._settings.wait_seconds
        while True:
            group = self._discovery.discover(deadline)
            try:
                require_free_ports(group.own, self._ports(group))
                return group, rendezvous(group, self._settings.rendezvous_port, deadline)
            except RendezvousFailed as error:
                self._check_deadline(str(error), time.monotonic() - started)
            time.sleep(RENDEZVOUS_RETRY_SECONDS)

    def _ports(self, group: Group) -> range | list[int]:
        return legacy_ports(self._settings) if self._legacy else fleet_ports(self._settings, group)

    def _check_deadline(self, message: str, elapsed: float) -> None:
        """Raise after the time limit; log a new message, but not in the first seconds, when retries are normal."""
        if elapsed >= self._settings.wait_seconds:
            raise LaunchError(f"the pods did not form a group within {self._settings.wait_seconds} s: {message}")
        if elapsed >= QUIET_SECONDS and message != self._last_logged:
            log(f"{message}; retrying")
            self._last_logged = message


def _launch_single_role(settings: Settings, environ: Mapping[str, str]) -> int:
    """In a pod of a PaddleJob the operator has assigned the role: copy the files and run the program."""
    require_program(settings)
    is_trainer = environ["TRAINING_ROLE"] == "TRAINER"
    index = int(environ.get("PADDLE_TRAINER_ID") or 0)
    log_file = settings.log_dir(index) / ("train.log" if is_trainer else "server.log")
    events: SimpleQueue[Any] = SimpleQueue()
    with workspace(settings, index if is_trainer else None) as directory:
        queue_signals(events)
        command = Command(program_argv(settings), dict(environ, **program_environment(settings)))
        return run_single_role(command, directory, log_file, events)
