"""What today's Paddle users start: PaddleFormers, Paddle's launcher and plain scripts, on Paddle 2.6.2 and 3.3.1."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.support.pdj import Pdj
from tests.support.toolkits import toolkits_python, write_tiny_model

pytest.importorskip("paddle", reason="PaddlePaddle is not installed")
pytestmark = [pytest.mark.full, pytest.mark.xdist_group("training")]

LONG = 600.0
SCRIPT = """
import paddle
import paddle.distributed as dist

dist.init_parallel_env()
total = paddle.to_tensor([float(dist.get_rank() + 1)])
dist.all_reduce(total)
with open(f"seen-{dist.get_rank()}", "w") as seen:
    seen.write(f"{paddle.__version__} {dist.get_rank()} of {dist.get_world_size()}: {total.item():.0f}")
"""
PLAIN = ["python", "script.py"]
LAUNCHER = ["python", "-m", "paddle.distributed.launch", "script.py"]


@pytest.fixture(scope="module")
def toolkits() -> Path:
    return toolkits_python()


def test_two_pods_of_paddleformers_train_as_one_world(pdj: Pdj, toolkits: Path):
    write_tiny_model(toolkits, pdj.folder)
    variables = {
        "CUDA_VISIBLE_DEVICES": "0",  # paddleformers-cli hands it to the launcher, even where there is no GPU
        "HF_HUB_OFFLINE": "1",
    }
    container = {"env": [{"name": name, "value": value} for name, value in variables.items()]}
    command = ["paddleformers-cli", "train", "train.yaml"]
    path = pdj.write("formers", workers=2, command=command, container=container, backoffLimit=0)
    done = pdj("run", "--python", str(toolkits), path, timeout=LONG)
    assert done.returncode == 0, done.stdout + done.stderr + pdj.log("formers", "worker-0")
    for index in range(2):
        log = pdj.log("formers", f"worker-{index}")
        assert re.findall(r"Process rank: .* world_size: (\d+)", log) == ["2"], log
        assert "global_step: 2" in log, log


@pytest.mark.parametrize("command", [PLAIN, LAUNCHER], ids=["plain", "launcher"])
@pytest.mark.parametrize("version", ["2.6.2", "3.3.1"])
def test_plain_paddle_still_forms_one_world(pdj: Pdj, toolkits: Path, version: str, command: list[str]):
    python = sys.executable if version == "2.6.2" else str(toolkits)
    (pdj.folder / "script.py").write_text(SCRIPT)
    done = pdj("run", "--python", python, pdj.write("plain", workers=2, command=command, backoffLimit=0), timeout=LONG)
    assert done.returncode == 0, done.stdout + done.stderr + pdj.log("plain", "worker-0")
    seen = [(pdj.folder / f"seen-{rank}").read_text() for rank in range(2)]
    assert seen == [f"{version} {rank} of 2: 3" for rank in range(2)]
