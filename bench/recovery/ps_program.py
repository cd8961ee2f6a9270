"""A real asynchronous Paddle program with parameter servers and steps at a fixed pace: each passes over a few samples.

Workers are replaced alone, so nothing has to be restored: each records in FOLDER when it does what. Runs by
`python -c`, in any image with Paddle.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path

FOLDER = Path(os.environ["FOLDER"])
PACE = float(os.environ["PACE"])
RANK = int(os.environ["PADDLE_TRAINER_ID"])
IS_WORKER = os.environ["TRAINING_ROLE"] == "TRAINER"
SAMPLES = 256


def mark(what: str, step: int = 0) -> None:
    if IS_WORKER:
        line = json.dumps({"time": time.time(), "what": what, "rank": RANK, "step": step}) + "\n"
        with (FOLDER / f"marks-{RANK}").open("a") as marks:
            marks.write(line)


mark("started")
print("importing paddle", flush=True)

import paddle  # noqa: E402
from paddle.distributed import fleet  # noqa: E402

mark("imported")


def main() -> None:
    paddle.enable_static()
    fleet.init()
    ids = paddle.static.data("ids", [None, 1], "int64")
    wanted = paddle.static.data("wanted", [None, 1], "float32")
    rows = paddle.static.nn.sparse_embedding(ids, [1000, 8], param_attr=paddle.ParamAttr(name="rows"))
    loss = paddle.mean((paddle.static.nn.fc(paddle.reshape(rows, [-1, 8]), 1) - wanted) ** 2)
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = True
    fleet.distributed_optimizer(paddle.optimizer.Adam(0.005), strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(paddle.static.default_startup_program())
    fleet.init_worker()
    mark("joined")
    data = _data([ids, wanted])
    due = time.monotonic()
    for step in range(1, 10**6):
        executor.train_from_dataset(paddle.static.default_main_program(), data)
        due = max(due + PACE, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))
        mark("step", step)
        print(f"step: {step}/{10**6}", flush=True)


def _data(variables: list[object]) -> object:
    data = paddle.distributed.InMemoryDataset()
    data.init(batch_size=64, thread_num=1, use_var=variables, pipe_command="cat")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as part:
        part.writelines(f"1 {number % 1000} 1 {number // 2 % 2}\n" for number in range(RANK, RANK + SAMPLES))
        part.flush()
        data.set_filelist([part.name])
        data.load_into_memory()
    return data


main()
