"""The network and one trainer: a pass over its samples, pulling the servers' parameters, and evaluation."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import paddle
import reviews
from paddle.distributed import fleet
from process import log, quiet
from reviews import Review

WEIGHTS, BIAS = "___fc_layer_0__.w0", "___fc_layer_0__.wbias"


class Config(NamedTuple):
    file: Path
    vocabulary: int
    batch_size: int
    learning_rate: float


class Network(NamedTuple):
    label: Any
    counts: Any
    probability: Any
    program: Any

    @property
    def parameters(self) -> list[Any]:
        return [self.program.global_block().var(name) for name in (WEIGHTS, BIAS)]


class Score(NamedTuple):
    loss: float
    accuracy: float


def build_network(config: Config) -> Network:
    paddle.static.default_startup_program().random_seed = 1
    label = paddle.static.data("label", [None, 1], "int64")
    counts = paddle.static.data("counts", [None, config.vocabulary], "float32")
    logit = paddle.static.nn.fc(counts, 1, weight_attr=WEIGHTS, bias_attr=BIAS)
    probability = paddle.nn.functional.sigmoid(logit)
    target = paddle.cast(label, "float32")
    loss = paddle.nn.functional.binary_cross_entropy_with_logits(logit, target)
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = True
    fleet.distributed_optimizer(paddle.optimizer.Adam(config.learning_rate), strategy).minimize(loss)
    # The optimizer has replaced the main program.
    return Network(label, counts, probability, paddle.static.default_main_program())


class Learner:
    """One trainer. Every tenth review is held out for evaluation."""

    def __init__(self, network: Network, config: Config, executor: Any, found: list[Review], scratch: Path) -> None:
        self.network = network
        self.config = config
        self.executor = executor
        self.scratch = scratch
        self.held_out = [review for review in found if reviews.held_out(review)]
        samples = [review for review in found if not reviews.held_out(review)]
        if not self.held_out or not samples:
            sys.exit(f"too few reviews in this part ({len(found)}); split the data into fewer parts")
        self.inference = paddle.static.normalize_program(network.program, [network.counts], [network.probability])
        self.data = self._dataset(samples)
        self.samples = len(samples)

    def train(self, number: int, count: int) -> None:
        started = time.monotonic()
        with quiet(), contextlib.chdir(self.scratch):
            self.data.local_shuffle()
            self.executor.train_from_dataset(self.network.program, self.data)
        speed = self.samples / (time.monotonic() - started)
        log(f"pass {number} of {count}: trainer {fleet.worker_index()} {speed:,.0f} reviews/s")

    def pull(self) -> None:
        """Pull the servers' parameters, after every trainer has pushed its gradients."""
        with quiet(), contextlib.chdir(self.scratch):
            fleet.save_dense_params(self.executor, "pulled", paddle.static.global_scope(), self.network.program)

    def save(self, directory: Path) -> None:
        """Save the parameters and check the sizes: Paddle reports no error on a full volume."""
        parameters = self.network.parameters
        paddle.static.save_vars(self.executor, str(directory), self.network.program, vars=parameters)
        for parameter in parameters:
            name = parameter.name
            minimum = np.array(paddle.static.global_scope().find_var(name).get_tensor()).nbytes
            if (directory / name).stat().st_size < minimum:
                raise OSError(f"{name} is smaller than {minimum} bytes; check whether the volume is full")

    def metrics(self) -> str:
        score = self.evaluate()
        return f"loss={score.loss:.4f} accuracy={score.accuracy:.4f}"

    def evaluate(self) -> Score:
        # A new executor each time: train_from_dataset deletes variables that an older one still references.
        executor = paddle.static.Executor(paddle.CPUPlace())
        counts = np.array([_counts(review, self.config.vocabulary) for review in self.held_out], "float32")
        label = np.array([[review.label] for review in self.held_out])
        (probability,) = executor.run(
            self.inference, feed={"counts": counts}, fetch_list=[self.network.probability.name]
        )
        likelihood = np.clip(np.where(label == 1, probability, 1 - probability), 1e-7, 1)
        return Score(float(-np.log(likelihood).mean()), float(((probability > 0.5) == (label == 1)).mean()))

    def _dataset(self, samples: list[Review]) -> Any:
        file = self.scratch / "samples.txt"
        with file.open("w") as lines:
            for review in samples:
                counts = " ".join(f"{count:g}" for count in _counts(review, self.config.vocabulary))
                lines.write(f"1 {review.label} {self.config.vocabulary} {counts}\n")
        data = paddle.distributed.InMemoryDataset()
        inputs = [self.network.label, self.network.counts]
        data.init(batch_size=self.config.batch_size, thread_num=1, use_var=inputs, pipe_command="cat")
        data.set_filelist([str(file)])
        data.load_into_memory()
        return data


def _counts(review: Review, vocabulary: int) -> list[float]:
    counts = [0.0] * vocabulary
    for token in review.tokens:
        counts[token % vocabulary] += 1
    return counts
