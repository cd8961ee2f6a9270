"""Command lines for the Paddle of the documents (2016): `paddle pserver` and `paddle train`."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from paddlejob.launch.group import Group
from paddlejob.launch.processes import Command
from paddlejob.launch.settings import Settings

COMMENT = "paddle_process_by_paddle"
MAX_SCRIPT_BYTES = 1 << 20


def find_legacy_paddle(path: str | None) -> str:
    """The `paddle` command that supports `pserver`; the command of the same name in current wheels does not."""
    found = shutil.which("paddle", path=path)
    if not found:
        return ""
    try:
        with Path(found).open("rb") as script:
            return found if b"pserver" in script.read(MAX_SCRIPT_BYTES) else ""
    except OSError:
        return ""


def legacy_ports(settings: Settings) -> range:
    """The ports of the pod's server."""
    return range(settings.port, settings.port + settings.ports + settings.sparse_ports)


def legacy_commands(
    paddle: str, settings: Settings, group: Group, environ: Mapping[str, str]
) -> tuple[Command, Command]:
    """The commands of the server and the trainer."""
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
    """In the order of the document's log, which lacks --num_gradient_servers: that flag comes last."""
    network = [
        f"--nics={settings.nic}",
        f"--port={settings.port}",
        f"--ports_num={settings.ports}",
        f"--comment={COMMENT}",
        f"--pservers={','.join(group.addresses)}",
    ]
    given = join_flags(settings.trainer_args)
    names = {flag.partition("=")[0] for flag in given}
    sparse = [f"--ports_num_for_sparse={settings.sparse_ports}"]
    threads = [f"--trainer_count={settings.threads}"]
    return [
        *network,
        *([] if "--ports_num_for_sparse" in names else sparse),
        *given,
        *([] if "--trainer_count" in names else threads),
        f"--trainer_id={group.rank}",
        f"--save_dir={settings.output}",
        f"--num_gradient_servers={settings.trainers}",
    ]


def join_flags(arguments: Sequence[str]) -> list[str]:
    """Write `--key value` as `--key=value`; leave everything else unchanged."""
    flags: list[str] = []
    for argument in arguments:
        if flags and not argument.startswith("--") and flags[-1].startswith("--") and "=" not in flags[-1]:
            flags[-1] += f"={argument}"
        else:
            flags.append(argument)
    return flags
