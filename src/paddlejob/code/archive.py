"""A directory as one archive. The same files give the same bytes, wherever and whenever they are packed."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
from dataclasses import dataclass
from pathlib import Path

from paddlejob.code.ignore import list_files
from paddlejob.errors import BadInput, NotPossible

MOST_BYTES = 10 * 1024 * 1024
"""Packed. More belongs into an image or a volume: every byte is stored in etcd."""
MOST_UNPACKED = 512 * 1024 * 1024
LARGEST_SHOWN = 10


@dataclass(frozen=True)
class Archive:
    content: bytes
    files: tuple[str, ...]
    ignored: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Names the archive: it changes with any change of a file."""
        return hashlib.sha256(self.content).hexdigest()[:16]


def pack(directory: str) -> Archive:
    """Pack what is shipped of a directory; raises with the largest files if that is too much."""
    root = Path(directory)
    if not root.is_dir():
        raise BadInput(f"--code {directory}: is not a directory")
    listing = list_files(root)
    if not listing.files:
        raise BadInput(f"--code {directory}: has no files to ship; all are ignored, or it is empty")
    sizes = {name: (root / name).lstat().st_size for name in listing.files}
    if sum(sizes.values()) > MOST_UNPACKED:
        raise _too_large(directory, sum(sizes.values()), MOST_UNPACKED, "", sizes)
    content = gzip.compress(_tar(root, listing.files), mtime=0)
    if len(content) > MOST_BYTES:
        raise _too_large(directory, len(content), MOST_BYTES, " packed", sizes)
    return Archive(content, listing.files, listing.ignored)


def _tar(root: Path, files: tuple[str, ...]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in files:
            _add(tar, root, name)
    return buffer.getvalue()


def _add(tar: tarfile.TarFile, root: Path, name: str) -> None:
    path = root / name
    info = tarfile.TarInfo(name)
    try:
        if path.is_symlink():
            info.type, info.linkname = tarfile.SYMTYPE, _inside(root, path)
            tar.addfile(info)
            return
        content = path.read_bytes()
    except OSError as error:
        raise NotPossible(f"{path}: cannot be read: {error.strerror}; add it to .pdjignore") from None
    info.size = len(content)
    info.mode = 0o755 if os.access(path, os.X_OK) else 0o644
    tar.addfile(info, io.BytesIO(content))


def _inside(root: Path, link: Path) -> str:
    """The target of a link; one that leads out of the directory would lead nowhere in a pod."""
    target = str(link.readlink())
    resolved = Path(os.path.normpath(link.parent / target))
    if Path(target).is_absolute() or not resolved.is_relative_to(os.path.normpath(root)):
        raise BadInput(
            f"{link}: is a link to {target}, outside of {root}; copy the file, or leave the link out with .pdjignore"
        )
    return target


def _too_large(directory: str, size: int, limit: int, packed: str, sizes: dict[str, int]) -> BadInput:
    largest = sorted(sizes.items(), key=lambda pair: -pair[1])[:LARGEST_SHOWN]
    listed = "".join(f"\n  {_megabytes(amount):>10}  {name}" for name, amount in largest)
    return BadInput(
        f"--code {directory}: has {_megabytes(size)}{packed}, more than {_megabytes(limit)}; leave data and models out "
        f"with .pdjignore and use a volume for them. The largest files:{listed}"
    )


def _megabytes(size: int) -> str:
    return f"{size / 2**20:.1f} MiB" if size >= 2**20 else f"{size / 1024:.1f} KiB"


def unpack(content: bytes, directory: Path) -> int:
    """Unpack an archive into a directory; returns the number of files."""
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as tar:
        tar.extractall(directory, filter="data")
        return len(tar.getnames())
