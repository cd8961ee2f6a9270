"""The directories pass-0000N: one after each pass over the data, with the parameters and how they came about.

pass-00003/___fc_layer_0__.w0, ___fc_layer_0__.wbias   the parameters
pass-00003/trainer_config.lr.py                        the config that they were trained with
pass-00003/path.txt                                    the name of that config
pass-00003/done                                        there only where all of the above is whole
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

NAME = re.compile(r"pass-(\d{5})")


def last_pass(output: Path) -> Path | None:
    """The newest whole one."""
    found = [path for path in output.glob("pass-*") if NAME.fullmatch(path.name) and _whole(path)]
    return max(found, default=None)


def number_of(directory: Path) -> int:
    return int(directory.name[len("pass-") :])


def remove_drafts(output: Path) -> None:
    """What was being written when an earlier group died."""
    for stale in output.glob(".pass-*"):
        shutil.rmtree(stale, ignore_errors=True)


def write_pass(output: Path, number: int, config: Path, save: Callable[[Path], None]) -> Path:
    """Nobody ever sees a half one: it gets its name when it is whole, and on the disk.

    The draft is this process's own: a trainer of a group that is about to end may still be writing the same pass.
    """
    final = output / f"pass-{number:05d}"
    draft = output / f".{final.name}-{socket.gethostname()}-{os.getpid()}"
    try:
        draft.mkdir(parents=True)
        save(draft)
        shutil.copy(config, draft / config.name)
        (draft / "path.txt").write_text(f"{config.name}\n")
        (draft / "done").touch()
        for path in draft.iterdir():
            _flush(path)
        _give_name(draft, final)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    # Not every shared file system can flush a directory.
    with contextlib.suppress(OSError):
        _flush(output)
    return final


def _give_name(draft: Path, final: Path) -> None:
    """A whole pass of that name stays: the one who wrote it was first, and trained as well."""
    if not _whole(final):
        shutil.rmtree(final, ignore_errors=True)
    try:
        draft.rename(final)
    except OSError:
        if not _whole(final):
            raise


def _whole(directory: Path) -> bool:
    return (directory / "done").exists()


def _flush(path: Path) -> None:
    """A full volume may say so only now; and after a crash a name must not be there without its content."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
