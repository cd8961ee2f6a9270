"""The home directory of the user, which a container may not have."""

from __future__ import annotations

import os
from pathlib import Path

from paddlejob.errors import NotPossible


def home_directory() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        raise NotPossible(
            f"no home directory is known: HOME is not set, and there is no user with ID {os.getuid()}; "
            "set HOME to a directory that you may write to"
        ) from None
