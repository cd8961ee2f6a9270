"""Python interpreters for tests that must know which one ran."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path


def interpreter(path: Path) -> str:
    """A Python that can be told from others by a variable."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\nCHOSEN={shlex.quote(path.name)} exec {sys.executable} "$@"\n')
    path.chmod(0o755)
    return str(path)
