"""Image layers that are slow to build and therefore cached: a Debian system, Python packages."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from paddlejob.errors import NotPossible
from testbed.build import packages
from testbed.build.binaries import Say, cache_directory
from testbed.images.image import Blob, layer

RELEASE = "bookworm"
# The python3 of the Debian release; packages are fetched for it, not for the Python that runs here.
PYTHON = "3.11"


def debian(include: Sequence[str], say: Say) -> Blob:
    """Return a minimal Debian with the packages `include`."""

    def fill(root: Path) -> None:
        packages.require(packages.IMAGES, say)
        skip = "--dpkgopt=path-exclude=/usr/share/doc/*"
        listed = f"--include={','.join(include)}"
        _call("mmdebstrap", "--variant=minbase", "--quiet", skip, listed, RELEASE, str(root))
        # A container gets its own device files.
        shutil.rmtree(root / "dev", ignore_errors=True)

    return _cached("debian", [RELEASE, *include], fill, "/", say)


def python_packages(requirements: Sequence[str], at: str, say: Say) -> Blob:
    """Return Python packages from wheels, installed in the directory `at` of the image."""

    def fill(root: Path) -> None:
        target = ["--target", str(root), "--python-version", PYTHON, "--only-binary=:all:"]
        platforms = [option for tag in _platforms() for option in ("--platform", tag)]
        _call(sys.executable, "-m", "pip", "install", "--quiet", *target, *platforms, *requirements)

    return _cached("python", [PYTHON, at, *requirements], fill, at, say)


def _cached(kind: str, inputs: list[str], fill: Callable[[Path], None], at: str, say: Say) -> Blob:
    digest = hashlib.sha256(json.dumps(inputs).encode()).hexdigest()[:12]
    target = cache_directory() / "layers" / f"{kind}-{digest}.tar"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        say(f"image layer {kind} {' '.join(inputs)}: building (once)")
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="testbed-layer-", dir=target.parent) as scratch:
            root = Path(scratch, "root")
            root.mkdir(mode=0o755)
            fill(root)
            layer(root, Path(scratch, "layer.tar"), at).path.replace(target)
        say(f"image layer {kind}: built in {time.monotonic() - began:.0f} s")
    return Blob.of(target)


def _platforms() -> list[str]:
    machine = platform.machine()
    return [f"manylinux_2_28_{machine}", f"manylinux_2_17_{machine}", f"manylinux2014_{machine}"]


def _call(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise NotPossible(f"{command[0]} failed: {done.stderr.strip()[-2000:]}")
