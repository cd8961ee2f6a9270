"""What this machine cannot do is said before anything starts, all at once, with what to change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paddlejob.api.types import PaddleJob
from paddlejob.local.machine.resources import Machine
from paddlejob.local.options import RunOptions
from paddlejob.local.preflight import Survey, on_the_cpu, survey
from paddlejob.local.store import Store
from tests.support.builders import document, template

SMALL = Machine("laptop", cpus=2, memory=4 * 1024**3)
TRUE = {"command": ["true"]}


def surveyed(wanted: dict[str, Any], tmp_path: Path, isolated: bool = True, machine: Machine = SMALL) -> Survey:
    options = RunOptions(folder=str(tmp_path))
    job = PaddleJob.model_validate(wanted)
    return survey(job, options, Store(tmp_path / "state"), machine, isolated, "not permitted")


def with_pod(container: dict[str, Any], **pod: Any) -> dict[str, Any]:
    made = template(**{**TRUE, **container})
    made["spec"] |= pod
    return document("mnist", workers=1, worker_={"template": made})


def test_everything_in_the_way_is_told_at_once(tmp_path: Path):
    wanted = with_pod(
        {"resources": {"limits": {"nvidia.com/gpu": 2, "cpu": 3, "memory": "64Gi"}}},
        nodeSelector={"accelerator": "p100"},
        volumes=[{"name": "cloud", "awsElasticBlockStore": {"volumeID": "v"}}],
    )
    told = "\n".join(surveyed(wanted, tmp_path).rejections)
    for words in ("2 of nvidia.com/gpu", "3 of cpu", "64.0 GiB of memory", "accelerator=p100", "awsElasticBlockStore"):
        assert words in told
    assert "--cpu" in told
    assert "--overcommit" in told


def test_this_very_machine_may_be_selected(tmp_path: Path):
    wanted = with_pod({}, nodeSelector={"kubernetes.io/hostname": "laptop", "kubernetes.io/os": "linux"})
    assert surveyed(wanted, tmp_path).rejections == []


def test_gpus_that_are_there_are_no_obstacle(tmp_path: Path):
    wanted = with_pod({"resources": {"limits": {"nvidia.com/gpu": 2}}})
    assert surveyed(wanted, tmp_path, machine=Machine("server", 8, 1 << 40, ("0", "1"))).rejections == []


def test_notes_are_told_once(tmp_path: Path):
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "models"}}
    wanted = with_pod({"image": "mine"}, volumes=[claim])
    wanted["spec"]["ps"] = wanted["spec"]["worker"]
    notes = surveyed(wanted, tmp_path).notes
    assert len(notes) == 2
    assert any("--volume models=DIR" in note for note in notes)


def test_without_namespaces_only_shared_memory_can_be_mounted(tmp_path: Path):
    mounts = [{"name": "data", "mountPath": path} for path in ("/dev/shm", "/nas")]
    wanted = with_pod({"volumeMounts": mounts}, volumes=[{"name": "data", "emptyDir": {}}])
    found = surveyed(wanted, tmp_path, isolated=False)
    assert [words for words in found.rejections if "/dev/shm" in words] == []
    assert "mountPath /nas" in found.rejections[0]
    assert "machine's own" in found.notes[-1]


def test_on_the_cpu_leaves_out_accelerators_and_what_chooses_nodes():
    wanted = with_pod(
        {"resources": {"limits": {"nvidia.com/gpu": 1, "cpu": 1}}},
        nodeSelector={"accelerator": "p100"},
        affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}},
    )
    changed, left_out = on_the_cpu(wanted)
    pod = changed["spec"]["worker"]["template"]["spec"]
    assert pod["containers"][0]["resources"] == {"limits": {"cpu": 1}}
    assert "nodeSelector" not in pod
    assert len(left_out) == 3
    assert wanted["spec"]["worker"]["template"]["spec"]["nodeSelector"], "what the user wrote is not touched"


@pytest.mark.parametrize(
    ("command", "refused"),
    [
        (["python", "-u", "train.py", "--epochs", "3"], True),
        (["python3", "-m", "paddle.distributed.launch", "train.py"], True),
        (["python", "-m", "mytool", "config.py"], False),
        (["python", "-c", "print('train.py')"], False),
        (["sh", "-c", "python train.py"], False),
        (["python", "there.py"], False),
    ],
)
def test_a_program_that_is_not_there_is_missed_before_anything_starts(
    tmp_path: Path, command: list[str], refused: bool
):
    (tmp_path / "there.py").touch()
    found = surveyed(with_pod({"image": "mine", "command": command}), tmp_path).rejections
    assert [words for words in found if "there is no train.py" in words] == (found if refused else [])
    assert bool(found) is refused or "PaddlePaddle" in found[0]
