"""The limits of the control group that this process runs in, as in a container: of CPUs and of memory, v1 and v2."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")


def cpu_limit(root: Path = ROOT, own: Path = OWN) -> float | None:
    """The smallest CPU quota of the group and its parents; None without one. CPU sets show in the affinity."""
    return min((quota for folder in _groups("cpu", root, own) if (quota := _quota(folder)) is not None), default=None)


def memory_limit(root: Path = ROOT, own: Path = OWN) -> int | None:
    """The smallest memory limit of the group and its parents, in bytes; None without one."""
    found = [
        limit
        for folder in _groups("memory", root, own)
        for name in ("memory.max", "memory.limit_in_bytes")
        if (limit := _number(folder / name)) is not None
    ]
    return min(found, default=None)


def _groups(controller: str, root: Path, own: Path) -> Iterator[Path]:
    """The directories of the group and its parents. Inside a container its own group is often mounted at the root."""
    for line in _read(own).splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            mounted = root
        elif controller in controllers.split(","):
            mounted = next((one for one in (root / controllers, root / controller) if one.is_dir()), root)
        else:
            continue
        group = mounted / path.lstrip("/")
        yield from (one for one in (group, *group.parents) if one == mounted or mounted in one.parents)


def _quota(folder: Path) -> float | None:
    quota, _, period = _read(folder / "cpu.max").strip().partition(" ")
    if not quota:
        quota, period = _read(folder / "cpu.cfs_quota_us").strip(), _read(folder / "cpu.cfs_period_us").strip()
    if not quota.isdigit() or not period.isdigit() or not int(period):
        return None
    return int(quota) / int(period)


def _number(path: Path) -> int | None:
    """None for `max` and where there is no such file; v1 writes a huge number for no limit."""
    text = _read(path).strip()
    return int(text) if text.isdigit() else None


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
