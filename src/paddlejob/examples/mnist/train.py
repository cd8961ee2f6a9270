"""A small convolutional network that learns digits in one process (Single).

Environment (overridden by the command-line options of the same names):
    DATA_DIR    directory with MNIST's four .gz files (default: draw digits)
    OUTPUT_DIR  directory for the trained model (default: do not save)
    EPOCHS, SAMPLES (drawn digits), BATCH_SIZE
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import digits
import numpy as np
import paddle
from paddle import nn


class Score(NamedTuple):
    loss: float
    accuracy: float


def main() -> None:
    options = _options()
    paddle.seed(1)
    held_out = digits.load(options.data_dir, options.samples, train=False)
    network = _network()
    untrained = score = evaluate(network, held_out)
    print(f"untrained loss={score.loss:.4f} accuracy={score.accuracy:.4f}", flush=True)
    optimizer = paddle.optimizer.Adam(0.004, parameters=network.parameters())
    data = digits.load(options.data_dir, options.samples, train=True)
    loader = paddle.io.DataLoader(data, batch_size=options.batch_size, shuffle=True)
    for epoch in range(options.epochs):
        started = time.monotonic()
        loss = train(network, optimizer, loader)
        speed = len(data) / (time.monotonic() - started)
        score = evaluate(network, held_out)
        print(
            f"step={(epoch + 1) * len(loader)}/{options.epochs * len(loader)} epoch={epoch + 1}/{options.epochs} "
            f"loss={loss:.4f} accuracy={score.accuracy:.4f} samples/s={speed:.0f}",
            flush=True,
        )
    if options.output_dir:
        options.output_dir.mkdir(parents=True, exist_ok=True)
        paddle.save(network.state_dict(), os.fspath(options.output_dir / "mnist.pdparams"))
    print(f"final accuracy={score.accuracy:.4f} loss={score.loss:.4f} untrained_accuracy={untrained.accuracy:.4f}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=os.getenv("DATA_DIR") or None)
    parser.add_argument("--output-dir", type=Path, default=os.getenv("OUTPUT_DIR") or None)
    parser.add_argument("--epochs", type=int, default=os.getenv("EPOCHS", "3"))
    parser.add_argument("--samples", type=int, default=os.getenv("SAMPLES", "3000"))
    parser.add_argument("--batch-size", type=int, default=os.getenv("BATCH_SIZE", "64"))
    return parser.parse_args()


def _network() -> Any:
    return nn.Sequential(
        nn.Conv2D(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2D(2),
        nn.Conv2D(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2D(2),
        nn.Flatten(),
        nn.Linear(16 * 7 * 7, 10),
    )


def train(network: Any, optimizer: Any, loader: Any) -> float:
    """Train for one epoch, and return the mean loss."""
    network.train()
    losses: list[float] = []
    for image, label in loader:
        loss = nn.functional.cross_entropy(network(image), label)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    return float(np.mean(losses))


def evaluate(network: Any, held_out: Any) -> Score:
    network.eval()
    losses: list[float] = []
    correct: list[float] = []
    with paddle.no_grad():
        for image, label in paddle.io.DataLoader(held_out, batch_size=250):
            logits = network(image)
            losses.append(float(nn.functional.cross_entropy(logits, label)))
            correct.extend((paddle.argmax(logits, axis=1) == label[:, 0]).numpy().tolist())
    return Score(float(np.mean(losses)), float(np.mean(correct)))


if __name__ == "__main__":
    main()
