"""The environment that every container begins with: the user's own, and the Python that trains."""

from __future__ import annotations

import os
from pathlib import Path

from paddlejob import contract
from paddlejob.local.options import RunOptions
from paddlejob.local.store import Store

MARK = "PADDLEJOB_POD_UID"
"""In the environment of every process of a pod."""
OURS = {value for name, value in vars(contract).items() if name.startswith("ENV_") and isinstance(value, str)}


def base_environment(options: RunOptions, store: Store) -> dict[str, str]:
    """Without what another job may have left in it. `python` and `python3` both mean the user's interpreter."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in OURS and not name.startswith("PADDLE_") and name != MARK
    }
    own = Path(options.interpreter).parent
    found = [str(own), kept.get("PATH", os.defpath)]
    if not all((own / name).exists() for name in ("python", "python3")):
        found.insert(0, str(_both_names(options.interpreter, store)))
    return {"PYTHONUNBUFFERED": "1", **kept, "PATH": os.pathsep.join(found)}


def _both_names(interpreter: str, store: Store) -> Path:
    """A directory with both names, for an interpreter that has only one of them."""
    folder = store.root / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("python", "python3"):
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec "{interpreter}" "$@"\n')
        script.chmod(0o755)
    return folder
