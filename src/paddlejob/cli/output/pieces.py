"""Logs on standard output, and a copy of them in files."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from paddlejob.client.describe.log_lines import lines_of
from paddlejob.errors import BadInput

REPLICA = re.compile(rb"\[((?:ps|worker|heter)-\d+)\] ")


def print_pieces(pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()


def copied(pieces: Iterable[bytes], directory: str, job: str) -> Iterator[bytes]:
    """The same lines, each also written to the file of its replica; nothing that exists is overwritten."""
    folder = Path(directory)
    if folder.exists() and (not folder.is_dir() or any(folder.glob(f"{job}*.log"))):
        raise BadInput(f"--save {directory}: is not a directory, or has logs of {job} already; choose another")
    folder.mkdir(parents=True, exist_ok=True)
    return _copied(pieces, folder, job)


def _copied(pieces: Iterable[bytes], folder: Path, job: str) -> Iterator[bytes]:
    with ExitStack() as stack:
        files: dict[str, BinaryIO] = {}
        for line in lines_of(pieces):
            match = REPLICA.match(line)
            name = f"{job}-{match[1].decode()}.log" if match else f"{job}.log"
            if name not in files:
                files[name] = stack.enter_context((folder / name).open("wb", buffering=0))
            files[name].write(line[match.end() :] if match else line)
            yield line
