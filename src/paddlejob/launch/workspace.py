"""The directory that a pod trains in: the files of TRAIN_CONFIG_DIR, and its part of the data at ./data."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from paddlejob.launch.settings import Settings
from paddlejob.launch.words import LaunchError, listed, say


@contextlib.contextmanager
def workspace(settings: Settings, part: int | None) -> Iterator[Path]:
    """A copy inside the container, removed afterwards. Without a part, no data is copied: a server reads none."""
    directory = Path(tempfile.mkdtemp(prefix=f"{settings.job}-"))
    try:
        for entry in sorted(settings.config.iterdir()):
            _copy(entry, directory / entry.name)
        if part is not None:
            shutil.rmtree(str(directory / "data"), ignore_errors=True)
            _copy_part(settings, part, directory / "data")
        yield directory
    finally:
        shutil.rmtree(str(directory), ignore_errors=True)


def _copy_part(settings: Settings, part: int, target: Path) -> None:
    source = settings.part(part)
    if not source.is_dir():
        there = sorted((one.name for one in settings.root.iterdir() if (one / "data").is_dir()), key=_as_number)
        raise LaunchError(
            f"{source}: trainer {part} has no data; there are parts {listed(there)}. Split the data into as many "
            f"parts as there are trainers (SPLIT_COUNT={settings.trainers})"
        )
    _copy(source, target)
    files = [path for path in target.rglob("*") if path.is_file()]
    say(f"copied {len(files)} files, {sum(path.stat().st_size for path in files)} bytes, from {source}")


def _copy(source: Path, target: Path) -> None:
    try:
        if source.is_dir():
            shutil.copytree(str(source), str(target))
        else:
            shutil.copy2(str(source), str(target))
    except (OSError, shutil.Error) as error:
        raise LaunchError(f"{source}: cannot be copied to {target.parent}: {error}") from None


def _as_number(name: str) -> tuple[int, str]:
    return (int(name), "") if name.isdigit() else (-1, name)
