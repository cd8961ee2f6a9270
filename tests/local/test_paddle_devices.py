"""What Paddle itself does with the variables of a worker that has one device, for builds of other devices."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from paddlejob.api.devices import DEVICES, Device
from paddlejob.api.types import PaddleJob, Role
from paddlejob.plan.manifests import environment
from paddlejob.plan.manifests.pod import pod_manifest
from tests.support.builders import job, template
from tests.support.interpreters import cached_python

pytest.importorskip("paddle", reason="PaddlePaddle is not installed")
SUPPORT = Path(__file__).parents[1] / "support"
CHECKS = SUPPORT / "paddle_device_checks.py"
ASKS_FOR_GPU = "FLAGS_selected_gpus is needed, but not set"
INITIALIZE = "import paddle.distributed as dist; dist.init_parallel_env()"


def asking_for(resource: str) -> PaddleJob:
    return job(worker_={"template": template(resources={"limits": {resource: 1}})})


def environment_of(made: PaddleJob, index: int) -> dict[str, str]:
    """What a worker sees if all pods are on this machine."""
    hosts = {slot: f"127.0.0.{slot[1] + 2}" for slot in made.spec.slots}
    found = environment.of_attempt(made, 1, hosts)
    for one in pod_manifest(made, Role.WORKER, index, 1, "")["spec"]["containers"][0]["env"]:
        value = one.get("value", hosts[Role.WORKER, index])
        found[one["name"]] = re.sub(r"\$\((\w+)\)", lambda name: found[name[1]], value)
    return found


def case_of(device: Device) -> dict:
    built_in = "" if device.xccl else device.selected.removeprefix("FLAGS_selected_").removesuffix("s")
    return {
        "built_in": "cuda" if built_in == "gpu" else built_in,  # a build for ROCm says that it is one for CUDA
        "plugin": device.xccl,
        "environment": environment_of(asking_for(device.resource), 0),
    }


@pytest.mark.parametrize("version", ["2.6.2", "3.3.1"])
def test_every_device_passes_the_checks_of_init_parallel_env(version: str):
    python = sys.executable if version == "2.6.2" else cached_python("paddle", SUPPORT / "paddle-3.3.1.lock")
    cases = {device.kind.value: case_of(device) for device in DEVICES}
    cases["unset"] = {**cases["gpu"], "environment": dict(cases["gpu"]["environment"])}
    del cases["unset"]["environment"]["FLAGS_selected_gpus"]
    done = subprocess.run([python, CHECKS], input=json.dumps(cases), capture_output=True, text=True, timeout=120)
    found = json.loads(done.stdout)
    assert ASKS_FOR_GPU in found.pop("unset"), "else these checks prove nothing"
    places = {"gpu": "cuda:0", "dcu": "cuda:0", "xpu": "xpu:0"}
    assert found == {kind: places.get(kind, f"{kind}:0") for kind in found}, done.stderr


SHOW_SELECTED = """
import os
with open(f"selected-{os.environ['PADDLE_LOCAL_RANK']}", "w") as file:
    file.write(os.environ["FLAGS_selected_gpus"])
"""


def test_the_launcher_selects_a_device_for_each_process_whatever_the_pod_says(tmp_path: Path):
    """Here it finds two GPUs in a pod that asked for one, whose environment selects the first."""
    (tmp_path / "train.py").write_text(SHOW_SELECTED)
    made = job(workers=1, worker_={"template": template(resources={"limits": {"nvidia.com/gpu": 1}})})
    given = environment_of(made, 0)
    assert given["FLAGS_selected_gpus"] == "0"
    command = [sys.executable, "-m", "paddle.distributed.launch", "train.py"]
    environ = {**os.environ, **given, "CUDA_VISIBLE_DEVICES": "0,1"}
    subprocess.run(command, cwd=tmp_path, env=environ, check=True, capture_output=True, timeout=120)
    assert [(tmp_path / f"selected-{rank}").read_text() for rank in range(2)] == ["0", "1"]


@pytest.mark.full
def test_two_workers_with_a_gpu_each_reach_their_gpu_with_the_gpu_build_of_paddle():
    """The build needs no GPU to be imported, and looks for one only after it has checked its variables."""
    python = cached_python("paddle-gpu", SUPPORT / "paddle-gpu-2.6.2.lock")
    made = asking_for("nvidia.com/gpu")
    common = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    command = [python, "-c", INITIALIZE]
    workers = [
        subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=common | environment_of(made, index))
        for index in range(2)
    ]
    for worker in workers:
        _, errors = worker.communicate(timeout=120)
        assert "no GPU detected on your machine" in errors, errors
        assert ASKS_FOR_GPU not in errors
