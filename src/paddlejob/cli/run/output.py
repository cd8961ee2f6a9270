"""Standard output that may go away while jobs run: its reader ends, its disk is full, its terminal is closed."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any, TextIO

from paddlejob.cli.output.terminal import unfiltered

STDOUT, STDERR = 1, 2


class LastingOutput:
    """A text stream on standard output that goes on silently after an error, which it reports once.

    `pdj run FILE | head` must not end a training of hours because `head` has seen enough.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            self._continue_without(error)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._continue_without(error)

    @property
    def unfiltered(self) -> LastingOutput:
        return LastingOutput(unfiltered(self._stream))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _continue_without(self, error: OSError) -> None:
        """What is still buffered, and everything later, goes to /dev/null."""
        discard(STDOUT)
        with suppress(OSError):
            self._stream.flush()
        try:
            what = "was closed" if isinstance(error, BrokenPipeError) else f"cannot be written ({error.strerror})"
            print(
                f"pdj: standard output {what}; the jobs keep running. Stop them with Ctrl-C, or follow them with "
                "`pdj logs -f JOB`",
                file=sys.stderr,
                flush=True,
            )
        except OSError:
            discard(STDERR)


def discard(descriptor: int) -> None:
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, descriptor)
    os.close(nothing)
