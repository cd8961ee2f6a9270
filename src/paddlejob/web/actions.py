"""Runs the command of an action in a process of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence

from paddlejob.errors import BadInput, NotPossible

TIMEOUT = 150.0
PDJ = [sys.executable, "-m", "paddlejob"]
VERBS = ("suspend", "resume", "scale", "rerun", "delete")


def arguments(action: str, name: str, flags: Sequence[str], workers: int | None) -> list[str]:
    """The command line of an action, without `pdj`; raises BadInput if the action is unknown."""
    if action not in VERBS:
        raise BadInput(f"{action}: is not an action; use one of {', '.join(VERBS)}")
    if (action == "scale") != (workers is not None):
        raise BadInput("scale needs a number of workers, and no other action takes one")
    number = [] if workers is None else [str(workers)]
    wait = ["--no-wait"] if action == "delete" else []
    return [action, *flags, *wait, "--", name, *number]


async def execute(action: str, command: Sequence[str]) -> str:
    """Run the command in a process of its own, because the engine that it may start must not be our child."""
    process = await asyncio.create_subprocess_exec(
        *PDJ,
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
        env=dict(os.environ),
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), TIMEOUT)
    except TimeoutError:
        process.send_signal(signal.SIGINT)  # As Ctrl-C: a job that is being replaced is not lost.
        raise NotPossible(f"pdj {action} did not end within {TIMEOUT:.0f} s") from None
    text = output.decode(errors="replace").strip()
    if process.returncode:
        raise BadInput(text.removeprefix("pdj: ") or f"pdj {action} failed with exit status {process.returncode}")
    return text
