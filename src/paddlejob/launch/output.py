"""The launcher's output, its exit codes and the error that ends it."""

from __future__ import annotations

import contextlib

EXIT_BAD_SETUP = 2
EXIT_PEER_LOST = 75
"""This pod is healthy and exits only because a peer did, so the Job may retry it."""


class LaunchError(Exception):
    """Ends the launcher with this message and exit code."""

    def __init__(self, message: str, exit_code: int = EXIT_BAD_SETUP) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def log(line: str) -> None:
    """Print a line; a closed standard output must not stop training."""
    with contextlib.suppress(OSError):
        print(f"start_paddle: {line}", flush=True)


def comma_separated(names: list[str]) -> str:
    return ", ".join(names) if names else "nothing"
