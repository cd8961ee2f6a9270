"""A program of ten lines, with a module and a data file of its own, as a user would write it."""

from __future__ import annotations

from pathlib import Path

TRAIN = """\
import sys
import paddle
import paddle.distributed as dist
from helper import target

dist.init_parallel_env()
model = paddle.DataParallel(paddle.nn.Linear(4, 1))
optimizer = paddle.optimizer.SGD(0.1, parameters=model.parameters())
for step in range(1, 31):
    x = paddle.randn([8, 4])
    loss = ((model(x) - target(x)) ** 2).mean()
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    print(f"step={step}/30 loss={float(loss):.5f} world={dist.get_world_size()} {' '.join(sys.argv[1:])}")
"""
HELPER = """\
from pathlib import Path

scale = float(Path("data/scale.txt").read_text())

def target(x):
    return x.sum(1, keepdim=True) * scale
"""


def write_project(folder: Path) -> None:
    (folder / "data").mkdir(parents=True)
    (folder / "train.py").write_text(TRAIN)
    (folder / "helper.py").write_text(HELPER)
    (folder / "data" / "scale.txt").write_text("2")
    (folder / ".env").write_text("TOKEN=secret")
