"""The file tree of one pod, made in its own mount namespace: volumes where the template mounts them.

Nothing is left on the host: where a mount point does not exist, the directory above it is covered by a mirror of
itself in memory, in which the mount point can be made.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NotRequired, TypedDict

from paddlejob.local.sandbox import kernel

ROOT = Path("/")


class Mount(TypedDict):
    """A directory or file put somewhere else. Without `source` it is an empty file system in memory."""

    target: str
    source: NotRequired[str]
    readonly: NotRequired[bool]
    size: NotRequired[int]


def arrange(mounts: list[Mount], stage: Path) -> None:
    """Carry out the mounts, shallow ones first. `stage` is an empty directory that is mounted over meanwhile."""
    kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    ours: set[Path] = set()
    for mount in sorted(mounts, key=lambda one: one["target"].count("/")):
        target = Path(os.path.normpath(mount["target"]))
        if not target.exists():
            _make_place(mount, target, stage, ours)
        _mount(mount, target)
        ours.add(target)
    kernel.mount("proc", "/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)


def _make_place(mount: Mount, target: Path, stage: Path, ours: set[Path]) -> None:
    """In a mirror, or in a volume that is mounted above."""
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
    """Cover a directory by a file system in memory that shows the same entries."""
    kernel.mount("paddlejob", str(stage), "tmpfs", options="mode=755")
    kernel.mount("none", str(stage), flags=kernel.MS_UNBINDABLE)
    for entry in sorted(directory.iterdir()):
        _show(entry, stage / entry.name)
    kernel.mount("none", str(stage), flags=kernel.MS_PRIVATE)
    if directory == ROOT:
        os.chdir(stage)
        kernel.mount(str(stage), "/", flags=kernel.MS_MOVE)
        os.chroot(".")
        os.chdir("/")
    else:
        kernel.mount(str(stage), str(directory), flags=kernel.MS_BIND | kernel.MS_REC)
        kernel.detach(str(stage))


def _show(entry: Path, place: Path) -> None:
    if entry.is_symlink():
        place.symlink_to(entry.readlink())
        return
    if entry.is_dir():
        place.mkdir()
    else:
        place.touch()
    kernel.mount(str(entry), str(place), flags=kernel.MS_BIND | kernel.MS_REC)


def _mount(mount: Mount, target: Path) -> None:
    source = mount.get("source")
    if source is None:
        size = f",size={mount['size']}" if "size" in mount else ""
        kernel.mount("paddlejob", str(target), "tmpfs", options=f"mode=1777{size}")
        return
    kernel.mount(source, str(target), flags=kernel.MS_BIND | kernel.MS_REC)
    if mount.get("readonly"):
        # The flags that the file system has already must be repeated: taking one off needs more rights than we have.
        kept = os.statvfs(target).f_flag & (kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
        kernel.mount("none", str(target), flags=kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | kept)
