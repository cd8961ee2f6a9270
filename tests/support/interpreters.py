"""Python interpreters for tests that must know which one ran."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path


def interpreter(path: Path) -> str:
    """A Python interpreter that identifies itself in the variable CHOSEN."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\nCHOSEN={shlex.quote(path.name)} exec {sys.executable} "$@"\n')
    path.chmod(0o755)
    return str(path)
