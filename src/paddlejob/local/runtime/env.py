"""The environment that every container starts with, and the variable that marks the processes of a pod."""

from __future__ import annotations

import hashlib
import os
import shlex
from pathlib import Path

from paddlejob import contract
from paddlejob.local.options import RunOptions
from paddlejob.local.sandbox.proc import kill_with_variable
from paddlejob.local.state.files import replace_file
from paddlejob.local.state.store import JobFolder, JobStore

MARK = "PADDLEJOB_POD_UID"
"""In the environment of every process of a pod."""
TEMPORARY = ("TMPDIR", "TEMP", "TMP")
LONGEST_TEMPORARY = 107 - len("/pymp-12345678/listener-12345678")
"""The path of a Unix socket has at most 107 bytes. Python's multiprocessing, and Paddle with it, binds some there."""
JOB_VARIABLES = {value for name, value in vars(contract).items() if name.startswith("ENV_") and isinstance(value, str)}


def base_environment(options: RunOptions, store: JobStore) -> dict[str, str]:
    """The user's own, without variables of another job; `python` and `python3` are the user's interpreter."""
    kept = {
        name: value
        for name, value in options.environment.items()
        if name not in JOB_VARIABLES and not name.startswith("PADDLE_") and name != MARK
    }
    kept = {name: value for name, value in kept.items() if not is_too_long(name, value)}
    folders = [str(_interpreter_folder(options.interpreter, store)), str(Path(options.interpreter).parent)]
    path = os.pathsep.join([*folders, kept.get("PATH", os.defpath)])
    return {"PYTHONUNBUFFERED": "1", **kept, "PATH": path}


def is_too_long(name: str, value: str) -> bool:
    """Whether it names a directory for temporary files in which no socket can be bound."""
    return name in TEMPORARY and len(os.fsencode(value)) > LONGEST_TEMPORARY


def temporary_notes(options: RunOptions) -> list[str]:
    """That pods do not get a variable of the user's."""
    return [
        f"{name} has {len(value)} characters, which is too long for the sockets of Paddle, so pods use /tmp; to choose "
        f"another directory, set {name} to a path of at most {LONGEST_TEMPORARY} characters."
        for name, value in options.environment.items()
        if is_too_long(name, value)
    ]


def _interpreter_folder(interpreter: str, store: JobStore) -> Path:
    """A directory in which `python` and `python3` are this interpreter; each interpreter has one of its own.

    They are scripts because a link would hide the virtual environment. Containers execute them at any time, so a file
    that is there is never written to, and a damaged one is replaced: a shell takes an empty file for a program that
    succeeds.
    """
    script = f'#!/bin/sh\nexec {shlex.quote(interpreter)} "$@"\n'.encode()
    folder = store.root / "interpreters" / hashlib.sha256(script).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("python", "python3"):
        if not _contains(folder / name, script):
            replace_file(folder / name, script, mode=0o755)
    return folder


def hidden_by_noexec(interpreter: str, store: JobStore) -> bool:
    """Whether `python` would be another: scripts in the state directory cannot run, and beside it are other ones."""
    existing = next(one for one in (store.root, *store.root.parents) if one.exists())
    if not os.statvfs(existing).f_flag & os.ST_NOEXEC:
        return False
    own = Path(interpreter).resolve()
    return any(Path(interpreter).with_name(name).resolve() != own for name in ("python", "python3"))


def _contains(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except FileNotFoundError:
        return False


def kill_leftovers(folder: JobFolder) -> None:
    """Kill what a killed engine may have left running where there are no PID namespaces."""
    kill_with_variable({f"{MARK}={uid}".encode() for uid in folder.pod_uids()})
