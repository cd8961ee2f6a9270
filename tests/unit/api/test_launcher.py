"""Paddle's launcher hangs in a job with parameter servers; whoever uses it there is warned with the remedy."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.api.checks.launcher import check_launcher
from paddlejob.api.checks.pods import check_job
from paddlejob.api.fault import Severity
from tests.support.builders import document, template

STARTS = {
    "a list": {"command": ["python", "-m", "paddle.distributed.launch", "train.py"]},
    "args alone": {"args": ["-m", "paddle.distributed.launch", "--log_dir", "x", "train.py"]},
    "a shell": {"command": ["sh", "-c", "cd /app && python3 -m paddle.distributed.launch train.py"]},
    "a script of several lines": {"command": ["bash", "-c"], "args": ["set -e\npython -m paddle.distributed.launch x"]},
    "fleetrun": {"command": ["fleetrun", "train.py"]},
    "fleetrun with its path, in a shell": {"command": ["sh", "-c", "/usr/local/bin/fleetrun --server_num=2 train.py"]},
}  # fmt: skip


def launcher_warnings(made: dict[str, Any]) -> list[str]:
    return [str(fault) for fault in check_launcher({role: one["template"] for role, one in made["spec"].items()})]


@pytest.mark.parametrize("container", STARTS.values(), ids=STARTS)
def test_the_launcher_in_a_job_with_servers_is_warned_about(container: dict[str, Any]):
    found = launcher_warnings(document(ps=1, worker_={"template": template(**container)}))
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
    assert launcher_warnings(document(ps=1, worker_={"template": template(**container)})) == []


@pytest.mark.parametrize(
    "command",
    [
        ["python", "-m", "paddle.distributed.launch", "train.py"],
        ["fleetrun", "--log_dir", "x", "train.py", "--server_num=1", "--run_mode", "ps"],
        ["sh", "-c", "fleetrun train && ./start --servers=x"],
    ],
)
def test_without_servers_the_launcher_is_fine(command: list[str]):
    assert launcher_warnings(document(worker_={"template": template(command=command)})) == []


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (["fleetrun", "--worker_num=1", "--server_num=1", "train.py"], "fleetrun --server_num"),
        (["sh", "-c", "fleetrun --servers 127.0.0.1:6170 train.py"], "fleetrun --servers"),
        (["python", "-m", "paddle.distributed.launch", "--run_mode", "ps", "x.py"], "launch --run_mode ps"),
        (["python", "-m", "paddle.distributed.launch", "--run_mode=ps", "x.py"], "launch --run_mode=ps"),
    ],
)
def test_a_launcher_that_shall_start_servers_is_rejected_with_the_remedy(command: list[str], named: str):
    (found,) = check_job(document(worker_={"template": template(command=command)}))
    assert found.severity is Severity.ERROR
    assert f"{named} waits forever" in found.message and "--ps N" in found.message


def test_only_the_training_container_counts():
    pod = template(command=["python", "train.py"])
    pod["spec"]["containers"].append({"name": "sidecar", "image": "x", **STARTS["a list"]})
    assert launcher_warnings(document(ps=1, worker_={"template": pod})) == []


def test_every_role_is_named():
    pod = {"template": template(**STARTS["a list"])}
    found = launcher_warnings(document(ps=1, ps_=pod, worker_=pod))
    assert [one.split(":")[0] for one in found] == ["spec.ps", "spec.worker"]
