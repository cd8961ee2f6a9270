"""The directory that a pod trains in: the files of TRAIN_CONFIG_DIR, and its part of the data at ./data."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from paddlejob.launch.settings import Settings
from paddlejob.launch.words import LaunchError, listed, say


@contextlib.contextmanager
def workspace(settings: Settings, part: int | None, before_each: Callable[[], None] | None = None) -> Iterator[Path]:
    """A copy inside the container, removed afterwards. Without a part, no data is copied: a server reads none.

    What is to be called before each file may raise, where it makes no sense to go on copying.
    """
    try:
        directory = Path(tempfile.mkdtemp(prefix=f"{settings.job}-"))
    except OSError as error:
        raise LaunchError(f"{tempfile.gettempdir()}: no directory to train in can be made there: {error}") from None
    try:
        copy = Copy(before_each or _nothing)
        for entry in _entries(settings.config):
            if part is None or entry.name != "data":
                copy(entry, directory / entry.name)
        if part is not None:
            _copy_part(settings, part, directory / "data", copy)
        yield directory
    finally:
        shutil.rmtree(str(directory), ignore_errors=True)


class Copy:
    def __init__(self, before_each: Callable[[], None]) -> None:
        self._before_each = before_each

    def __call__(self, source: Path, target: Path) -> None:
        try:
            if source.is_dir():
                shutil.copytree(str(source), str(target), copy_function=self._file)
            else:
                self._file(str(source), str(target))
        except shutil.Error as error:
            raise LaunchError(f"{source}: cannot be copied to {target.parent}: {error.args[0][0][2]}") from None
        except OSError as error:
            raise LaunchError(f"{source}: cannot be copied to {target.parent}: {error}") from None

    def _file(self, source: str, target: str) -> None:
        self._before_each()
        shutil.copy2(source, target)


def _copy_part(settings: Settings, part: int, target: Path, copy: Copy) -> None:
    source = settings.part(part)
    if not source.is_dir():
        there = sorted((one.name for one in _entries(settings.root) if one.name.isdecimal()), key=int)
        raise LaunchError(
            f"{source}: trainer {part} has no data; there are parts {listed(there)}. Split the data into as many "
            f"parts as there are trainers (SPLIT_COUNT={settings.trainers})"
        )
    copy(source, target)
    files = [path for path in target.rglob("*") if path.is_file()]
    say(f"copied {len(files)} files, {sum(path.stat().st_size for path in files)} bytes, from {source}")


def _entries(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError as error:
        raise LaunchError(f"{directory}: cannot be read: {error.strerror}") from None


def _nothing() -> None:
    pass
