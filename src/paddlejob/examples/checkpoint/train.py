"""Workers that can be killed at any time and resume from a checkpoint (Collective).

Every SAVE_EVERY steps the first worker saves the model, the optimizer and the step to one file, atomically. All
workers start from the newest file. The batch of a step depends only on the step and the worker, so an interrupted
training ends with the same model as an uninterrupted one.

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
from paddle import nn
from paddle.distributed import fleet

CLASSES = 3
BATCH = 64


def main() -> None:
    options = _options()
    # The launcher sets the backend; without it Paddle defaults to NCCL.
    if not paddle.is_compiled_with_cuda():
        os.environ.setdefault("PADDLE_DISTRI_BACKEND", "gloo")
    fleet.init(is_collective=True)
    paddle.seed(1)
    network = _network()
    untrained = accuracy(network)
    optimizer = paddle.optimizer.Adam(0.01, parameters=network.parameters())
    begin = restore(options.output_dir, network, optimizer) if options.output_dir else 0
    log(f"starts after step {begin} of {options.steps}")
    if options.output_dir and begin >= options.steps:
        log(f"nothing left to train; empty {options.output_dir} to start over, or raise STEPS to continue")
    model = fleet.distributed_model(network)
    loss = float("nan")
    for step in range(begin + 1, options.steps + 1):
        _maybe_fail(step, options)
        points, labels = spirals(step * fleet.worker_num() + fleet.worker_index())
        result = nn.functional.cross_entropy(model(points), labels)
        result.backward()
        optimizer.step()
        optimizer.clear_grad()
        time.sleep(options.step_seconds)
        if step % options.save_every == 0:
            loss = float(result)
            log(f"step {step}/{options.steps} loss={loss:.4f} accuracy={accuracy(network):.4f}")
            if options.output_dir and fleet.worker_index() == 0:
                save(options.output_dir, step, network, optimizer)
    log(f"final accuracy={accuracy(network):.4f} untrained_accuracy={untrained:.4f} {fingerprint(network)}")


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


def spirals(seed: int, points: int = BATCH) -> tuple[Any, Any]:
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


def restore(directory: Path, network: Any, optimizer: Any) -> int:
    """Load the newest checkpoint and return its step; 0 if there is none."""
    found = sorted(directory.glob("step-*.pdckpt"))
    if not found:
        return 0
    state = paddle.load(os.fspath(found[-1]))
    network.set_state_dict(state["network"])
    optimizer.set_state_dict(state["optimizer"])
    return int(state["step"])


def save(directory: Path, step: int, network: Any, optimizer: Any) -> None:
    """Write to a temporary file and rename it, so that a checkpoint is always complete."""
    directory.mkdir(parents=True, exist_ok=True)
    state = {"step": step, "network": network.state_dict(), "optimizer": optimizer.state_dict()}
    partial = directory / "partial"
    paddle.save(state, os.fspath(partial))
    partial.replace(directory / f"step-{step:08d}.pdckpt")
    for old in sorted(directory.glob("step-*.pdckpt"))[:-2]:
        old.unlink()


def _maybe_fail(step: int, options: argparse.Namespace) -> None:
    if step != options.fail_at_step or fleet.worker_index() != fleet.worker_num() - 1:
        return
    marker = (options.output_dir or Path.cwd()) / "failed-once"
    if not marker.exists():
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
        print(f"worker {fleet.worker_index()} exits at step {step}, as requested by FAIL_AT_STEP", file=sys.stderr)
        sys.stderr.flush()
        os._exit(17)


def log(line: str) -> None:
    """Print on the first worker only: all workers hold the same model."""
    if fleet.worker_index() == 0:
        print(f"worker 0 of {fleet.worker_num()}: {line}", flush=True)


if __name__ == "__main__":
    main()
