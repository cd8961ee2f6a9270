"""GPUs under `pdj run`: one job each, also for two users, and never a silent training on the CPU."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlejob.local.machine.gpus import environment
from tests.support.fake_gpus import FakeSmi, fake_gpus, new_uuid
from tests.support.pdj import Pdj, wait

PRINT = "echo gpus: $CUDA_VISIBLE_DEVICES order: $CUDA_DEVICE_ORDER; sleep 300"


@pytest.fixture
def machine(tmp_path: Path) -> FakeSmi:
    return FakeSmi(tmp_path / "driver", [new_uuid(), new_uuid()])


@pytest.fixture
def users(tmp_path: Path, machine: FakeSmi) -> Iterator[list[Pdj]]:
    """Three users of one machine with two GPUs, each with a state directory of their own."""
    made = []
    for name in ("ann", "ben", "eve"):
        (tmp_path / name).mkdir()
        made.append(Pdj(tmp_path / name))
        made[-1].environment |= machine.environment
        made[-1].environment.pop("CUDA_VISIBLE_DEVICES", None)
    yield made
    for user in made:
        user.close()
        assert user.processes() == [], "processes were left behind"


def asking(pdj: Pdj, name: str = "train", gpus: int = 1, program: str = PRINT) -> str:
    container = {"resources": {"limits": {"nvidia.com/gpu": gpus}}}
    return pdj.write(name, command=["bash", "-c", program], container=container)


def printed(pdj: Pdj, name: str = "train", namespace: str = "default") -> str:
    log = pdj.store.folder((namespace, name)).log(1, f"{name}-worker-0")
    wait(lambda: log.exists() and log.read_text().endswith("\n"), lambda: f"output of {namespace}/{name}")
    return log.read_text().partition(" order:")[0]


def test_two_users_never_get_the_same_gpu_and_a_third_one_waits_until_one_is_released(users: list[Pdj]):
    ann, ben, eve = users
    for user in users:
        user.start("run", asking(user))
        if user is not eve:
            printed(user)
    assert {printed(ann), printed(ben)} == {"gpus: 0", "gpus: 1"}
    eve.until("train", reason="Unschedulable")
    assert "jobs of other users or state directories (2)" in eve.status("train").message
    freed = printed(ben)
    assert ben("delete", "train").returncode == 0
    assert printed(eve) == freed


def test_the_gpus_of_a_killed_engine_are_free_again(users: list[Pdj]):
    ann, ben, _ = users
    started = ann.start("run", asking(ann, gpus=2))
    printed(ann)
    started.send_signal(signal.SIGKILL)
    ben.start("run", asking(ben, gpus=2))
    assert printed(ben) == "gpus: 0,1"


def test_jobs_of_one_name_in_two_namespaces_hold_a_gpu_each(users: list[Pdj]):
    ann = users[0]
    for namespace in ("team-a", "team-b"):
        ann.start("run", "-n", namespace, asking(ann))
        printed(ann, namespace=namespace)
    ann.start("run", asking(ann, "third"))
    ann.until("third", reason="Unschedulable")
    assert "team-a/train (1), team-b/train (1)" in ann.status("third").message


def test_overcommit_shares_a_gpu_in_use_and_says_so(users: list[Pdj]):
    ann, ben, _ = users
    ann.start("run", asking(ann, gpus=2))
    printed(ann)
    done = ben("run", "--overcommit", asking(ben, program="echo gpus: $CUDA_VISIBLE_DEVICES"))
    assert done.returncode == 0, done.stderr
    assert printed(ben) == "gpus: 0\n"
    assert (
        "note: nvidia.com/gpu: 2 of 2 devices are in use by other jobs and are shared because of --overcommit"
        in done.stderr
    )
    (event,) = [one for one in ben.folder_of("train").events() if one["reason"] == "GPUShared"]
    assert "GPU 0" in event["message"]


@pytest.mark.parametrize("visible", ["", "-1"])
def test_overcommit_without_any_gpu_is_rejected(users: list[Pdj], visible: str):
    ann = users[0]
    ann.environment["CUDA_VISIBLE_DEVICES"] = visible
    done = ann("run", "--overcommit", asking(ann))
    assert done.returncode == 1
    assert "this machine has none" in done.stderr
    assert f'CUDA_VISIBLE_DEVICES="{visible}" hides all GPUs' in done.stderr
    assert "--cpu" in done.stderr


def test_jobs_get_the_gpus_that_the_user_leaves_to_them(users: list[Pdj], machine: FakeSmi):
    ann = users[0]
    ann.environment["CUDA_VISIBLE_DEVICES"] = f"{machine.uuids[1][:12]}, {machine.uuids[0]}"
    program = "echo gpus: $CUDA_VISIBLE_DEVICES order: $CUDA_DEVICE_ORDER"
    done = ann("run", asking(ann, gpus=2, program=program))
    assert done.returncode == 0, done.stderr
    assert ann.log("train", "worker-0") == "gpus: 1,0 order: PCI_BUS_ID\n"


def test_paddles_launcher_finds_its_numbers_in_what_pods_get(tmp_path: Path):
    """Why pods get indexes: in a list of UUIDs, `--gpus 0,1` ends with "'0' is not in list"."""
    (tmp_path / "train.py").write_text("import os\nprint('selected', os.environ['FLAGS_selected_gpus'])\n")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PADDLE", "CUDA_"))}
    command = [sys.executable, "-m", "paddle.distributed.launch", "--gpus", "0,1", "--log_dir", "log", "train.py"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=kept | environment(fake_gpus(2)),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [(tmp_path / "log" / f"workerlog.{rank}").read_text() for rank in (0, 1)] == ["selected 0\n", "selected 1\n"]
