"""A small ResNet trained by several workers, each on its own part of the images (Collective).

Run it with `python -m paddle.distributed.launch train_fleet.py`, or as `python train_fleet.py` if the environment
lists the workers; otherwise it trains in one process. It uses GPUs if Paddle supports them, otherwise CPUs.

Environment (overridden by the command-line options of the same names):
    DATA_DIR    directory with the three files of the Oxford flowers (default: draw shapes)
    OUTPUT_DIR  directory for checkpoints and the trained model; a second run continues from the newest (default: none)
    EPOCHS, SAMPLES, BATCH_SIZE (of all workers together), SAVE_EVERY (steps)
"""

from __future__ import annotations

import argparse
import math
import os
from pathlib import Path
from typing import Any, NamedTuple

import images
import numpy as np
import paddle
import paddle.distributed as dist
from checkpoints import Checkpoints
from network import count_parameters, resnet
from sharding import Shard
from workers import Progress, averaging, join, log

LEARNING_RATE = 0.01


class Score(NamedTuple):
    loss: float
    accuracy: float


def main(output_dir: Path | None = None) -> None:
    options = _options(output_dir)
    join()
    paddle.seed(1)
    data = images.load(options.data_dir, options.samples)
    network = resnet(data.classes)
    untrained = evaluate(network, data.held_out)
    log(f"{count_parameters(network):,} parameters, untrained accuracy={untrained.accuracy:.4f}")
    score = train(network, data, options)
    if dist.get_rank() == 0 and options.output_dir:
        options.output_dir.mkdir(parents=True, exist_ok=True)
        paddle.save(network.state_dict(), os.fspath(options.output_dir / "resnet.pdparams"))
    log(f"final accuracy={score.accuracy:.4f} loss={score.loss:.4f} untrained_accuracy={untrained.accuracy:.4f}")


def _options(output_dir: Path | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=os.getenv("DATA_DIR") or None)
    parser.add_argument("--output-dir", type=Path, default=os.getenv("OUTPUT_DIR") or output_dir)
    parser.add_argument("--epochs", type=int, default=os.getenv("EPOCHS", "4"))
    parser.add_argument("--samples", type=int, default=os.getenv("SAMPLES", "2000"))
    parser.add_argument("--batch-size", type=int, default=os.getenv("BATCH_SIZE", "64"))
    parser.add_argument("--save-every", type=int, default=os.getenv("SAVE_EVERY", "10"))
    return parser.parse_args()


def train(network: Any, data: images.Images, options: argparse.Namespace) -> Score:
    """Train on this worker's part of the images, averaging gradients with the other workers at every step."""
    shard = Shard(
        len(data.train),
        options.batch_size,
        epochs=options.epochs,
        worker=dist.get_rank(),
        workers=dist.get_world_size(),
    )
    optimizer = paddle.optimizer.Adam(LEARNING_RATE, parameters=network.parameters())
    checkpoints = Checkpoints(options.output_dir, network, optimizer)
    shard.begin = checkpoints.restore()
    progress = Progress(shard.begin, shard.steps, shard.batch, options.output_dir)
    model = averaging(network)
    network.train()
    for step, (image, label) in enumerate(paddle.io.DataLoader(data.train, batch_sampler=shard), shard.begin + 1):
        # A function of the step, so that it needs no state and fits a run that continues with more epochs.
        optimizer.set_lr(LEARNING_RATE * (1 + math.cos(math.pi * (step - 1) / shard.steps)) / 2)
        # The workers' parts may differ by one sample: the average over workers is that of the whole batch.
        loss = paddle.nn.functional.cross_entropy(model(image), label, reduction="sum") * shard.workers / shard.batch
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        if step % options.save_every == 0 or step == shard.steps:
            progress.report(step, loss=float(loss))
            checkpoints.save(step)
        if step % shard.steps_per_epoch == 0 and step < shard.steps:
            score = evaluate(network, data.held_out)
            log(f"epoch={step // shard.steps_per_epoch}/{options.epochs} accuracy={score.accuracy:.4f}")
    return evaluate(network, data.held_out)


def evaluate(network: Any, held_out: Any) -> Score:
    network.eval()
    losses: list[float] = []
    correct: list[float] = []
    with paddle.no_grad():
        for image, label in paddle.io.DataLoader(held_out, batch_size=100):
            logits = network(image)
            losses.append(float(paddle.nn.functional.cross_entropy(logits, label)))
            correct.extend((paddle.argmax(logits, axis=1) == label).numpy().tolist())
    network.train()
    return Score(float(np.mean(losses)), float(np.mean(correct)))


if __name__ == "__main__":
    main()
