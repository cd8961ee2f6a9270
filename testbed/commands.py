"""The verbs of `python -m testbed`: build binaries, start a cluster with a shell, and stop it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any

from paddlejob.errors import NotPossible
from testbed.addons.volcano import Volcano
from testbed.build import recipes
from testbed.build.binaries import binaries
from testbed.cluster import Cluster
from testbed.slot import running

_STATE = "cluster.json"


def build(names: list[str]) -> None:
    """Build the named binaries, or all, and print their paths."""
    for path in binaries(*(names or recipes.names())).values():
        print(path)


def up(nodes: int, volcano: bool) -> None:
    """Run a cluster until its shell exits; without a terminal, until `down`."""
    signal.signal(signal.SIGTERM, _end)
    print("Starting a cluster. The first start builds its binaries, which takes about ten minutes.", file=sys.stderr)
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster(nodes))
        if volcano:
            stack.enter_context(Volcano(cluster.plane))
        state = cluster.kept / _STATE
        stack.callback(state.unlink, missing_ok=True)
        environment = cluster.environment()
        state.write_text(json.dumps({"pid": os.getpid(), "environment": environment}))
        print(f"The cluster is up: export KUBECONFIG={cluster.kubeconfig}", file=sys.stderr)
        if sys.stdin.isatty():
            _shell(environment)
        else:
            signal.pause()


def shell() -> None:
    """Open another shell for the running cluster."""
    _shell(_state(_latest())["environment"])


def down() -> None:
    """Stop every cluster started by `up`, and wait until it has stopped."""
    for directory in _up():
        pid = _state(directory)["pid"]
        os.kill(pid, signal.SIGTERM)
        while directory in running():
            time.sleep(0.1)
        print(f"Stopped the cluster of process {pid}.", file=sys.stderr)


def _up() -> list[Path]:
    return [directory for directory in running() if (directory / _STATE).exists()]


def _latest() -> Path:
    clusters = _up()
    if not clusters:
        raise NotPossible("no cluster is running; start one with `make cluster`")
    return clusters[-1]


def _state(directory: Path) -> dict[str, Any]:
    state: dict[str, Any] = json.loads((directory / _STATE).read_text())
    return state


def _shell(environment: dict[str, str]) -> None:
    print("kubectl is configured for the cluster in this shell.", file=sys.stderr)
    subprocess.run([os.environ.get("SHELL", "/bin/sh")], env=environment)


def _end(number: int, frame: FrameType | None) -> None:
    sys.exit(0)
