"""A directory as one archive. The same files give the same bytes, wherever and whenever they are packed."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from paddlejob.code.ignore import list_files
from paddlejob.errors import BadArgument, BadInput, NotPossible

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

MOST_BYTES = 10 * 1024 * 1024
"""Packed. More belongs into an image or a volume: every byte is stored in etcd."""
MOST_UNPACKED = 512 * 1024 * 1024
LARGEST_SHOWN = 10
NAME_LENGTH = 16


PRIVATE_KEY = re.compile(
    rb"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
    rb"(?:(?:\s|\\+[nr])+[A-Za-z0-9+/]|(?:\s|\\+[nr]|[\"',+(])*[A-Za-z0-9+/]{32})"
)
"""In a file, a string of JSON, or the strings of a notebook, one for each line; not the mere word in a program."""
BLOCK, OVERLAP = 256 * 1024, 1024
"""Bytes of a file that are searched for a key at once, and those that are searched again with the next."""


@dataclass(frozen=True)
class Archive:
    content: bytes
    files: tuple[str, ...]
    ignored: tuple[str, ...]
    secret: tuple[str, ...] = ()
    """What was left out because of its name, or because it holds a private key."""

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def digest(self) -> str:
        """Names the archive: it changes with any change of a file. Pods compare the whole hash."""
        return self.sha256[:NAME_LENGTH]


def pack(directory: str) -> Archive:
    """Pack what is shipped of a directory; raises with the largest files if that is too much."""
    root = Path(directory)
    if not root.is_dir():
        raise BadArgument("code", "is not a directory", directory)
    listing = list_files(root)
    sizes = {name: (root / name).lstat().st_size for name in listing.files}
    if sum(sizes.values()) > MOST_UNPACKED:
        raise _too_large(directory, f"{_megabytes(sum(sizes.values()))}, more", MOST_UNPACKED, "", sizes)
    keys = {name for name in listing.files if name not in listing.on_purpose and _holds_private_key(root / name)}
    files = [name for name in listing.files if name not in keys]
    if not files:
        raise BadArgument("code", "has no files to ship; all are ignored, or it is empty", directory)
    packed = _Limited()
    try:
        with gzip.GzipFile("", "wb", fileobj=packed, mtime=0) as zipped:
            _tar(root, files, zipped)
    except _TooLarge:
        raise _too_large(directory, "more", MOST_BYTES, " packed", sizes) from None
    return Archive(packed.getvalue(), tuple(files), tuple(listing.ignored), tuple(sorted({*listing.secret, *keys})))


class _TooLarge(Exception):
    pass


class _Limited(io.BytesIO):
    """Packing stops at the limit, however much is left."""

    def write(self, data: ReadableBuffer) -> int:
        written = super().write(data)
        if self.tell() > MOST_BYTES:
            raise _TooLarge
        return written


def _holds_private_key(path: Path) -> bool:
    if path.is_symlink():
        return False
    end = b""
    with _readable(path) as file:
        while block := file.read(BLOCK):
            text = end + block
            # In UTF-16, as Windows writes text, every other byte is 0.
            if any(PRIVATE_KEY.search(one) for one in (text, text[::2], text[1::2])):
                return True
            end = block[-OVERLAP:]
    return False


def _tar(root: Path, files: list[str], output: gzip.GzipFile) -> None:
    with tarfile.open(fileobj=output, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in files:
            path, info = root / name, tarfile.TarInfo(name)
            if path.is_symlink():
                info.type, info.linkname = tarfile.SYMTYPE, _inside(root, path)
                tar.addfile(info)
                continue
            with _readable(path) as file:
                info.size = os.fstat(file.fileno()).st_size
                info.mode = 0o755 if os.access(path, os.X_OK) else 0o644
                tar.addfile(info, file)


@contextmanager
def _readable(path: Path) -> Iterator[IO[bytes]]:
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise NotPossible(f"{path} cannot be read: {error.strerror or error}; add it to .pdjignore") from None


def _inside(root: Path, link: Path) -> str:
    """The target of a link; one that leads out of the directory would lead nowhere in a pod."""
    target = str(link.readlink())
    resolved = Path(os.path.normpath(link.parent / target))
    if Path(target).is_absolute() or not resolved.is_relative_to(os.path.normpath(root)):
        raise BadInput(
            f"{link} is a link to {target}, outside of {root}; copy the file, or leave the link out with .pdjignore"
        )
    return target


def _too_large(directory: str, found: str, limit: int, packed: str, sizes: dict[str, int]) -> BadArgument:
    largest = sorted(sizes.items(), key=lambda pair: -pair[1])[:LARGEST_SHOWN]
    listed = "".join(f"\n  {_megabytes(amount):>10}  {name}" for name, amount in largest)
    problem = (
        f"has {found} than {_megabytes(limit)}{packed}; leave data and models out with .pdjignore and use a volume for "
        f"them. The largest files:{listed}"
    )
    return BadArgument("code", problem, directory)


def _megabytes(size: int) -> str:
    return f"{size / 2**20:.1f} MiB" if size >= 2**20 else f"{size / 1024:.1f} KiB"


def unpack(content: bytes, directory: Path) -> int:
    """Unpack an archive into a directory; returns the number of files."""
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as tar:
        tar.extractall(directory, filter="data")
        return len(tar.getnames())
