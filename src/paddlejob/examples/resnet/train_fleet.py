"""A small ResNet trained by several workers, each on its own part of the images (Collective).

Run it with `python -m paddle.distributed.launch train_fleet.py`, or as `python train_fleet.py` if the environment
lists the workers; otherwise it trains in one process. It uses GPUs if Paddle supports them, otherwise CPUs.

Environment (overridden by the command-line options of the same names):
    DATA_DIR    directory with the three files of the Oxford flowers (default: draw shapes)
    OUTPUT_DIR  directory where the first worker saves the model (default: do not save)
    EPOCHS, SAMPLES (of all workers together), BATCH_SIZE (per worker)
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import images
import numpy as np
import paddle
from network import count_parameters, resnet
from paddle.distributed import fleet

LEARNING_RATE = 0.01


class Score(NamedTuple):
    loss: float
    accuracy: float


def main() -> None:
    options = _options()
    # The launcher sets the backend; without it Paddle defaults to NCCL.
    if not paddle.is_compiled_with_cuda():
        os.environ.setdefault("PADDLE_DISTRI_BACKEND", "gloo")
    fleet.init(is_collective=True)
    paddle.seed(1)
    data = images.load(options.data_dir, options.samples)
    network = resnet(data.classes)
    untrained = evaluate(network, data.held_out)
    log(f"{count_parameters(network):,} parameters, untrained accuracy={untrained.accuracy:.4f}")
    score = train(network, data, options)
    if fleet.worker_index() == 0 and options.output_dir:
        options.output_dir.mkdir(parents=True, exist_ok=True)
        paddle.save(network.state_dict(), os.fspath(options.output_dir / "resnet.pdparams"))
    log(f"final accuracy={score.accuracy:.4f} loss={score.loss:.4f} untrained_accuracy={untrained.accuracy:.4f}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=os.getenv("DATA_DIR") or None)
    parser.add_argument("--output-dir", type=Path, default=os.getenv("OUTPUT_DIR") or None)
    parser.add_argument("--epochs", type=int, default=os.getenv("EPOCHS", "4"))
    parser.add_argument("--samples", type=int, default=os.getenv("SAMPLES", "2000"))
    parser.add_argument("--batch-size", type=int, default=os.getenv("BATCH_SIZE", "32"))
    return parser.parse_args()


def train(network: Any, data: images.Images, options: argparse.Namespace) -> Score:
    """Train on this worker's part of the images, averaging gradients with the other workers at every step."""
    model = fleet.distributed_model(network)
    rate = paddle.optimizer.lr.CosineAnnealingDecay(LEARNING_RATE, T_max=options.epochs)
    optimizer = fleet.distributed_optimizer(paddle.optimizer.Adam(rate, parameters=model.parameters()))
    sampler = paddle.io.DistributedBatchSampler(data.train, options.batch_size, shuffle=True, drop_last=True)
    loader = paddle.io.DataLoader(data.train, batch_sampler=sampler)
    score = evaluate(network, data.held_out)
    for epoch in range(options.epochs):
        started = time.monotonic()
        sampler.set_epoch(epoch)
        network.train()
        for image, label in loader:
            loss = paddle.nn.functional.cross_entropy(model(image), label)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
        rate.step()
        speed = len(loader) * options.batch_size * fleet.worker_num() / (time.monotonic() - started)
        score = evaluate(network, data.held_out)
        log(
            f"epoch {epoch + 1}/{options.epochs} {speed:,.0f} images/s "
            f"loss={score.loss:.4f} accuracy={score.accuracy:.4f}"
        )
    return score


def evaluate(network: Any, held_out: Any) -> Score:
    network.eval()
    losses: list[float] = []
    correct: list[float] = []
    with paddle.no_grad():
        for image, label in paddle.io.DataLoader(held_out, batch_size=100):
            logits = network(image)
            losses.append(float(paddle.nn.functional.cross_entropy(logits, label)))
            correct.extend((paddle.argmax(logits, axis=1) == label).numpy().tolist())
    return Score(float(np.mean(losses)), float(np.mean(correct)))


def log(line: str) -> None:
    """Print on the first worker only: all workers hold the same model."""
    if fleet.worker_index() == 0:
        print(f"worker 0 of {fleet.worker_num()}: {line}", flush=True)


if __name__ == "__main__":
    main()
