"""Previous runs: when a job is run again under its name, the records and logs of the last run are kept.

They lie in history/NAMESPACE/NAME/NUMBER below the state directory, as they lay in the directory of the job.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

NUMBER = "number"
KEPT = (NUMBER, "job.json", "status.json", "pods.json", "events.jsonl", "engine.log", "metrics.jsonl", "logs")
"""Without the options of the run, which hold Secrets and the user's environment, and without volumes."""


@dataclass(frozen=True)
class PreviousRun:
    number: int
    path: Path
    size: int
    """Bytes on disk."""


def size_of(path: Path) -> int:
    return sum(one.lstat().st_size for one in path.rglob("*") if one.is_file())


class History:
    """The previous runs of one name."""

    def __init__(self, root: Path, key: tuple[str, str]) -> None:
        self.path = root / "history" / key[0] / key[1]

    def runs(self) -> list[PreviousRun]:
        """Oldest first."""
        found = (path for path in self.path.glob("*") if path.name.isdecimal() and path.is_dir())
        return sorted((PreviousRun(int(path.name), path, size_of(path)) for path in found), key=lambda run: run.number)

    def number_of(self, present: Path) -> int:
        """Which run of this name the job in that directory is, from 1; by default the one after the last kept."""
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

    def trim(self, most: int, most_bytes: float) -> list[PreviousRun]:
        """Keep the newest runs that fit into a number and a size; returns what was removed, oldest first.

        A run that does not fit leaves the room to older ones: a single large one must not cost all of them.
        """
        kept, total = 0, 0
        removed: list[PreviousRun] = []
        for run in reversed(self.runs()):
            if kept < most and total + run.size <= most_bytes:
                kept, total = kept + 1, total + run.size
            else:
                removed.insert(0, run)
                _remove(run.path)
        return removed

    def forget(self) -> None:
        _remove(self.path)


def names_with_history(root: Path) -> list[tuple[str, str]]:
    """Namespaces and names of jobs with previous runs, also of jobs that no longer exist."""
    return sorted((path.parent.name, path.name) for path in root.glob("history/*/*") if path.is_dir())


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
