"""The cgroups of a node: created before it starts, removed after it has ended."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
# Controllers that the kubelet needs below its root; in cgroup v1 each has its own hierarchy.
_UNIFIED_CONTROLLERS = "+cpu +cpuset +io +memory +pids"


def make(name: str) -> None:
    """Create a group in every hierarchy, so that kubelets of different nodes do not see each other's pods."""
    for hierarchy in _hierarchies():
        (hierarchy / name).mkdir(exist_ok=True)
        _inherit_cpuset(hierarchy, hierarchy / name)
        if _unified():
            for directory in (hierarchy, hierarchy / name):
                (directory / "cgroup.subtree_control").write_text(_UNIFIED_CONTROLLERS)


def remove(name: str, patience: float = 10.0) -> None:
    """Remove the group and its children, deepest first. Retries while exiting processes still use a group."""
    deadline = time.monotonic() + patience
    while any(not _removed(hierarchy / name) for hierarchy in _hierarchies()):
        if time.monotonic() > deadline:
            return
        time.sleep(0.1)


def with_prefix(prefix: str) -> set[str]:
    """Return the names of all groups with this prefix, in any hierarchy."""
    return {group.name for hierarchy in _hierarchies() for group in hierarchy.glob(f"{prefix}*") if group.is_dir()}


def _removed(group: Path) -> bool:
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
