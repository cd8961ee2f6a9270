"""Checkpoints of a collective job: the first worker writes them, and all workers start from the newest.

    OUTPUT_DIR/step-00000120.pdckpt    the model, the optimizer and the step, in one file

A file gets this name once it is complete and on disk, so a worker may be killed at any time. The newest two are kept,
and one that cannot be read is skipped. Nothing in a file depends on the number of workers.
"""

from __future__ import annotations

import contextlib
import io
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import paddle
import paddle.distributed as dist
from workers import log

KEPT = 2


class Checkpoints:
    """The checkpoints of one model and its optimizer; without a directory, none are read or written."""

    def __init__(self, directory: Path | None, network: Any, optimizer: Any) -> None:
        self.directory = directory
        self.network = network
        self.optimizer = optimizer

    def restore(self) -> int:
        """Load the newest checkpoint that any worker has, and return its step; 0 if there is none."""
        if not self.directory:
            return 0
        if dist.get_rank() == 0:
            _remove(self.directory.glob("partial-*"))
        state, file = _newest(self.directory)
        steps: list[int] = [state["step"]]
        if dist.get_world_size() > 1:
            steps.clear()
            dist.all_gather_object(steps, state["step"])
        # On a hostPath, each node has files of its own: the worker with the newest sends it to the others.
        if min(steps) < max(steps):
            sent = [file.read_bytes() if file else b""]
            dist.broadcast_object_list(sent, src=steps.index(max(steps)))
            state = paddle.load(io.BytesIO(sent[0]))
        if state["step"]:
            self.network.set_state_dict(state["network"])
            self.optimizer.set_state_dict(state["optimizer"])
        return int(state["step"])

    def save(self, step: int) -> None:
        """Write a checkpoint, on the first worker only: all workers hold the same model."""
        if not self.directory or dist.get_rank() != 0:
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        # A name of its own: the first worker of an attempt that was given up may still be writing.
        partial = self.directory / f"partial-{uuid.uuid4().hex}"
        state = {"step": step, "network": self.network.state_dict(), "optimizer": self.optimizer.state_dict()}
        paddle.save(state, os.fspath(partial))
        _sync(partial)
        partial.replace(self.directory / f"step-{step:08d}.pdckpt")
        with contextlib.suppress(OSError):  # some network file systems cannot synchronize a directory
            _sync(self.directory)
        _remove(_files(self.directory)[:-KEPT])
        log(f"checkpoint step={step} saved")


def _newest(directory: Path) -> tuple[Mapping[str, Any], Path | None]:
    """The newest checkpoint that can be read, and its file."""
    for file in reversed(_files(directory)):
        try:
            return paddle.load(os.fspath(file)), file
        except Exception as error:  # whatever pickle raises on a damaged file
            print(f"{file} cannot be read ({type(error).__name__}: {error}); trying the one before", flush=True)
    return {"step": 0}, None


def _files(directory: Path) -> list[Path]:
    return sorted(directory.glob("step-*.pdckpt"))


def _remove(files: Any) -> None:
    for file in list(files):
        file.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
