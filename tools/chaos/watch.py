"""What is noted about the operator during the run: its log, which ends with its pod, and its memory."""

from __future__ import annotations

import re
import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ERRORS = re.compile(r"Traceback|never retrieved|never awaited")
GROWTH = 64 * 2**20
PARTS = 6


@dataclass(frozen=True)
class Sample:
    at: float
    process: str
    memory: float


@dataclass
class Watch:
    """`directory` gets the logs and, after a problem, the state of the cluster."""

    directory: Path
    started: float = field(default_factory=time.monotonic)
    samples: list[Sample] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    _read: dict[Path, int] = field(default_factory=dict)

    def note_memory(self, process: str, memory: float) -> None:
        if memory:
            self.samples.append(Sample(time.monotonic() - self.started, process, memory))

    def note_logs(self, files: Sequence[Path]) -> None:
        """Copy what these files got since the last time."""
        for file in files:
            try:
                with file.open("rb") as stream:
                    stream.seek(self._read.get(file, 0))
                    new = stream.read()
            except FileNotFoundError:
                continue
            self._read[file] = self._read.get(file, 0) + len(new)
            text = new.decode(errors="replace")
            self.errors += [line[:300] for line in text.splitlines() if ERRORS.search(line)]
            with (self.directory / "operator.log").open("a") as kept:
                kept.write(text)

    def keep(self, name: str, text: str) -> None:
        (self.directory / name).write_text(text)

    def growth(self) -> list[str]:
        return [
            f"operator {process} grew from {_mib(found[0].memory)} to {_mib(found[-1].memory)}"
            for process, found in self._by_process().items()
            if found[-1].memory - found[0].memory > GROWTH
        ]

    def memory_table(self) -> list[str]:
        """The memory in equal parts of the run, and that of the process that lived longest."""
        if not self.samples:
            return []
        part = max(self.samples[-1].at, 1.0) / PARTS
        lines = [f"{'operator memory':20} {'samples':>7} {'median':>9} {'most':>9}"]
        for number in range(PARTS):
            within = [one.memory for one in self.samples if part * number <= one.at <= part * (number + 1)]
            if within:
                span = f"minute {part * number / 60:.0f} to {part * (number + 1) / 60:.0f}"
                lines.append(f"{span:20} {len(within):7} {_mib(statistics.median(within)):>9} {_mib(max(within)):>9}")
        longest = max(self._by_process().values(), key=lambda found: found[-1].at - found[0].at)
        lived = (longest[-1].at - longest[0].at) / 60
        first, last = _mib(longest[0].memory), _mib(longest[-1].memory)
        lines.append(f"longest process: {lived:.0f} minutes, {first} to {last}, {len(self._by_process())} processes")
        return lines

    def _by_process(self) -> dict[str, list[Sample]]:
        found: dict[str, list[Sample]] = defaultdict(list)
        for sample in self.samples:
            found[sample.process].append(sample)
        return found


def _mib(value: float) -> str:
    return f"{value / 2**20:.0f} MiB"
