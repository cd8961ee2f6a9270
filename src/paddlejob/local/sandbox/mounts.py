"""The file tree of one container, in its own mount namespace: volumes at the paths where the template mounts them.

A mount point that does not exist is created, as container engines do: what the program writes beside it is kept. Where
it cannot be created, and in the root directory, a copy of the directory's entries is mounted from memory over it. The
copy is read-only, because what is written to it would be lost.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import NotRequired, TypedDict

from paddlejob.local.sandbox import kernel

ROOT = Path("/")
AT_A_FILE = (
    "mountPath {path} is a file on this machine, and the volume is a directory; choose another mountPath, or mount one "
    "file of the volume there with subPath"
)


class Mount(TypedDict):
    """A bind mount of a directory or file."""

    target: str
    source: str
    readonly: NotRequired[bool]
    memory: NotRequired[str]
    """The directory of a volume in memory, in which the source is."""
    size: NotRequired[int]
    """The size of that volume, if it is limited."""
    image: NotRequired[bool]
    """A file of the image. Its mount point is never created on the host."""


def mount_memory(mounts: list[Mount], mounted: set[str]) -> None:
    """Mount volumes in memory that are not mounted yet, where all containers of a pod find them.

    A volume is released when the directory of its pod is removed: the kernel then detaches the mount.
    """
    for mount in mounts:
        path = mount.get("memory")
        if path and path not in mounted:
            size = f",size={mount['size']}" if "size" in mount else ""
            kernel.mount("paddlejob", path, "tmpfs", options=f"mode=1777{size}")
            mounted.add(path)


def arrange(mounts: list[Mount], stage: Path) -> None:
    """Mount all, parents first. `stage` is an empty directory used as a temporary mount point."""
    kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    mirrors: dict[Path, bool] = {}
    for mount in sorted(mounts, key=lambda one: one["target"].count("/")):
        target = Path(os.path.normpath(mount["target"]))
        if "memory" in mount:
            _create_in_memory(Path(mount["source"]), Path(mount["memory"]))
        _check_source(mount, target)
        if not target.exists():
            _make_mount_point(mount, target, stage, mirrors)
        _check_kind(mount, target)
        _mount(mount, target)
    kernel.mount("proc", "/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
    for mirror in (directory for directory, readonly in mirrors.items() if readonly):
        kernel.mount("none", str(mirror), flags=kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY)


def _check_source(mount: Mount, target: Path) -> None:
    """Before the mount point is created: what does not exist would be taken for a file."""
    try:
        Path(mount["source"]).stat()
    except OSError as error:
        raise RuntimeError(
            f"mount {mount['source']} at {target}: {error.strerror}; check that it exists and can be read"
        ) from None


def _check_kind(mount: Mount, target: Path) -> None:
    """A directory cannot be mounted at a file, nor a file at a directory."""
    is_directory = Path(mount["source"]).is_dir()
    if is_directory and not target.is_dir():
        raise RuntimeError(AT_A_FILE.format(path=target))
    if not is_directory and target.is_dir():
        raise RuntimeError(
            f"{target} is a directory on this machine, and a file is to be mounted there; choose another"
        )


def _create_in_memory(source: Path, volume: Path) -> None:
    """The part of a volume that subPath names. Other containers of the pod write to it, so it may contain links."""
    if not Path(os.path.realpath(source)).is_relative_to(os.path.realpath(volume)):
        raise RuntimeError(f"subPath {source.relative_to(volume)} points outside the volume; remove the link in it")
    source.mkdir(parents=True, exist_ok=True)


def _make_mount_point(mount: Mount, target: Path, stage: Path, mirrors: dict[Path, bool]) -> None:
    """Create it in the nearest directory, or in a copy of that; by `mirrors` whether each copy is read-only."""
    above = next(parent for parent in target.parents if parent.is_dir())
    image = mount.get("image", False)
    if above in mirrors or (above != ROOT and not image):
        with suppress(OSError):
            _create_mount_point(mount, target)
            return
    if above not in mirrors:
        _mirror(above, stage)
    mirrors[above] = mirrors.get(above, True) and not image
    _create_mount_point(mount, target)


def _create_mount_point(mount: Mount, target: Path) -> None:
    if Path(mount["source"]).is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()


def _mirror(directory: Path, stage: Path) -> None:
    """Mount a file system from memory over a directory, with the same entries."""
    kernel.mount("paddlejob", str(stage), "tmpfs", options="mode=755")
    kernel.mount("none", str(stage), flags=kernel.MS_UNBINDABLE)
    for entry in sorted(directory.iterdir()):
        with suppress(FileNotFoundError):  # it was removed meanwhile
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
    kernel.mount(mount["source"], str(target), flags=kernel.MS_BIND | kernel.MS_REC)
    if mount.get("readonly"):
        # Flags of the file system must be repeated: removing one needs privileges that we may not have.
        kept = os.statvfs(target).f_flag & (kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
        kernel.mount("none", str(target), flags=kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | kept)
