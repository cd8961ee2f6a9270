"""Workers that can be killed at any time and resume from a checkpoint (Collective).

Every SAVE_EVERY steps the first worker saves the model, the optimizer and the step. All workers start from the newest
checkpoint. The batch of a step depends only on the step, and the workers divide it among themselves, so an interrupted
training ends with the same model as an uninterrupted one, also if the number of workers has changed.

Environment (overridden by the command-line options of the same names):
    OUTPUT_DIR    directory for checkpoints, shared by all workers; empty it to start over (default: save none)
    STEPS, SAVE_EVERY
    STEP_SECONDS  seconds to sleep in every step, to have time to watch or kill the job
    FAIL_AT_STEP  step at which the last worker exits with code 17, once per OUTPUT_DIR
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import paddle.distributed as dist
from checkpoints import Checkpoints
from paddle import nn
from workers import Progress, averaging, join, log

CLASSES = 3
BATCH = 120
"""Points per step, of all workers together."""


def main() -> None:
    options = _options()
    join()
    paddle.seed(1)
    network = _network()
    untrained = accuracy(network)
    optimizer = paddle.optimizer.Adam(0.01, parameters=network.parameters())
    checkpoints = Checkpoints(options.output_dir, network, optimizer)
    begin = checkpoints.restore()
    progress = Progress(begin, options.steps, BATCH, options.output_dir)
    model = averaging(network)
    for step in range(begin + 1, options.steps + 1):
        _maybe_fail(step, options)
        loss = _loss(model, step)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        time.sleep(options.step_seconds)
        if step % options.save_every == 0 or step == options.steps:
            progress.report(step, loss=float(loss), accuracy=accuracy(network))
            checkpoints.save(step)
    log(f"final accuracy={accuracy(network):.4f} untrained_accuracy={untrained:.4f} {fingerprint(network)}")


def _loss(model: Any, step: int) -> Any:
    """The loss on this worker's part of a batch, so that its average over the workers is the loss on the whole."""
    points, labels = spirals(seed=step, points=BATCH)
    mine = slice(dist.get_rank(), None, dist.get_world_size())
    summed = nn.functional.cross_entropy(model(points[mine]), labels[mine], reduction="sum")
    return summed * dist.get_world_size() / BATCH


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output-dir", type=Path, default=os.getenv("OUTPUT_DIR") or None)
    parser.add_argument("--steps", type=int, default=os.getenv("STEPS", "400"))
    parser.add_argument("--save-every", type=int, default=os.getenv("SAVE_EVERY", "50"))
    parser.add_argument("--step-seconds", type=float, default=os.getenv("STEP_SECONDS", "0"))
    parser.add_argument("--fail-at-step", type=int, default=os.getenv("FAIL_AT_STEP", "0"))
    return parser.parse_args()


def _network() -> Any:
    return nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, CLASSES))


def spirals(seed: int, points: int) -> tuple[Any, Any]:
    """Points on the arms of three interleaved spirals, and the arm of each point."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, points)
    radius = np.sqrt(rng.uniform(0.02, 1, points))
    angle = 5 * radius + labels * 2 * np.pi / CLASSES + rng.normal(0, 0.15, points)
    coordinates = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).astype("float32")
    return paddle.to_tensor(coordinates), paddle.to_tensor(labels)


def accuracy(network: Any) -> float:
    points, labels = spirals(seed=10**9, points=2000)
    with paddle.no_grad():
        return float((paddle.argmax(network(points), axis=1) == labels).astype("float32").mean())


def fingerprint(network: Any) -> str:
    """A number to compare two models by."""
    return f"sum={sum(float(parameter.abs().sum()) for parameter in network.parameters()):.5f}"


def _maybe_fail(step: int, options: argparse.Namespace) -> None:
    if step != options.fail_at_step or dist.get_rank() != dist.get_world_size() - 1:
        return
    marker = (options.output_dir or Path.cwd()) / "failed-once"
    if not marker.exists():
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
        print(f"worker {dist.get_rank()} exits at step {step}, as requested by FAIL_AT_STEP", file=sys.stderr)
        sys.stderr.flush()
        os._exit(17)


if __name__ == "__main__":
    main()
