"""The last lines of a file that may be large."""

from __future__ import annotations

import re
from pathlib import Path

from paddlejob.cli.targets.target import JobView, PodView
from paddlejob.local.logs import without_environment

LONGEST = 300
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


def last_lines(path: Path, count: int, most_bytes: int = 8192) -> list[str]:
    """Without control characters: they would move the cursor of whoever prints them."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - most_bytes))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    text = without_environment(text)
    lines = [CONTROL.sub("", line.rpartition("\r")[2]).rstrip() for line in text.rstrip("\r\n").split("\n")]
    return [_short(line) for line in lines if line][-count:]


def telling(view: JobView) -> PodView | None:
    """The replica whose log says most: the one that the status names, else one that failed, else the first worker."""
    said = view.job.status.message.partition("\n")[0].split()

    def rank(pod: PodView) -> tuple[bool, bool, bool, int]:
        return pod.name not in said, pod.state != "Failed", pod.role != "worker", pod.index

    return next((pod for pod in sorted(view.pods, key=rank) if pod.log and Path(pod.log).exists()), None)


def _short(line: str) -> str:
    return line if len(line) <= LONGEST else line[:LONGEST] + " ..."
