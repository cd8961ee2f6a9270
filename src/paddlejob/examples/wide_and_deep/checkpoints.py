"""Checkpoints of a parameter-server job: the servers write the tables, the first worker marks a checkpoint complete.

    OUTPUT_DIR/epoch-3/      one directory per table, written by all servers
    OUTPUT_DIR/latest.json   the newest complete checkpoint, replaced atomically

Paddle's servers pass paths to a shell without quoting. The servers therefore run in OUTPUT_DIR and get relative
names, so that OUTPUT_DIR may contain spaces.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import NamedTuple


class Score(NamedTuple):
    """The metrics on held-out samples."""

    loss: float
    auc: float


class Checkpoint(NamedTuple):
    epoch: int
    servers: int
    untrained: Score
    score: Score


class Store:
    """The checkpoints in one directory, as the workers see them."""

    def __init__(self, output_dir: Path) -> None:
        output_dir.mkdir(parents=True, exist_ok=True)
        self.directory = output_dir.resolve()
        self.latest = self.directory / "latest.json"

    @staticmethod
    def name(epoch: int) -> str:
        """The directory name of an epoch's checkpoint, relative to OUTPUT_DIR."""
        return f"epoch-{epoch}"

    def newest(self, servers: int) -> Checkpoint | None:
        """The checkpoint to resume from, if any."""
        if not self.latest.exists():
            return None
        record = json.loads(self.latest.read_text())
        found = Checkpoint(record["epoch"], record["servers"], Score(*record["untrained"]), Score(*record["score"]))
        if found.servers != servers:
            sys.exit(
                f"{self.latest}: written by {found.servers} servers, but this job has {servers}; "
                f"run {found.servers} servers, or use another OUTPUT_DIR"
            )
        return found

    def clear(self, epoch: int) -> None:
        """Remove a checkpoint, or a partial one from an attempt that died while saving."""
        shutil.rmtree(self.directory / self.name(epoch), ignore_errors=True)

    def publish(self, checkpoint: Checkpoint) -> None:
        """Mark a complete checkpoint as the newest, and keep only one older."""
        if not (self.directory / self.name(checkpoint.epoch)).is_dir():
            sys.exit(
                f"{self.directory / self.name(checkpoint.epoch)}: not found after the servers saved it; "
                "OUTPUT_DIR must be a directory shared by all servers and workers"
            )
        partial = self.latest.with_suffix(".partial")
        partial.write_text(json.dumps(checkpoint._asdict()))
        partial.replace(self.latest)
        self.clear(checkpoint.epoch - 2)
