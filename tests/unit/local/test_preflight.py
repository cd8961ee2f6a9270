"""Everything that this machine cannot do is reported before anything starts, with what to change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paddlejob.api.types import PaddleJob
from paddlejob.local.machine.resources import Machine
from paddlejob.local.options import RunOptions
from paddlejob.local.preflight import PreflightResult, on_the_cpu, preflight
from paddlejob.local.state.store import Store
from tests.support.builders import document, template
from tests.support.fake_gpus import fake_gpus

SMALL = Machine("laptop", cpus=2, memory=4 * 1024**3)
TRUE = {"command": ["true"]}


def checked(wanted: dict[str, Any], tmp_path: Path, isolated: bool = True, machine: Machine = SMALL) -> PreflightResult:
    options = RunOptions(folder=str(tmp_path))
    job = PaddleJob.model_validate(wanted)
    return preflight(job, options, Store(tmp_path / "state"), machine, isolated, "not permitted")


def with_pod(container: dict[str, Any], **pod: Any) -> dict[str, Any]:
    made = template(**{**TRUE, **container})
    made["spec"] |= pod
    return document("mnist", workers=1, worker_={"template": made})


def test_a_job_of_another_controller_runs_here_and_that_is_said(tmp_path: Path):
    made = with_pod({})
    made["spec"]["managedBy"] = "kueue.x-k8s.io/multikueue"
    note = "No effect on one machine, only on a cluster: managedBy kueue.x-k8s.io/multikueue."
    assert note in checked(made, tmp_path).notes
    made["spec"]["managedBy"] = "batch.paddlepaddle.org/operator"
    assert not [one for one in checked(made, tmp_path).notes if "managedBy" in one]


def test_all_errors_are_reported_at_once(tmp_path: Path):
    wanted = with_pod(
        {"resources": {"limits": {"nvidia.com/gpu": 2, "cpu": 3, "memory": "64Gi"}}},
        nodeSelector={"accelerator": "p100"},
        volumes=[{"name": "cloud", "awsElasticBlockStore": {"volumeID": "v"}}],
    )
    errors = "\n".join(checked(wanted, tmp_path).errors)
    for part in (
        "insufficient nvidia.com/gpu: the job requests 2 and this machine has none",
        "insufficient cpu: the job requests 3 and this machine has 2",
        "insufficient memory: the job requests 64.0 GiB and this machine has 4.0 GiB",
        "nodeSelector accelerator=p100",
        "awsElasticBlockStore",
    ):
        assert part in errors
    assert "--cpu" in errors
    assert "--overcommit" in errors


def test_an_elastic_job_that_fits_with_fewer_workers_runs_with_a_note(tmp_path: Path):
    worker = {"requests": 2, "template": template(**TRUE, resources={"limits": {"cpu": 1}})}
    found = checked(document("mnist", workers=4, elastic=1, worker_=worker), tmp_path)
    assert found.errors == []
    assert "cpu: the job requests 4 and this machine has 2; it is elastic" in found.notes[0]
    too_many = checked(document("mnist", workers=4, elastic=1, worker_=worker | {"requests": 3}), tmp_path)
    assert "insufficient cpu: the job requests 3 and this machine has 2" in too_many.errors[0]
    assert not [note for note in too_many.notes if "elastic" in note]


def test_this_very_machine_may_be_selected(tmp_path: Path):
    wanted = with_pod({}, nodeSelector={"kubernetes.io/hostname": "laptop", "kubernetes.io/os": "linux"})
    assert checked(wanted, tmp_path).errors == []


def test_a_job_may_use_the_gpus_of_the_machine(tmp_path: Path):
    wanted = with_pod({"resources": {"limits": {"nvidia.com/gpu": 2}}})
    assert checked(wanted, tmp_path, machine=Machine("server", 8, 1 << 40, fake_gpus(2))).errors == []


def test_a_job_that_requests_gpus_learns_why_there_are_fewer_than_expected(tmp_path: Path):
    wanted = with_pod({"resources": {"limits": {"nvidia.com/gpu": 2}}})
    machine = Machine("server", 8, 1 << 40, fake_gpus(1), "GPU 1 is hidden; unset CUDA_VISIBLE_DEVICES")
    found = checked(wanted, tmp_path, machine=machine)
    assert "the job requests 2 and this machine has 1 (GPU 1 is hidden; unset CUDA_VISIBLE_DEVICES)" in found.errors[0]
    assert machine.gpu_note in found.notes
    assert machine.gpu_note not in checked(with_pod({}), tmp_path, machine=machine).notes


def test_a_job_file_that_selects_gpus_itself_is_noted(tmp_path: Path):
    env = [{"name": "CUDA_VISIBLE_DEVICES", "value": "0"}]
    wanted = with_pod({"env": env, "resources": {"limits": {"nvidia.com/gpu": 1}}})
    notes = checked(wanted, tmp_path, machine=Machine("server", 8, 1 << 40, fake_gpus(1))).notes
    assert any("spec.worker: the job file sets CUDA_VISIBLE_DEVICES, which overrides" in note for note in notes)


def test_each_note_is_given_once(tmp_path: Path):
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "models"}}
    wanted = with_pod({"image": "mine"}, volumes=[claim])
    wanted["spec"]["ps"] = wanted["spec"]["worker"]
    notes = checked(wanted, tmp_path).notes
    assert len(notes) == 2
    assert any("--volume models=DIR" in note for note in notes)


def test_without_namespaces_only_shared_memory_can_be_mounted(tmp_path: Path):
    mounts = [{"name": "data", "mountPath": path} for path in ("/dev/shm", "/nas")]
    wanted = with_pod({"volumeMounts": mounts}, volumes=[{"name": "data", "emptyDir": {}}])
    found = checked(wanted, tmp_path, isolated=False)
    assert [error for error in found.errors if "/dev/shm" in error] == []
    assert "mountPath /nas" in found.errors[0]
    assert "/dev/shm is shared with the machine" in found.notes[-1]


def test_a_volume_may_be_mounted_where_there_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "settings.ini"
    file.write_text("lr=0.1")
    monkeypatch.chdir(tmp_path)
    volumes = [{"name": "data", "emptyDir": {}}, {"name": "one", "hostPath": {"path": str(file)}}]

    def errors(*mounts: dict[str, str]) -> list[str]:
        return checked(with_pod({"volumeMounts": list(mounts)}, volumes=volumes), tmp_path).errors

    (error,) = errors({"name": "data", "mountPath": str(file)})
    assert error.startswith(f"mountPath {file} is a file on this machine")
    assert errors({"name": "data", "mountPath": "settings.ini"}) == [], "it is mounted at /settings.ini"
    assert errors({"name": "one", "mountPath": str(file)}) == [], "a file at a file"
    assert errors({"name": "data", "mountPath": str(file), "subPath": "settings.ini"}) == []
    assert errors({"name": "data", "mountPath": str(tmp_path)}, {"name": "data", "mountPath": str(file)}) == []


def test_on_the_cpu_accelerators_and_node_selectors_are_removed():
    wanted = with_pod(
        {"resources": {"limits": {"nvidia.com/gpu": 1, "cpu": 1}}},
        nodeSelector={"accelerator": "p100"},
        affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}},
    )
    changed, removed = on_the_cpu(wanted)
    pod = changed["spec"]["worker"]["template"]["spec"]
    assert pod["containers"][0]["resources"] == {"limits": {"cpu": 1}}
    assert "nodeSelector" not in pod
    assert len(removed) == 3
    assert wanted["spec"]["worker"]["template"]["spec"]["nodeSelector"], "the user's own document does not change"


@pytest.mark.parametrize(
    ("command", "rejected"),
    [
        (["python", "-u", "train.py", "--epochs", "3"], True),
        (["python3", "-m", "paddle.distributed.launch", "train.py"], True),
        (["python", "-m", "mytool", "config.py"], False),
        (["python", "-c", "print('train.py')"], False),
        (["sh", "-c", "python train.py"], False),
        (["python", "there.py"], False),
    ],
)
def test_a_missing_program_is_reported_before_anything_starts(tmp_path: Path, command: list[str], rejected: bool):
    (tmp_path / "there.py").touch()
    found = checked(with_pod({"image": "mine", "command": command}), tmp_path).errors
    assert [error for error in found if "train.py not found in" in error] == (found if rejected else [])
    assert bool(found) is rejected or "PaddlePaddle" in found[0]
