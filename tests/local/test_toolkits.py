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


@pytest.mark.parametrize("device", ["auto", "gpu"])
def test_two_pods_of_paddleformers_train_as_one_world(pdj: Pdj, toolkits: Path, device: str):
    """Also with the variables of a pod that has one GPU, though there is none."""
    write_tiny_model(toolkits, pdj.folder)
    variables = {
        "CUDA_VISIBLE_DEVICES": "0",  # paddleformers-cli hands it to the launcher, even where there is no GPU
        "HF_HUB_OFFLINE": "1",
    }
    if device == "gpu":
        variables["PADDLE_DISTRI_BACKEND"] = "gloo"  # the build for CPUs has nothing else
    container = {"env": [{"name": name, "value": value} for name, value in variables.items()]}
    command = ["paddleformers-cli", "train", "train.yaml"]
    path = pdj.write("formers", workers=2, command=command, container=container, device=device, backoffLimit=0)
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


HANDED = """
import os
with open("handed-" + os.environ["PADDLE_TRAINER_ID"], "w") as handed:
    handed.write(os.environ["FLAGS_selected_gpus"] + " of " + os.environ["PADDLE_TRAINERS_NUM"])
"""


@pytest.mark.parametrize("devices", ["0", "0,1"], ids=["one device", "two devices"])
def test_the_launcher_of_3_gives_each_process_its_own_device_too_whatever_its_pod_selects(
    pdj: Pdj, toolkits: Path, devices: str
):
    (pdj.folder / "script.py").write_text(HANDED)
    visible = {"env": [{"name": "CUDA_VISIBLE_DEVICES", "value": devices}]}
    path = pdj.write("handed", workers=2, command=LAUNCHER, container=visible, device="gpu", backoffLimit=0)
    done = pdj("run", "--python", str(toolkits), path, timeout=LONG)
    assert done.returncode == 0, done.stdout + done.stderr + pdj.log("handed", "worker-0")
    each = len(devices.split(","))
    handed = [(pdj.folder / f"handed-{rank}").read_text() for rank in range(2 * each)]
    assert handed == [f"{rank % each} of {2 * each}" for rank in range(2 * each)]
