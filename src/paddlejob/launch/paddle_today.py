"""The same roles for today's Paddle: one program, train.py, that takes its role from the environment."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from paddlejob.launch.group import Group, host
from paddlejob.launch.processes import Command
from paddlejob.launch.settings import Settings
from paddlejob.launch.words import LaunchError, listed

PROGRAM = "train.py"
GLOO_OVER_HTTP = "3"
TRAINER, GLOO = 1, 2
"""How far their ports are behind the server's."""


def refuse_missing_program(settings: Settings) -> None:
    if not (settings.config / PROGRAM).is_file():
        there = sorted(one.name for one in settings.config.iterdir())
        raise LaunchError(
            f"{settings.config}: has no {PROGRAM}, which today's Paddle runs as server and as trainer (there is "
            f"{listed(there)}), and the `paddle` command of 2016 is not in this image either"
        )


def new_ports(settings: Settings, group: Group) -> list[int]:
    """Those that are listened at in this pod: the first server also lets the trainers meet, by gloo."""
    return [settings.port, settings.port + GLOO] if group.rank == 0 else [settings.port]


def new_commands(settings: Settings, group: Group, environ: Mapping[str, str]) -> tuple[Command, Command]:
    """The server's and the trainer's."""
    words = program(settings)
    common = dict(environ, **outside(settings), **shared(settings, group))
    trainer_port = settings.port + TRAINER
    server = role(group, "PSERVER", settings.port)
    trainer = dict(
        role(group, "TRAINER", trainer_port), PADDLE_CURRENT_ENDPOINT=group.endpoints(trainer_port)[group.rank]
    )
    return Command(words, dict(common, **server)), Command(words, dict(common, **trainer))


def program(settings: Settings) -> list[str]:
    return [sys.executable or "python3", PROGRAM, *settings.passed_on]


def outside(settings: Settings) -> dict[str, str]:
    """What the program needs to know of the pod."""
    return {"DATA_DIR": "data", "OUTPUT_DIR": str(settings.output), "PYTHONUNBUFFERED": "1"}


def shared(settings: Settings, group: Group) -> dict[str, str]:
    """Variables with the same value in all processes of a group."""
    return {
        "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(group.endpoints(settings.port)),
        "PADDLE_TRAINER_ENDPOINTS": ",".join(group.endpoints(settings.port + TRAINER)),
        "PADDLE_TRAINERS": ",".join(group.addresses),
        "PADDLE_TRAINERS_NUM": str(len(group.addresses)),
        "TRAINER_PORTS_NUM": "1",
        "PADDLE_WITH_GLOO": "1",
        "PADDLE_GLOO_RENDEZVOUS": GLOO_OVER_HTTP,
        "PADDLE_GLOO_HTTP_ENDPOINT": group.endpoints(settings.port + GLOO)[0],
        "SYS_JOB_ID": f"{settings.job}-{group.digest}",
    }


def role(group: Group, name: str, port: int) -> dict[str, str]:
    return {
        "POD_IP": host(group.own),
        "PADDLE_PORT": str(port),
        "PADDLE_TRAINER_ID": str(group.rank),
        "TRAINING_ROLE": name,
        "PADDLE_TRAINING_ROLE": name,
    }
