"""Control groups of a node: made before it starts, removed after it ended."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
# What a kubelet wants below its root; in the older layout each has a hierarchy of its own.
_UNIFIED_CONTROLLERS = "+cpu +cpuset +io +memory +pids"


def make(name: str) -> None:
    """A group `name` in every hierarchy, so that the kubelets of several nodes do not see each other's pods."""
    for hierarchy in _hierarchies():
        (hierarchy / name).mkdir(exist_ok=True)
        _inherit_cpuset(hierarchy, hierarchy / name)
        if _unified():
            for directory in (hierarchy, hierarchy / name):
                (directory / "cgroup.subtree_control").write_text(_UNIFIED_CONTROLLERS)


def remove(name: str, patience: float = 10.0) -> None:
    """Remove the group and all below it, deepest first; what dying processes still hold is tried again."""
    deadline = time.monotonic() + patience
    while any(not _emptied(hierarchy / name) for hierarchy in _hierarchies()):
        if time.monotonic() > deadline:
            return
        time.sleep(0.1)


def beginning_with(prefix: str) -> set[str]:
    """Names of the groups, in any hierarchy, that begin so."""
    return {group.name for hierarchy in _hierarchies() for group in hierarchy.glob(f"{prefix}*") if group.is_dir()}


def _emptied(group: Path) -> bool:
    for directory, _, _ in os.walk(group, topdown=False):
        with suppress(OSError):
            Path(directory).rmdir()
    return not group.exists()


def _hierarchies() -> list[Path]:
    if _unified():
        return [_ROOT]
    return [path for path in sorted(_ROOT.iterdir()) if (path / "cgroup.procs").exists()]


def _unified() -> bool:
    return (_ROOT / "cgroup.controllers").exists()


def _inherit_cpuset(parent: Path, child: Path) -> None:
    for file in ("cpuset.cpus", "cpuset.mems"):
        if not _unified() and (child / file).exists():
            (child / file).write_text((parent / file).read_text())
