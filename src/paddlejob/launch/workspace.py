"""The pod's working directory: the files of TRAIN_CONFIG_DIR, and its part of the data in ./data."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from paddlejob.launch.output import LaunchError, comma_separated, log
from paddlejob.launch.settings import Settings


@contextlib.contextmanager
def workspace(
    settings: Settings, trainer: int | None, before_each_file: Callable[[], None] | None = None
) -> Iterator[Path]:
    """A copy inside the container, removed on exit. Without a trainer id no data is copied: a server reads none.

    `before_each_file` may raise to cancel the copy.
    """
    try:
        directory = Path(tempfile.mkdtemp(prefix=f"{settings.job}-"))
    except OSError as error:
        raise LaunchError(f"{tempfile.gettempdir()}: cannot create a working directory: {error}") from None
    try:
        copier = Copier(before_each_file or _do_nothing)
        for entry in _entries(settings.config):
            if trainer is None or entry.name != "data":
                copier.copy(entry, directory / entry.name)
        if trainer is not None:
            _copy_data(settings, trainer, directory / "data", copier)
        yield directory
    finally:
        shutil.rmtree(str(directory), ignore_errors=True)


class Copier:
    """Copies files and directories, and calls a function before each file."""

    def __init__(self, before_each_file: Callable[[], None]) -> None:
        self._before_each_file = before_each_file

    def copy(self, source: Path, target: Path) -> None:
        try:
            if source.is_dir():
                shutil.copytree(str(source), str(target), copy_function=self._copy_file)
            else:
                self._copy_file(str(source), str(target))
        except shutil.Error as error:
            raise LaunchError(f"{source}: cannot copy to {target.parent}: {error.args[0][0][2]}") from None
        except OSError as error:
            raise LaunchError(f"{source}: cannot copy to {target.parent}: {error}") from None

    def _copy_file(self, source: str, target: str) -> None:
        self._before_each_file()
        shutil.copy2(source, target)


def _copy_data(settings: Settings, trainer: int, target: Path, copier: Copier) -> None:
    source = settings.data_dir(trainer)
    if not source.is_dir():
        found = sorted((entry.name for entry in _entries(settings.root) if entry.name.isdecimal()), key=int)
        raise LaunchError(
            f"{source}: no data for trainer {trainer}; found parts {comma_separated(found)}. Split the data into one "
            f"part per trainer (SPLIT_COUNT={settings.trainers})"
        )
    copier.copy(source, target)
    files = [path for path in target.rglob("*") if path.is_file()]
    log(f"copied {len(files)} files, {sum(path.stat().st_size for path in files)} bytes, from {source}")


def _entries(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError as error:
        raise LaunchError(f"{directory}: cannot read: {error.strerror}") from None


def _do_nothing() -> None:
    pass
