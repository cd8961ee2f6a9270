"""Checkpoints of a parameter-server job: the servers write the tables, the first worker says which set is whole.

    OUTPUT_DIR/epoch-3/      one directory for each table, written by all servers
    OUTPUT_DIR/latest.json   the newest whole checkpoint, replaced in one step

Paddle's servers hand a path to a shell without quotes. So the servers work inside OUTPUT_DIR and are told names
relative to it: then OUTPUT_DIR itself may hold spaces.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import NamedTuple


class Score(NamedTuple):
    """How well the model does on held-out samples."""

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
        """What the servers call the checkpoint of an epoch."""
        return f"epoch-{epoch}"

    def newest(self, servers: int) -> Checkpoint | None:
        """The checkpoint to go on from, if there is one."""
        if not self.latest.exists():
            return None
        record = json.loads(self.latest.read_text())
        found = Checkpoint(record["epoch"], record["servers"], Score(*record["untrained"]), Score(*record["score"]))
        if found.servers != servers:
            sys.exit(
                f"{self.latest}: was written by {found.servers} servers, this job has {servers}; "
                "use as many servers again, or another OUTPUT_DIR"
            )
        return found

    def clear(self, epoch: int) -> None:
        """Remove a checkpoint, or what an attempt that died while saving left of it."""
        shutil.rmtree(self.directory / self.name(epoch), ignore_errors=True)

    def publish(self, checkpoint: Checkpoint) -> None:
        """Name a checkpoint the newest, now that it is whole, and keep only one older."""
        if not (self.directory / self.name(checkpoint.epoch)).is_dir():
            sys.exit(
                f"{self.directory / self.name(checkpoint.epoch)}: not there after the servers saved it; "
                "OUTPUT_DIR must be one directory that all servers and workers share"
            )
        partial = self.latest.with_suffix(".partial")
        partial.write_text(json.dumps(checkpoint._asdict()))
        partial.replace(self.latest)
        self.clear(checkpoint.epoch - 2)
