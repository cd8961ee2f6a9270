"""The workers of a job: who they are, as the environment says at each start, and what the first of them prints."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import Any

import paddle
import paddle.distributed as dist


def join() -> None:
    """Connect with the other workers.

    fleet.init would create more process groups than this needs; with three workers on gloo and a loaded machine, one
    of them was once not ready within its timeout of 150 seconds.
    """
    # The launcher sets the backend; without it Paddle defaults to NCCL.
    if not paddle.is_compiled_with_cuda():
        os.environ.setdefault("PADDLE_DISTRI_BACKEND", "gloo")
    _await_first_worker()
    dist.init_parallel_env()


def _await_first_worker(patience: float = 30.0) -> None:
    """Wait until worker 0 listens: Paddle itself would try again only after 3 s."""
    master = os.getenv("PADDLE_MASTER") or os.getenv("PADDLE_TRAINER_ENDPOINTS", "").split(",")[0]
    host, _, port = master.rpartition(":")
    deadline = time.monotonic() + patience
    while os.getenv("PADDLE_TRAINER_ID", "0") != "0" and host and time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex((host, int(port))) == 0:
                return
        time.sleep(0.05)


def averaging(network: Any) -> Any:
    """The network with gradients that are averaged over all workers."""
    return paddle.DataParallel(network) if dist.get_world_size() > 1 else network


def log(line: str) -> None:
    """Print on the first worker only: all workers hold the same model."""
    if dist.get_rank() == 0:
        print(line, flush=True)


class Progress:
    """Prints one line of key=value pairs per interval, which `pdj` reads as the job's progress."""

    def __init__(self, begin: int, steps: int, batch: int, output_dir: Path | None) -> None:
        self.steps = steps
        self.batch = batch
        self.last = begin
        self.since = time.monotonic()
        log(f"worker 0 of {dist.get_world_size()} starts after step {begin} of {steps}")
        if begin >= steps:
            log(f"nothing left to train; empty {output_dir} to start over, or train for longer to continue")

    def report(self, step: int, **metrics: float) -> None:
        now = time.monotonic()
        speed = (step - self.last) * self.batch / (now - self.since)
        values = " ".join(f"{name}={value:.4f}" for name, value in metrics.items())
        log(f"step={step}/{self.steps} {values} samples/s={speed:.0f}")
        self.last, self.since = step, now
