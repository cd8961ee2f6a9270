"""Quick start: sentiment of reviews by logistic regression, trained with parameter servers.

The same program runs as server and as trainer; `start_paddle.py` sets its role in the environment. A trainer reads
./data, and the first one writes a directory pass-0000N after each pass. A restarted job resumes from the last pass.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import runpy
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("GLOG_minloglevel", "2")

import learner
import paddle
import passes
import process
import reviews
from learner import Config, Learner, Network
from paddle.distributed import fleet
from process import log, quiet


def main() -> None:
    options = _options()
    config = _config(Path(options.config))
    if not os.getenv("PADDLE_PSERVERS_IP_PORT_LIST"):
        sys.exit("PADDLE_PSERVERS_IP_PORT_LIST is not set; start this program with start_paddle.py or in a PaddleJob")
    paddle.disable_signal_handler()
    process.exit_on_sigterm()
    paddle.enable_static()
    _init()
    with quiet():
        network = learner.build_network(config)
    process.restore_default_signals()
    if fleet.is_server():
        _serve()
    else:
        _train(network, config, options)


def _options() -> argparse.Namespace:
    """The options of `paddle train` that still apply; others are accepted and ignored."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="trainer_config.lr.py")
    parser.add_argument("--num_passes", type=int, default=int(os.getenv("NUM_PASSES") or 10))
    parser.add_argument("--saving_period", type=int, default=1, help="save a pass directory every N passes")
    parser.add_argument("--data_dir", type=Path, default=Path(os.getenv("DATA_DIR") or "data"))
    parser.add_argument("--save_dir", type=Path, default=Path(os.getenv("OUTPUT_DIR") or "output"))
    return parser.parse_known_args()[0]


def _config(file: Path) -> Config:
    if not file.is_file():
        sys.exit(f"--config {file}: no such file; found {', '.join(sorted(p.name for p in Path().glob('*.py')))}")
    found = runpy.run_path(str(file))
    return Config(file, found["VOCABULARY"], found["BATCH_SIZE"], found["LEARNING_RATE"])


def _init() -> None:
    """Initialize fleet. A trainer waits for its servers first: Paddle's client gives up on a late one."""
    servers = os.environ["PADDLE_PSERVERS_IP_PORT_LIST"].split(",")
    trainer = os.getenv("TRAINING_ROLE") == "TRAINER"
    gloo = os.getenv("PADDLE_GLOO_HTTP_ENDPOINT")
    if trainer and gloo:
        process.wait_for([gloo])
    with quiet():
        fleet.init()
    if trainer:
        process.wait_for(servers)


def _serve() -> None:
    """Hold a part of the parameters until start_paddle.py stops this process: Paddle's workers do not."""
    endpoint = f"{os.environ['POD_IP']}:{os.environ['PADDLE_PORT']}"
    with quiet():
        fleet.init_server()
    log(f"server {fleet.server_index()} of {fleet.server_num()} is listening on {endpoint}")
    with quiet():
        fleet.run_server()
    sys.exit(f"the server on {endpoint} exited unexpectedly; check whether another process uses that port")


def _train(network: Network, config: Config, options: argparse.Namespace) -> None:
    rank = fleet.worker_index()
    found = _reviews(options.data_dir)
    log(f"trainer {rank} read {len(found)} reviews: {reviews.ranges(review.number for review in found)}")
    executor = paddle.static.Executor(paddle.CPUPlace())
    saved = passes.last_pass(options.save_dir)
    begin = _first_trainers_value(passes.number_of(saved) + 1 if saved else 0)
    if begin >= options.num_passes:
        log(f"all {options.num_passes} passes are done; nothing to train; remove their directories to train again")
    with quiet():
        executor.run(paddle.static.default_startup_program())
        if rank == 0:
            _restore(executor, network, saved, options.save_dir)
        fleet.init_worker()
    if begin:
        log(f"trainer {rank} resumes after pass-{begin - 1:05d}")
    with _scratch() as scratch:
        trainer = Learner(network, config, executor, found, scratch)
        for number in range(begin, options.num_passes):
            trainer.train(number, options.num_passes)
            trainer.pull()
            if rank == 0 and ((number + 1) % options.saving_period == 0 or number + 1 == options.num_passes):
                _write(trainer, number, options.save_dir)
            fleet.barrier_worker()
    with quiet():
        fleet.stop_worker()


def _restore(executor: Any, network: Network, saved: Path | None, output: Path) -> None:
    """Load the last pass; the first trainer pushes these parameters to the servers in init_worker."""
    passes.remove_drafts(output)
    if saved:
        paddle.static.load_vars(executor, str(saved), network.program, vars=network.parameters)


def _reviews(directory: Path) -> list[reviews.Review]:
    try:
        return reviews.read(directory)
    except (OSError, ValueError) as error:
        sys.exit(f"{directory}: {error}")


def _first_trainers_value(begin: int) -> int:
    """All trainers start with the same pass; a pod may not see the newest directory of a shared volume yet."""
    with quiet():
        gathered: Any = fleet.util.all_gather(begin, "worker")
    return int(gathered[0]) if isinstance(gathered, list) else begin


def _write(trainer: Learner, number: int, output: Path) -> None:
    try:
        written = passes.write_pass(output, number, trainer.config.file, trainer.save)
    except OSError as error:
        sys.exit(f"{output}: cannot write pass {number}: {error}")
    log(f"pass {number} wrote {written}, {trainer.metrics()}")


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="quick-start-") as directory:
        yield Path(directory)


if __name__ == "__main__":
    main()
