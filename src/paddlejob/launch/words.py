"""What the launcher says, and how it ends when it cannot go on."""

from __future__ import annotations

import contextlib

BAD_SETUP = 2
PEER_LOST = 75
"""The exit status of a pod that ends only because another one did: nothing is wrong with itself, it may try again."""


class LaunchError(Exception):
    """Ends the launcher with these words and this exit status."""

    def __init__(self, words: str, status: int = BAD_SETUP) -> None:
        super().__init__(words)
        self.status = status


def say(line: str) -> None:
    """Where nobody reads any more, training goes on all the same."""
    with contextlib.suppress(OSError):
        print(f"start_paddle: {line}", flush=True)


def listed(names: list[str]) -> str:
    return ", ".join(names) if names else "nothing"
