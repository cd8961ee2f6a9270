"""The network, and a trainer's work on it: a pass over the lessons, the servers' parameters, a measurement."""

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
from process import quiet, say
from reviews import Review

WEIGHTS, BIAS = "___fc_layer_0__.w0", "___fc_layer_0__.wbias"


class Config(NamedTuple):
    file: Path
    vocabulary: int
    batch_size: int
    learning_rate: float


class Network(NamedTuple):
    label: Any
    words: Any
    probability: Any
    program: Any

    @property
    def parameters(self) -> list[Any]:
        return [self.program.global_block().var(name) for name in (WEIGHTS, BIAS)]


class Score(NamedTuple):
    loss: float
    accuracy: float


def network_of(config: Config) -> Network:
    paddle.static.default_startup_program().random_seed = 1
    label = paddle.static.data("label", [None, 1], "int64")
    words = paddle.static.data("words", [None, config.vocabulary], "float32")
    logit = paddle.static.nn.fc(words, 1, weight_attr=WEIGHTS, bias_attr=BIAS)
    probability = paddle.nn.functional.sigmoid(logit)
    wanted = paddle.cast(label, "float32")
    loss = paddle.nn.functional.binary_cross_entropy_with_logits(logit, wanted)
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = True
    fleet.distributed_optimizer(paddle.optimizer.Adam(config.learning_rate), strategy).minimize(loss)
    # The optimizer has put a program of its own in the place of the one built above.
    return Network(label, words, probability, paddle.static.default_main_program())


class Learner:
    """One trainer. Every tenth review is kept for measuring."""

    def __init__(self, network: Network, config: Config, executor: Any, found: list[Review], scratch: Path) -> None:
        self.network = network
        self.config = config
        self.executor = executor
        self.scratch = scratch
        self.tests = [review for review in found if reviews.held_out(review)]
        lessons = [review for review in found if not reviews.held_out(review)]
        if not self.tests or not lessons:
            sys.exit(f"too few reviews in this part ({len(found)}); split the data into fewer parts")
        self.answers = paddle.static.normalize_program(network.program, [network.words], [network.probability])
        self.data = self._dataset(lessons)
        self.lessons = len(lessons)

    def train(self, number: int, count: int) -> None:
        started = time.monotonic()
        with quiet(), contextlib.chdir(self.scratch):
            self.data.local_shuffle()
            self.executor.train_from_dataset(self.network.program, self.data)
        speed = self.lessons / (time.monotonic() - started)
        say(f"pass {number} of {count}: trainer {fleet.worker_index()} {speed:,.0f} reviews/s")

    def pull(self) -> None:
        """Bring the servers' parameters here, when every trainer has sent what it learned."""
        with quiet(), contextlib.chdir(self.scratch):
            fleet.save_dense_params(self.executor, "pulled", paddle.static.global_scope(), self.network.program)

    def save(self, directory: Path) -> None:
        """Paddle does not say where a file could not be written in full, as on a full volume."""
        parameters = self.network.parameters
        paddle.static.save_vars(self.executor, str(directory), self.network.program, vars=parameters)
        for one in parameters:
            least = np.array(paddle.static.global_scope().find_var(one.name).get_tensor()).nbytes
            if (directory / one.name).stat().st_size < least:
                raise OSError(f"{one.name} needs more than {least} bytes: is the volume full?")

    def measured(self) -> str:
        score = self.evaluate()
        return f"loss={score.loss:.4f} accuracy={score.accuracy:.4f}"

    def evaluate(self) -> Score:
        # A new executor each time: train_from_dataset removes variables that an older one still points to.
        executor = paddle.static.Executor(paddle.CPUPlace())
        words = np.array([_counts(review, self.config.vocabulary) for review in self.tests], "float32")
        label = np.array([[review.label] for review in self.tests])
        (answer,) = executor.run(self.answers, feed={"words": words}, fetch_list=[self.network.probability.name])
        likely = np.clip(np.where(label == 1, answer, 1 - answer), 1e-7, 1)
        return Score(float(-np.log(likely).mean()), float(((answer > 0.5) == (label == 1)).mean()))

    def _dataset(self, lessons: list[Review]) -> Any:
        file = self.scratch / "lessons.txt"
        with file.open("w") as lines:
            for review in lessons:
                counts = " ".join(f"{count:g}" for count in _counts(review, self.config.vocabulary))
                lines.write(f"1 {review.label} {self.config.vocabulary} {counts}\n")
        data = paddle.distributed.InMemoryDataset()
        inputs = [self.network.label, self.network.words]
        data.init(batch_size=self.config.batch_size, thread_num=1, use_var=inputs, pipe_command="cat")
        data.set_filelist([str(file)])
        data.load_into_memory()
        return data


def _counts(review: Review, vocabulary: int) -> list[float]:
    counts = [0.0] * vocabulary
    for word in review.words:
        counts[word % vocabulary] += 1
    return counts
