"""Pods whose `paddle` is a fake of the command of 2016: it records its arguments and exits on request."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.launch.pods import START_SH, Stage, wait_until

RECORDER = """#!/bin/bash
# paddle pserver runs until it is stopped; paddle train runs the contents of the file `go` once it exists.
echo "$(cat data/part.txt)" > "$RECORD/data-$PADDLEJOB_POD_IP"
echo "this is $1"
echo "$*" >> "$RECORD/$1-$PADDLEJOB_POD_IP"
if [ "$1" = pserver ]; then exec sleep 600; fi
while [ ! -e "$RECORD/go-$PADDLEJOB_POD_IP" ]; do sleep 0.1; done
eval "$(cat "$RECORD/go-$PADDLEJOB_POD_IP")"
"""


class Cluster:
    """Three pods whose `paddle` only records."""

    def __init__(self, on: Stage, directory: Path, parts: int = 3, python: Path = Path(sys.executable)) -> None:
        self.on = on
        self.record = directory / "record"
        self.bin = directory / "bin"
        for made in (self.record, self.bin, on.job / "recommendation"):
            made.mkdir(parents=True)
        (on.job / "recommendation" / "trainer_config.py").touch()
        for part in range(parts):
            (on.job / str(part) / "data").mkdir(parents=True)
            (on.job / str(part) / "data" / "part.txt").write_text(f"part {part}\n")
        (self.bin / "paddle").write_text(RECORDER)
        (self.bin / "paddle").chmod(0o755)
        (self.bin / "python3").symlink_to(python)
        self.env = {
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "RECORD": str(self.record),
            "TRAIN_CONFIG_DIR": "recommendation",
            "TRAINER_COUNT": "4",
        }

    def start(self, **extra: str) -> Cluster:
        self.pods = self.on.start([str(START_SH)], self.env | extra)
        return self

    def trains(self, rank: int) -> bool:
        return (self.record / f"train-{self.on.addresses[rank]}").exists()

    def wait_for_trainers(self, ranks: Iterable[int] = range(3)) -> None:
        wait_until(lambda: all(self.trains(rank) for rank in ranks), "all trainers run", self.pods)

    def finish(self, rank: int, script: str = "exit 0") -> None:
        draft = self.record / "draft"
        draft.write_text(script)
        draft.rename(self.record / f"go-{self.on.addresses[rank]}")

    def recorded(self, what: str, rank: int) -> list[str]:
        path = self.record / f"{what}-{self.on.addresses[rank]}"
        wait_until(lambda: path.exists() and path.read_text().endswith("\n"), f"{path.name} is recorded", self.pods)
        return shlex.split(path.read_text())
