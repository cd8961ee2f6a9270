"""The asynchronous training loop with parameter servers that Wide & Deep and DeepFM share.

Environment (overridden by the command-line options of the same names):
    DATA_DIR    directory of files in Criteo's format (default: generate synthetic data)
    OUTPUT_DIR  directory for checkpoints, shared by servers and workers (default: save none)
    EPOCHS, SAMPLES (maximum per worker), BATCH_SIZE
    EPOCH_SECONDS  the least time an epoch takes, to watch a short training (default: 0)
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import click_data
import criteo
import numpy as np
import paddle
import process
from checkpoints import Checkpoint, Score, Store
from click_data import Shard
from paddle.distributed import fleet
from process import log, quiet

Variable: TypeAlias = Any
LEARNING_RATE = 0.01
SHARDS = 16


class Inputs(NamedTuple):
    """The input variables of the static program, in the order of the reader's slots."""

    label: Variable
    counts: Variable
    ids: Variable


class Network(NamedTuple):
    """The training program, and the variable that holds its predictions."""

    inputs: Inputs
    program: Any
    probability: Variable


def table(name: str) -> Any:
    """A sparse table on the servers; a row is created when its id is first seen."""
    return paddle.ParamAttr(name=name, initializer=paddle.nn.initializer.Uniform(-0.01, 0.01))


def run(build: Callable[[Inputs], Variable], tables: list[str]) -> None:
    """Run the role from the environment: serve until stopped, or train and return."""
    options = _options()
    if not os.getenv("PADDLE_PSERVERS_IP_PORT_LIST"):
        sys.exit(
            "PADDLE_PSERVERS_IP_PORT_LIST is not set. This program trains with parameter servers and reads its role "
            "from the environment; start it with `pdj run job.yaml` (see the example's README)."
        )
    paddle.disable_signal_handler()
    process.exit_on_sigterm()
    paddle.enable_static()
    _init()
    with quiet():
        network = _network(build, tables)
    process.restore_default_signals()
    if fleet.is_server():
        _serve(options.output_dir)
    else:
        _work(network, options)


def _init() -> None:
    """Initialize fleet. A worker waits for its servers first: Paddle itself polls only every three seconds."""
    worker = os.getenv("TRAINING_ROLE") == "TRAINER"
    servers = os.environ["PADDLE_PSERVERS_IP_PORT_LIST"].split(",")
    gloo = os.getenv("PADDLE_GLOO_HTTP_ENDPOINT") if os.getenv("PADDLE_WITH_GLOO", "0") != "0" else None
    if worker:
        log(f"worker {os.getenv('PADDLE_TRAINER_ID')} is waiting for {len(servers)} servers")
    if worker and gloo:
        process.wait_for([gloo])
    with quiet():
        fleet.init()
    if worker:
        process.wait_for(servers)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=os.getenv("DATA_DIR") or None)
    parser.add_argument("--output-dir", type=Path, default=os.getenv("OUTPUT_DIR") or None)
    parser.add_argument("--epochs", type=int, default=os.getenv("EPOCHS", "5"))
    parser.add_argument("--samples", type=int, default=os.getenv("SAMPLES", "0"))
    parser.add_argument("--epoch-seconds", type=float, default=os.getenv("EPOCH_SECONDS", "0"))
    parser.add_argument("--batch-size", type=int, default=os.getenv("BATCH_SIZE", "128"))
    return parser.parse_args()


def _network(build: Callable[[Inputs], Variable], tables: list[str]) -> Network:
    paddle.static.default_main_program().random_seed = 1
    paddle.static.default_startup_program().random_seed = 1
    inputs = Inputs(
        paddle.static.data("label", [None, 1], "int64"),
        paddle.static.data("counts", [None, criteo.COUNTS], "float32"),
        paddle.static.data("ids", [None, criteo.CATEGORIES], "int64"),
    )
    logit = build(inputs)
    probability = paddle.nn.functional.sigmoid(logit)
    target = paddle.cast(inputs.label, "float32")
    loss = paddle.nn.functional.binary_cross_entropy_with_logits(logit, target)
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = True
    # Each shard is one file of a checkpoint; Paddle's default of 1000 takes seconds to write.
    strategy.sparse_table_configs = {name: {f"table_parameters.{name}.shard_num": SHARDS} for name in tables}
    fleet.distributed_optimizer(paddle.optimizer.Adam(LEARNING_RATE), strategy).minimize(loss)
    # The optimizer has replaced the main program.
    return Network(inputs, paddle.static.default_main_program(), probability)


def _serve(output_dir: Path | None) -> None:
    """Hold a part of the parameters. Only a signal stops a server: Paddle's workers do not."""
    endpoint = f"{os.environ['POD_IP']}:{os.environ['PADDLE_PORT']}"
    if output_dir:
        output_dir.mkdir(parents=True, exist_ok=True)
        os.chdir(output_dir)
    with quiet():
        fleet.init_server()
    log(f"server {fleet.server_index()} of {fleet.server_num()} is listening on {endpoint}")
    with quiet():
        fleet.run_server()
    sys.exit(f"the server on {endpoint} exited unexpectedly; check whether another process uses that port")


def _work(network: Network, options: argparse.Namespace) -> None:
    rank, workers = fleet.worker_index(), fleet.worker_num()
    store = Store(options.output_dir) if options.output_dir else None
    saved = store.newest(fleet.server_num()) if store else None
    with click_data.shard(options.data_dir, options.samples, rank, workers) as shard, _scratch():
        executor = paddle.static.Executor(paddle.CPUPlace())
        with quiet():
            executor.run(paddle.static.default_startup_program())
            fleet.init_worker()
        trainer = Trainer(network, executor, shard, options, store)
        # The servers hold the newest parameters: to load a checkpoint would undo what the others have learned since.
        trainer.start(saved, joins=os.getenv("PADDLEJOB_JOINS") == "1")
        for epoch in range(saved.epoch if saved else 0, options.epochs):
            trainer.train(epoch + 1)
        fleet.barrier_worker()
        trainer.finish()
    with quiet():
        fleet.stop_worker()


@contextlib.contextmanager
def _scratch() -> Iterator[None]:
    """Use a temporary working directory: Paddle writes a file there in every epoch."""
    with tempfile.TemporaryDirectory(prefix="worker-") as directory, contextlib.chdir(directory):
        yield


class Trainer:
    """One worker. The first one also evaluates on held-out samples and publishes the checkpoints."""

    def __init__(
        self, network: Network, executor: Any, shard: Shard, options: argparse.Namespace, store: Store | None
    ) -> None:
        self.network = network
        self.executor = executor
        self.epochs = options.epochs
        self.epoch_seconds = options.epoch_seconds
        self.store = store
        self.rank = fleet.worker_index()
        self.first = self.rank == 0
        self.held_out = click_data.held_out(shard)
        self.inference = paddle.static.normalize_program(
            network.program, [network.inputs.counts, network.inputs.ids], [network.probability]
        )
        self.data = _dataset(network.inputs, shard, options.batch_size)
        self.samples = self.data.get_memory_data_size()
        self.untrained = self.score = Score(float("nan"), float("nan"))

    def start(self, saved: Checkpoint | None, joins: bool) -> None:
        """Resume from a checkpoint, or evaluate the untrained model. One that joins takes the model as it is."""
        if saved:
            self.untrained, self.score = saved.untrained, saved.score
        elif self.first:
            self.untrained = self.score = self.evaluate()
            log(f"{'joins' if joins else 'untrained'} loss={self.score.loss:.4f} auc={self.score.auc:.4f}")
        if joins:
            log(f"worker {self.rank} joins after epoch {saved.epoch if saved else 0} of {self.epochs}")
        elif saved:
            with quiet():
                fleet.load_model(Store.name(saved.epoch), mode=0)
            log(f"worker {self.rank} resumes after epoch {saved.epoch} of {self.epochs}")
        log(f"worker {self.rank} of {fleet.worker_num()} trains on {self.samples:,} samples")
        fleet.barrier_worker()

    def train(self, epoch: int) -> None:
        started = time.monotonic()
        with quiet():
            self.data.local_shuffle()
            self.executor.train_from_dataset(self.network.program, self.data)
        time.sleep(max(0.0, started + self.epoch_seconds - time.monotonic()))
        speed = self.samples / (time.monotonic() - started)
        line = f"epoch {epoch}/{self.epochs} worker {self.rank} {speed:,.0f} samples/s"
        fleet.barrier_worker()
        if self.first:
            self.score = self.evaluate()
            line += f" loss={self.score.loss:.4f} auc={self.score.auc:.4f}"
        log(line)
        if self.store:
            self.save(epoch, self.store)

    def save(self, epoch: int, store: Store) -> None:
        if self.first:
            store.clear(epoch)
        with quiet():
            fleet.save_persistables(self.executor, store.name(epoch))
        if self.first:
            store.publish(Checkpoint(epoch, fleet.server_num(), self.untrained, self.score))

    def evaluate(self) -> Score:
        # A new executor each time: train_from_dataset deletes variables that an older one still references.
        executor = paddle.static.Executor(paddle.CPUPlace())
        feed = {"counts": self.held_out.counts, "ids": self.held_out.ids}
        (probability,) = executor.run(self.inference, feed=feed, fetch_list=[self.network.probability.name])
        return _score(probability, self.held_out.label)

    def finish(self) -> None:
        if self.first:
            log(f"final auc={self.score.auc:.4f} loss={self.score.loss:.4f} untrained_auc={self.untrained.auc:.4f}")


def _dataset(inputs: Inputs, shard: Shard, batch_size: int) -> Any:
    data = paddle.distributed.InMemoryDataset()
    command = criteo.reader_command(shard.part)
    data.init(batch_size=batch_size, thread_num=1, use_var=list(inputs), pipe_command=command)
    data.set_filelist([str(file) for file in shard.files])
    data.load_into_memory()
    return data


def _score(probability: Any, label: Any) -> Score:
    likelihood = np.clip(np.where(label == 1, probability, 1 - probability), 1e-7, 1)
    auc = paddle.metric.Auc()
    auc.update(np.concatenate([1 - probability, probability], axis=1), label)
    return Score(float(-np.log(likelihood).mean()), float(auc.accumulate()))
