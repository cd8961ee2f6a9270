"""The CRDs of an addon."""

from __future__ import annotations

import time
from pathlib import Path

from paddlejob.errors import NotPossible
from testbed.controlplane import ControlPlane


def create_definitions(plane: ControlPlane, directory: Path, owner: str, patience: float = 60) -> None:
    """Create the CRDs in `directory` and wait until the API server serves them.

    The wait is retried, because `kubectl wait` fails on a definition that has no conditions yet.
    """
    plane.kubectl("create", "-f", str(directory))
    deadline = time.monotonic() + patience
    wait = ("wait", "--for=condition=Established", "--timeout=10s", "-f", str(directory))
    while plane.kubectl(*wait, check=False).returncode:
        if time.monotonic() > deadline:
            raise NotPossible(f"the CRDs of {owner} are not established after {patience:.0f} s")
        time.sleep(0.2)
