"""Command lines for the Paddle of the documents: `paddle pserver` and `paddle train`."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from paddlejob.launch.group import Group
from paddlejob.launch.processes import Command
from paddlejob.launch.settings import Settings

COMMENT = "paddle_process_by_paddle"
SCRIPT_SIZE = 1 << 20


def find_paddle(path: str | None) -> str:
    """The command `paddle` that knows `pserver`; today's wheel brings another one of that name, which does not."""
    found = shutil.which("paddle", path=path)
    if not found:
        return ""
    try:
        with Path(found).open("rb") as script:
            return found if b"pserver" in script.read(SCRIPT_SIZE) else ""
    except OSError:
        return ""


def old_ports(settings: Settings) -> range:
    """Those of its server."""
    return range(settings.port, settings.port + settings.ports + settings.sparse_ports)


def old_commands(paddle: str, settings: Settings, group: Group, environ: Mapping[str, str]) -> tuple[Command, Command]:
    """The server's and the trainer's."""
    inherited = dict(environ)
    return (
        Command([paddle, "pserver", *server_flags(settings)], inherited),
        Command([paddle, "train", *trainer_flags(settings, group)], inherited),
    )


def server_flags(settings: Settings) -> list[str]:
    return [
        f"--nics={settings.nic}",
        f"--port={settings.port}",
        f"--ports_num={settings.ports}",
        f"--ports_num_for_sparse={settings.sparse_ports}",
        f"--num_gradient_servers={settings.trainers}",
        f"--comment={COMMENT}",
    ]


def trainer_flags(settings: Settings, group: Group) -> list[str]:
    """In the order of the document's log, which lacks --num_gradient_servers: that comes last."""
    ours = [
        f"--nics={settings.nic}",
        f"--port={settings.port}",
        f"--ports_num={settings.ports}",
        f"--comment={COMMENT}",
        f"--pservers={','.join(group.addresses)}",
    ]
    passed_on = joined(settings.passed_on)
    given = {flag.partition("=")[0] for flag in passed_on}
    sparse = [f"--ports_num_for_sparse={settings.sparse_ports}"]
    count = [f"--trainer_count={settings.threads}"]
    last = [
        f"--trainer_id={group.rank}",
        f"--save_dir={settings.output}",
        f"--num_gradient_servers={settings.trainers}",
    ]
    return [
        *ours,
        *([] if "--ports_num_for_sparse" in given else sparse),
        *passed_on,
        *([] if "--trainer_count" in given else count),
        *last,
    ]


def joined(arguments: Sequence[str]) -> list[str]:
    """`--key value` as `--key=value`; all else as it is."""
    flags: list[str] = []
    for argument in arguments:
        if flags and not argument.startswith("--") and flags[-1].startswith("--") and "=" not in flags[-1]:
            flags[-1] += f"={argument}"
        else:
            flags.append(argument)
    return flags
