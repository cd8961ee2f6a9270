"""A real collective Paddle program with steps at a fixed pace and a checkpoint every few seconds.

It records in FOLDER when it does what. A step waits until its time has come, so a busy processor does not decide how
many steps there are. Runs by `python -c`, in any image with Paddle.
"""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ["FOLDER"])
PACE = float(os.environ["PACE"])
SAVE_EVERY = float(os.environ["SAVE_EVERY"])
RANK = int(os.environ["PADDLE_TRAINER_ID"])
STEPS = 10**6


def mark(what: str, step: int = 0) -> None:
    line = json.dumps({"time": time.time(), "what": what, "rank": RANK, "step": step}) + "\n"
    with (FOLDER / f"marks-{RANK}").open("a") as marks:
        marks.write(line)


mark("started")
print("importing paddle", flush=True)

import paddle  # noqa: E402
import paddle.distributed as dist  # noqa: E402
from paddle import nn  # noqa: E402

mark("imported")


def main() -> None:
    os.environ.setdefault("PADDLE_DISTRI_BACKEND", "gloo")
    await_first_worker()
    dist.init_parallel_env()
    mark("joined")
    paddle.seed(1)
    network = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = paddle.optimizer.Adam(0.001, parameters=network.parameters())
    begin = restore(network, optimizer)
    mark("restored", begin)
    model = paddle.DataParallel(network)
    due = saved = time.monotonic()
    for step in range(begin + 1, STEPS):
        loss = train(model, optimizer, step)
        due = max(due + PACE, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))
        if RANK == 0:
            mark("step", step)
            print(f"step: {step}/{STEPS} loss: {loss:.4f}", flush=True)
            if time.monotonic() - saved >= SAVE_EVERY:
                save(step, network, optimizer)
                saved = time.monotonic()


def await_first_worker(patience: float = 30.0) -> None:
    """Paddle tries to connect only every 3 s: a worker that is a moment earlier than the first would wait for that."""
    host, port = os.environ["PADDLE_TRAINER_ENDPOINTS"].split(",")[0].split(":")
    deadline = time.monotonic() + patience
    while RANK and time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex((host, int(port))) == 0:
                return
        time.sleep(0.05)


def train(model: Any, optimizer: Any, step: int) -> float:
    paddle.seed(step)
    points = paddle.randn([32, 8])
    loss = ((model(points) - points.sum(axis=1, keepdim=True)) ** 2).mean()
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    return float(loss)


def restore(network: Any, optimizer: Any) -> int:
    newest = FOLDER / "newest.pdckpt"
    if not newest.exists():
        return 0
    state = paddle.load(os.fspath(newest))
    network.set_state_dict(state["network"])
    optimizer.set_state_dict(state["optimizer"])
    return int(state["step"])


def save(step: int, network: Any, optimizer: Any) -> None:
    partial = FOLDER / "partial"
    paddle.save(
        {"step": step, "network": network.state_dict(), "optimizer": optimizer.state_dict()}, os.fspath(partial)
    )
    partial.replace(FOLDER / "newest.pdckpt")


main()
