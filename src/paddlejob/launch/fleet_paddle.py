"""The same roles for current Paddle: one program, train.py, which reads its role from the environment."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from paddlejob.launch.group import Group, format_host
from paddlejob.launch.output import LaunchError, comma_separated
from paddlejob.launch.processes import Command
from paddlejob.launch.settings import Settings

PROGRAM = "train.py"
GLOO_OVER_HTTP = "3"
TRAINER_PORT_OFFSET, GLOO_PORT_OFFSET = 1, 2
"""Relative to the server's port."""


def require_program(settings: Settings) -> None:
    if not (settings.config / PROGRAM).is_file():
        found = sorted(path.name for path in settings.config.iterdir())
        raise LaunchError(
            f"{settings.config}: no {PROGRAM}, which current Paddle runs as server and trainer (found "
            f"{comma_separated(found)}); add it, or use an image with the `paddle` command of 2016"
        )


def fleet_ports(settings: Settings, group: Group) -> list[int]:
    """The ports this pod listens on: its server's, and gloo's in the pod of rank 0."""
    return [settings.port, settings.port + GLOO_PORT_OFFSET] if group.rank == 0 else [settings.port]


def fleet_commands(settings: Settings, group: Group, environ: Mapping[str, str]) -> tuple[Command, Command]:
    """The commands of the server and the trainer."""
    argv = program_argv(settings)
    common = dict(environ, **program_environment(settings), **group_environment(settings, group))
    trainer_port = settings.port + TRAINER_PORT_OFFSET
    server = role_environment(group, "PSERVER", settings.port)
    trainer = dict(
        role_environment(group, "TRAINER", trainer_port),
        PADDLE_CURRENT_ENDPOINT=group.endpoints(trainer_port)[group.rank],
    )
    return Command(argv, dict(common, **server)), Command(argv, dict(common, **trainer))


def program_argv(settings: Settings) -> list[str]:
    return [sys.executable or "python3", PROGRAM, *settings.trainer_args]


def program_environment(settings: Settings) -> dict[str, str]:
    """The variables that any training program gets, whatever its role."""
    return {"DATA_DIR": "data", "OUTPUT_DIR": str(settings.output), "PYTHONUNBUFFERED": "1"}


def group_environment(settings: Settings, group: Group) -> dict[str, str]:
    """The variables with the same value in all processes of a group."""
    return {
        "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(group.endpoints(settings.port)),
        "PADDLE_TRAINER_ENDPOINTS": ",".join(group.endpoints(settings.port + TRAINER_PORT_OFFSET)),
        "PADDLE_TRAINERS": ",".join(group.addresses),
        "PADDLE_TRAINERS_NUM": str(len(group.addresses)),
        "TRAINER_PORTS_NUM": "1",
        "PADDLE_WITH_GLOO": "1",
        "PADDLE_GLOO_RENDEZVOUS": GLOO_OVER_HTTP,
        "PADDLE_GLOO_HTTP_ENDPOINT": group.endpoints(settings.port + GLOO_PORT_OFFSET)[0],
        "SYS_JOB_ID": f"{settings.job}-{group.digest}",
    }


def role_environment(group: Group, role: str, port: int) -> dict[str, str]:
    return {
        "POD_IP": format_host(group.own),
        "PADDLE_PORT": str(port),
        "PADDLE_TRAINER_ID": str(group.rank),
        "TRAINING_ROLE": role,
        "PADDLE_TRAINING_ROLE": role,
    }
