"""Python interpreters for tests: of environments kept in the cache, and some that say which one ran."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from testbed.build.binaries import cache_directory

UV = Path(sys.executable).with_name("uv")


def cached_python(name: str, lock: Path) -> Path:
    """The interpreter of an environment with what a lock file lists, downloaded the first time."""
    key = hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()[:12]
    home = cache_directory() / f"{name}-{key}"
    home.parent.mkdir(parents=True, exist_ok=True)
    python, ready = home / "bin" / "python", home / ".ready"
    with home.with_suffix(".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not ready.exists():
            subprocess.run([UV, "venv", "--quiet", "--clear", "--python", sys.executable, home], check=True)
            subprocess.run([UV, "pip", "sync", "--quiet", "--python", python, lock], check=True)
            ready.touch()
    return python


def interpreter(path: Path) -> str:
    """A Python interpreter that identifies itself in the variable CHOSEN."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\nCHOSEN={shlex.quote(path.name)} exec {sys.executable} "$@"\n')
    path.chmod(0o755)
    return str(path)


def installed(version: str) -> Path | None:
    """The interpreter of this version, on the path or among those of pyenv."""
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    on_path = shutil.which(f"python{version}")
    found = [*versions.glob(f"{version}.*/bin/python3"), *([Path(on_path)] if on_path else [])]
    return next((path for path in found if _is(version, path)), None)


def _is(version: str, path: Path) -> bool:
    script = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([path, "-c", script], capture_output=True, text=True, check=False)
    return done.stdout.strip() == version
