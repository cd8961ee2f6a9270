"""`pdj` called in this process, for verbs that start nothing; a new process needs half a second for its imports."""

from __future__ import annotations

import contextlib
import io
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from paddlejob.cli.main import main


@dataclass(frozen=True)
class Called:
    returncode: int
    stdout: str
    stderr: str


class Keyboard(io.TextIOWrapper):
    """Input that a user types at a terminal."""

    def isatty(self) -> bool:
        return True


def pdj(
    *arguments: str,
    input: str = "",
    typed: str = "",
    folder: Path | None = None,
    encoding: str = "utf-8",
    **environment: str,
) -> Called:
    """Run one command as `main` does, with its own standard streams, in a directory and with more variables."""
    kind = Keyboard if typed else io.TextIOWrapper
    stdin = kind(io.BytesIO((typed or input).encode()))
    stdout, stderr = (io.TextIOWrapper(io.BytesIO(), encoding) for _ in range(2))
    code: object = None
    with pytest.MonkeyPatch.context() as patched, contextlib.chdir(folder or Path.cwd()):
        patched.setattr(sys, "argv", ["pdj", *arguments])
        for name, stream in (("stdin", stdin), ("stdout", stdout), ("stderr", stderr)):
            patched.setattr(sys, name, stream)
        for name, value in environment.items():
            patched.setenv(name, value)
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    return Called(code if isinstance(code, int) else int(code is not None), _text(stdout), _text(stderr))


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()
