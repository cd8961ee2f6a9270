"""Quick start: is a review for or against? Logistic regression, trained with parameter servers.

The same program is server and trainer; its role comes from the environment, which `start_paddle.py` sets. A trainer
reads ./data, and the first one writes a directory pass-0000N after each pass. Started again, all go on from there.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import runpy
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("GLOG_minloglevel", "2")

import numpy as np
import paddle
import passes
import process
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


class Score(NamedTuple):
    loss: float
    accuracy: float


def main() -> None:
    options = _options()
    config = _config(Path(options.config))
    if not os.getenv("PADDLE_PSERVERS_IP_PORT_LIST"):
        sys.exit("PADDLE_PSERVERS_IP_PORT_LIST is not set: start this program with start_paddle.py or in a PaddleJob")
    paddle.disable_signal_handler()
    process.stop_on_signal()
    paddle.enable_static()
    _init()
    with quiet():
        network = _network(config)
    process.stop_at_once_on_signal()
    if fleet.is_server():
        _serve()
    else:
        _train(network, config, options)


def _options() -> argparse.Namespace:
    """What `paddle train` took, as far as it still has a meaning; the rest is accepted and left alone."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="trainer_config.lr.py")
    parser.add_argument("--num_passes", type=int, default=int(os.getenv("NUM_PASSES") or 10))
    parser.add_argument("--saving_period", type=int, default=1, help="a pass directory after so many passes")
    parser.add_argument("--data_dir", type=Path, default=Path(os.getenv("DATA_DIR") or "data"))
    parser.add_argument("--save_dir", type=Path, default=Path(os.getenv("OUTPUT_DIR") or "output"))
    return parser.parse_known_args()[0]


def _config(file: Path) -> Config:
    if not file.is_file():
        sys.exit(f"--config {file}: is not there; there is {', '.join(sorted(p.name for p in Path().glob('*.py')))}")
    found = runpy.run_path(str(file))
    return Config(file, found["VOCABULARY"], found["BATCH_SIZE"], found["LEARNING_RATE"])


def _init() -> None:
    """Learn the role. A trainer looks for its servers itself: Paddle's client gives up on one that is late."""
    servers = os.environ["PADDLE_PSERVERS_IP_PORT_LIST"].split(",")
    trainer = os.getenv("TRAINING_ROLE") == "TRAINER"
    gloo = os.getenv("PADDLE_GLOO_HTTP_ENDPOINT")
    if trainer and gloo:
        process.wait_for([gloo])
    with quiet():
        fleet.init()
    if trainer:
        process.wait_for(servers)


def _network(config: Config) -> Network:
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


def _serve() -> None:
    """Keep a share of the parameters until start_paddle.py ends this process: Paddle's workers do not."""
    endpoint = f"{os.environ['POD_IP']}:{os.environ['PADDLE_PORT']}"
    with quiet():
        fleet.init_server()
    say(f"server {fleet.server_index()} of {fleet.server_num()} serves at {endpoint}")
    with quiet():
        fleet.run_server()
    sys.exit(f"the server at {endpoint} ended by itself: is that port taken by another process?")


def _train(network: Network, config: Config, options: argparse.Namespace) -> None:
    rank = fleet.worker_index()
    found = reviews.read(options.data_dir)
    say(f"trainer {rank} read {len(found)} reviews: {reviews.ranges(review.number for review in found)}")
    saved = passes.last_pass(options.save_dir)
    begin = passes.number_of(saved) + 1 if saved else 0
    if begin >= options.num_passes:
        say(f"{saved} is the last of {options.num_passes} passes: nothing to train; remove it to train again")
    executor = paddle.static.Executor(paddle.CPUPlace())
    with quiet():
        executor.run(paddle.static.default_startup_program())
        if saved:
            _load(executor, network, saved)
        fleet.init_worker()
    if saved:
        say(f"trainer {rank} goes on after {saved.name}")
    with _scratch() as scratch:
        trainer = Trainer(network, config, executor, found, scratch)
        for number in range(begin, options.num_passes):
            trainer.train(number, options.num_passes)
            trainer.pull()
            if rank == 0 and ((number + 1) % options.saving_period == 0 or number + 1 == options.num_passes):
                written = passes.write_pass(options.save_dir, number, config.file, trainer.save)
                say(f"pass {number} wrote {written}, {trainer.measured()}")
            fleet.barrier_worker()
    with quiet():
        fleet.stop_worker()


def _load(executor: Any, network: Network, saved: Path) -> None:
    """Into this process; the first trainer hands them to the servers when it introduces itself."""
    paddle.static.load_vars(executor, str(saved), network.program, vars=_parameters(network))


def _parameters(network: Network) -> list[Any]:
    return [network.program.global_block().var(name) for name in (WEIGHTS, BIAS)]


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="quick-start-") as directory:
        yield Path(directory)


class Trainer:
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
        paddle.static.save_vars(self.executor, str(directory), self.network.program, vars=_parameters(self.network))

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


if __name__ == "__main__":
    main()
