"""The environment that every container starts with, and the variable that marks the processes of a pod."""

from __future__ import annotations

import os
from pathlib import Path

from paddlejob import contract
from paddlejob.local.options import RunOptions
from paddlejob.local.sandbox.proc import kill_with_variable
from paddlejob.local.store import JobFolder, Store

MARK = "PADDLEJOB_POD_UID"
"""In the environment of every process of a pod."""
OURS = {value for name, value in vars(contract).items() if name.startswith("ENV_") and isinstance(value, str)}


def base_environment(options: RunOptions, store: Store) -> dict[str, str]:
    """The user's own, without variables of another job; `python` and `python3` both run the user's interpreter."""
    kept = {
        name: value
        for name, value in (options.environment or os.environ).items()
        if name not in OURS and not name.startswith("PADDLE_") and name != MARK
    }
    own = Path(options.interpreter).parent
    found = [str(own), kept.get("PATH", os.defpath)]
    if not all((own / name).exists() for name in ("python", "python3")):
        found.insert(0, str(_both_names(options.interpreter, store)))
    return {"PYTHONUNBUFFERED": "1", **kept, "PATH": os.pathsep.join(found)}


def _both_names(interpreter: str, store: Store) -> Path:
    """A directory with both names, for an interpreter that has only one of them next to it."""
    folder = store.root / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("python", "python3"):
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec "{interpreter}" "$@"\n')
        script.chmod(0o755)
    return folder


def kill_leftovers(folder: JobFolder) -> None:
    """Kill what a killed engine may have left running where there are no PID namespaces."""
    kill_with_variable({f"{MARK}={record.uid}".encode() for record in folder.pods()})
