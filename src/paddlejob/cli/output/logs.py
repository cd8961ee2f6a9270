"""Logs on standard output, and a copy of them in files."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from paddlejob.cli.output.terminal import unfiltered
from paddlejob.errors import BadInput
from paddlejob.logs.line import LogLine
from paddlejob.text import printable

Batches = Iterable[list[LogLine]]


def print_logs(several: bool, batches: Batches) -> None:
    """Of several replicas, each line starts with the name of its own. A pipe gets the bytes, a terminal clean text."""
    terminal = sys.stdout.isatty()
    for batch in batches:
        printed = b"".join((line.named() if several else line.content) + line.end for line in batch)
        if terminal:
            printed = printable(printed.decode(errors="surrogateescape"), colours=True).encode(errors="surrogateescape")
        unfiltered(sys.stdout).buffer.write(printed)
        unfiltered(sys.stdout).buffer.flush()


def copied(several: bool, batches: Batches, directory: str, job: str) -> Iterator[list[LogLine]]:
    """The same lines, each also written to the file of its replica; nothing that exists is overwritten."""
    folder = Path(directory)
    if folder.exists() and (not folder.is_dir() or any(folder.glob(f"{job}*.log"))):
        raise BadInput(f"--save {directory} is not a directory, or has logs of {job} already; choose another")
    folder.mkdir(parents=True, exist_ok=True)
    return _copied(several, batches, folder, job)


def _copied(several: bool, batches: Batches, folder: Path, job: str) -> Iterator[list[LogLine]]:
    with ExitStack() as stack:
        files: dict[str, BinaryIO] = {}
        for batch in batches:
            for line in batch:
                name = f"{job}-{line.replica}.log" if several else f"{job}.log"
                if name not in files:
                    files[name] = stack.enter_context((folder / name).open("wb", buffering=0))
                files[name].write(line.content + line.end)
            yield batch


def say_retry(reason: str) -> None:
    print(f"pdj: {reason}; retrying (press Ctrl-C to stop)", file=sys.stderr, flush=True)
