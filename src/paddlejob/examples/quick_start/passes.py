"""The directories pass-0000N: the parameters after each pass over the data, and the config they were trained with.

pass-00003/___fc_layer_0__.w0, ___fc_layer_0__.wbias   the parameters
pass-00003/trainer_config.lr.py                        the config
pass-00003/path.txt                                    the name of that config
pass-00003/done                                        present only if all of the above is complete
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
    """The newest complete pass."""
    found = [path for path in output.glob("pass-*") if NAME.fullmatch(path.name) and _is_complete(path)]
    return max(found, default=None)


def number_of(directory: Path) -> int:
    return int(directory.name[len("pass-") :])


def remove_drafts(output: Path) -> None:
    """Remove the partial passes of an earlier group."""
    for stale in output.glob(".pass-*"):
        shutil.rmtree(stale, ignore_errors=True)


def write_pass(output: Path, number: int, config: Path, save: Callable[[Path], None]) -> Path:
    """Write a pass atomically: its directory gets its final name when it is complete and on disk.

    The draft has a name of its own: a trainer of a previous group may still be writing the same pass.
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
            _fsync(path)
        _publish(draft, final)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    # Not every shared file system supports fsync on a directory.
    with contextlib.suppress(OSError):
        _fsync(output)
    return final


def _publish(draft: Path, final: Path) -> None:
    """Rename the draft, unless another process has already published a complete pass."""
    if not _is_complete(final):
        shutil.rmtree(final, ignore_errors=True)
    try:
        draft.rename(final)
    except OSError:
        if not _is_complete(final):
            raise


def _is_complete(directory: Path) -> bool:
    return (directory / "done").exists()


def _fsync(path: Path) -> None:
    """A full volume may report its error only here; after a crash a file must not be there without its contents."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
