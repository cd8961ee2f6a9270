"""A job that hangs says which worker hangs where, with real collectives of Paddle."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pdj import Pdj, wait

LONG = 240
PROGRAM = """
import os, signal, threading, time
imported = threading.Event()
threading.Thread(target=lambda: [print("waiting", flush=True) for _ in iter(lambda: imported.wait(1), True)]).start()
import numpy, paddle, paddle.distributed as dist
from paddle.io import DataLoader, Dataset

lock = threading.Lock()

class Images(Dataset):
    def __len__(self):
        return 20

    def __getitem__(self, index):
        if index == 8 and hangs == "data":
            lock.acquire()  # data
        return numpy.zeros(4, "float32")

def average(batch):
    dist.all_reduce(batch)  # collective

def wait_for_lock():
    lock.acquire()  # lock

def sleep():
    time.sleep(1000)  # sleep

dist.init_parallel_env()
imported.set()
hangs = os.environ["HANG"] if dist.get_rank() == 1 else ""
lock.acquire()
for step, batch in enumerate(DataLoader(Images(), batch_size=4, num_workers=1)):
    if step == 2 and hangs == "lock":
        wait_for_lock()
    if step == 2 and hangs == "sleep":
        sleep()
    if step == 2 and hangs == "peer":
        os.kill(os.getpid(), signal.SIGSTOP)
    average(paddle.to_tensor(batch))
    print("step", step, flush=True)
"""
KINDS = {
    "sleep": "worker 1 in sleep (train.py:{sleep})",
    "lock": "worker 1 in wait_for_lock (train.py:{lock})",
    "data": "worker 1 in DataLoader (train.py:{data})",
    "peer": "worker 1 stopped by a signal",
}


def line(mark: str) -> int:
    return next(number for number, text in enumerate(PROGRAM.splitlines(), 1) if text.endswith(f"# {mark}"))


@pytest.mark.parametrize(
    "kind", ["data", *(pytest.param(kind, marks=pytest.mark.full) for kind in ["sleep", "lock", "peer"])]
)
def test_the_message_names_the_worker_and_the_line(pdj: Pdj, tmp_path: Path, kind: str):
    (tmp_path / "train.py").write_text(PROGRAM)
    pdj.environment |= {"HANG": kind}
    command = ["python", str(tmp_path / "train.py")]
    pdj("run", "-d", pdj.write(command=command, workers=2, stallSeconds=20, backoffLimit=0))
    wait(lambda: pdj.status("job").phase == "Failed", lambda: pdj.log("job", "worker-1"), LONG)
    message = pdj.status("job").message
    places = {mark: line(mark) for mark in ("sleep", "lock", "data", "collective")}
    assert f"worker 0 in all_reduce (train.py:{places['collective']}); {KINDS[kind].format(**places)}" in message
