"""The file tree of one container, in its own mount namespace: volumes at the paths where the template mounts them.

Nothing is left on the host: where a mount point does not exist, a copy of its parent's entries is mounted from memory
over the parent, and the mount point is created in that.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NotRequired, TypedDict

from paddlejob.local.sandbox import kernel

ROOT = Path("/")


class Mount(TypedDict):
    """A bind mount of a directory or file; without `source`, an empty file system in memory."""

    target: str
    source: NotRequired[str]
    readonly: NotRequired[bool]
    size: NotRequired[int]


def arrange(mounts: list[Mount], stage: Path) -> None:
    """Mount all, parents first. `stage` is an empty directory used as a temporary mount point."""
    kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    ours: set[Path] = set()
    for mount in sorted(mounts, key=lambda one: one["target"].count("/")):
        target = Path(os.path.normpath(mount["target"]))
        if not target.exists():
            _make_mount_point(mount, target, stage, ours)
        _mount(mount, target)
        ours.add(target)
    kernel.mount("proc", "/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)


def _make_mount_point(mount: Mount, target: Path, stage: Path, ours: set[Path]) -> None:
    """Create it in a mirror of the nearest directory, or in a volume that is mounted above."""
    above = next(parent for parent in target.parents if parent.is_dir())
    if above not in ours and not any(one in above.parents for one in ours - {ROOT}):
        _mirror(above, stage)
        ours.add(above)
    source = mount.get("source")
    if source and not Path(source).is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    else:
        target.mkdir(parents=True, exist_ok=True)


def _mirror(directory: Path, stage: Path) -> None:
    """Mount a file system from memory over a directory, with the same entries."""
    kernel.mount("paddlejob", str(stage), "tmpfs", options="mode=755")
    kernel.mount("none", str(stage), flags=kernel.MS_UNBINDABLE)
    for entry in sorted(directory.iterdir()):
        _bind_entry(entry, stage / entry.name)
    kernel.mount("none", str(stage), flags=kernel.MS_PRIVATE)
    if directory == ROOT:
        os.chdir(stage)
        kernel.mount(str(stage), "/", flags=kernel.MS_MOVE)
        os.chroot(".")
        os.chdir("/")
    else:
        kernel.mount(str(stage), str(directory), flags=kernel.MS_BIND | kernel.MS_REC)
        kernel.detach(str(stage))


def _bind_entry(entry: Path, target: Path) -> None:
    if entry.is_symlink():
        target.symlink_to(entry.readlink())
        return
    if entry.is_dir():
        target.mkdir()
    else:
        target.touch()
    kernel.mount(str(entry), str(target), flags=kernel.MS_BIND | kernel.MS_REC)


def _mount(mount: Mount, target: Path) -> None:
    source = mount.get("source")
    if source is None:
        size = f",size={mount['size']}" if "size" in mount else ""
        kernel.mount("paddlejob", str(target), "tmpfs", options=f"mode=1777{size}")
        return
    kernel.mount(source, str(target), flags=kernel.MS_BIND | kernel.MS_REC)
    if mount.get("readonly"):
        # Flags of the file system must be repeated: removing one needs privileges that we may not have.
        kept = os.statvfs(target).f_flag & (kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
        kernel.mount("none", str(target), flags=kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | kept)
