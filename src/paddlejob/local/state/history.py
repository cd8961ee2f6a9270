"""Former runs: when a job is run again under its name, the records and logs of the last run are kept.

They lie in history/NAMESPACE/NAME/NUMBER below the state directory, as they lay in the directory of the job.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

NUMBER = "number"
KEPT = (NUMBER, "job.json", "status.json", "pods.json", "events.jsonl", "engine.log", "logs")
"""Without the options of the run, which hold Secrets and the user's environment, and without volumes."""


@dataclass(frozen=True)
class FormerRun:
    number: int
    path: Path
    size: int
    """Bytes on disk."""


def size_of(path: Path) -> int:
    return sum(one.lstat().st_size for one in path.rglob("*") if one.is_file())


class History:
    """The former runs of one name."""

    def __init__(self, root: Path, key: tuple[str, str]) -> None:
        self.path = root / "history" / key[0] / key[1]

    def runs(self) -> list[FormerRun]:
        """Oldest first."""
        found = (path for path in self.path.glob("*") if path.name.isdecimal() and path.is_dir())
        return sorted((FormerRun(int(path.name), path, size_of(path)) for path in found), key=lambda run: run.number)

    def number_of(self, present: Path) -> int:
        """Which run of this name the job in that directory is, from 1; jobs of 0.1 have not recorded it."""
        try:
            return int((present / NUMBER).read_text())
        except (OSError, ValueError):
            return max((run.number for run in self.runs()), default=0) + 1

    def keep(self, present: Path) -> int:
        """Move the directory of a job without a runner here; returns the number of the run that follows it."""
        number = self.number_of(present)
        if not (present / "job.json").exists():
            _remove(present)
            return number
        self.path.mkdir(parents=True, exist_ok=True)
        kept = self.path / str(number)
        present.rename(kept)
        for one in kept.iterdir():
            if one.name not in KEPT:
                _remove(one)
        return number + 1

    def trim(self, most: int, most_bytes: float) -> list[FormerRun]:
        """Remove the oldest runs beyond a number and a size; returns what was removed, oldest first."""
        total = 0
        removed: list[FormerRun] = []
        for age, run in enumerate(reversed(self.runs())):
            total += run.size
            if age >= most or total > most_bytes:
                removed.insert(0, run)
                _remove(run.path)
        return removed

    def forget(self) -> None:
        _remove(self.path)


def names_with_history(root: Path) -> list[tuple[str, str]]:
    """Namespaces and names of jobs with former runs, also of jobs that no longer exist."""
    return sorted((path.parent.name, path.name) for path in root.glob("history/*/*") if path.is_dir())


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
