"""Paddle's launcher hangs in a job with parameter servers; whoever uses it there is warned with the remedy."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.api.checks.launcher import launcher_warnings
from tests.support.builders import job, template

STARTS = {
    "a list": {"command": ["python", "-m", "paddle.distributed.launch", "train.py"]},
    "args alone": {"args": ["-m", "paddle.distributed.launch", "--log_dir", "x", "train.py"]},
    "a shell": {"command": ["sh", "-c", "cd /app && python3 -m paddle.distributed.launch train.py"]},
    "a script of several lines": {"command": ["bash", "-c"], "args": ["set -e\npython -m paddle.distributed.launch x"]},
    "fleetrun": {"command": ["fleetrun", "train.py"]},
    "fleetrun with its path, in a shell": {"command": ["sh", "-c", "/usr/local/bin/fleetrun --server_num=2 train.py"]},
}  # fmt: skip


@pytest.mark.parametrize("container", STARTS.values(), ids=STARTS)
def test_the_launcher_in_a_job_with_servers_is_warned_about(container: dict[str, Any]):
    found = launcher_warnings(job(ps=1, worker_={"template": template(**container)}))
    assert len(found) == 1
    assert "spec.worker" in found[0]
    assert "run the program directly" in found[0]


@pytest.mark.parametrize(
    "container",
    [
        {"command": ["python", "train.py"]},
        {"command": ["python", "-m", "paddle.distributed.launcher_of_mine"]},
        {"command": ["sh", "-c", "./my-fleetrun-like"]},
        {},
    ],
)
def test_other_programs_are_not(container: dict[str, Any]):
    assert launcher_warnings(job(ps=1, worker_={"template": template(**container)})) == []


def test_without_servers_the_launcher_is_fine():
    assert launcher_warnings(job(worker_={"template": template(**STARTS["a list"])})) == []


def test_only_the_training_container_counts():
    pod = template(command=["python", "train.py"])
    pod["spec"]["containers"].append({"name": "sidecar", "image": "x", **STARTS["a list"]})
    assert launcher_warnings(job(ps=1, worker_={"template": pod})) == []


def test_every_role_is_named():
    pod = {"template": template(**STARTS["a list"])}
    found = launcher_warnings(job(ps=1, ps_=pod, worker_=pod))
    assert [one.split(":")[0] for one in found] == ["spec.ps", "spec.worker"]
