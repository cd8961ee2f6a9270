"""Single checks before a run: programs, mounts, nodes, GPUs, and Paddle itself."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from paddlejob.api.types import PaddleJob
from paddlejob.local.machine.gpu_locks import lock_gpus
from paddlejob.local.machine.resources import Machine
from paddlejob.local.options import RunOptions
from paddlejob.local.preflight import PreflightResult, has_paddle, on_the_cpu, preflight
from paddlejob.local.state.store import Store
from tests.support.builders import document
from tests.support.fake_gpus import fake_gpus
from tests.support.interpreters import interpreter

SMALL = Machine("laptop", cpus=2, memory=4 << 30)


def checked(root: Path, container: dict[str, Any], **more: Any) -> PreflightResult:
    machine, isolated = more.pop("machine", SMALL), more.pop("isolated", True)
    options = RunOptions(**{"folder": str(root), **more.pop("options", {})})
    spec = {"containers": [{"name": "paddle", "image": "mine", "command": ["true"], **container}], **more}
    job = PaddleJob.model_validate(document("mnist", workers=1, worker_={"template": {"spec": spec}}))
    return preflight(job, options, Store(root / "state"), machine, isolated, "not permitted")


@pytest.mark.parametrize(
    "command",
    [
        ["python", "train.py"],
        ["/usr/bin/python3.11", "-u", "train.py"],
        ["python", "-m", "paddle.distributed.launch", "train.py"],
    ],
)
def test_a_script_that_python_would_not_find_is_an_error(tmp_path: Path, command: list[str]):
    missing = f"train.py not found in {tmp_path}, the directory used for image mine; put it there"
    assert any(missing in error for error in checked(tmp_path, {"command": command}).errors)
    (tmp_path / "train.py").touch()
    assert not any(missing in error for error in checked(tmp_path, {"command": command}).errors)


@pytest.mark.parametrize(
    ("container", "pod"),
    [
        ({"command": ["python", "-c", "import train.py"]}, {}),
        ({"command": ["python", "-m", "mine", "train.py"]}, {}),
        ({"command": ["bash", "train.py"]}, {}),
        ({"command": ["python", "train.py"], "workingDir": "/code"}, {}),
        (
            {"command": ["python", "train.py"], "volumeMounts": [{"name": "code", "mountPath": "/code"}]},
            {"volumes": [{"name": "code", "emptyDir": {}}]},
        ),
        ({"command": ["python", "train.py"]}, {"initContainers": [{"name": "a", "image": "b", "command": ["true"]}]}),
    ],
)
def test_a_script_that_may_come_from_elsewhere_is_not_looked_for(
    tmp_path: Path, container: dict[str, Any], pod: dict[str, Any]
):
    assert checked(tmp_path, container, **pod).errors == []


def test_a_container_without_a_command_is_an_error(tmp_path: Path):
    (error,) = checked(tmp_path, {"command": []}).errors
    assert "container paddle has no command" in error


def test_without_mount_namespaces_every_mount_but_shared_memory_is_an_error(tmp_path: Path):
    mounts = [{"name": "a", "mountPath": "/data"}, {"name": "a", "mountPath": "/dev/shm/"}]
    pod = {"volumes": [{"name": "a", "emptyDir": {}}], "options": {"volumes": {"/nas": "/tmp"}}}
    found = checked(tmp_path, {"volumeMounts": mounts}, isolated=False, **pod)
    assert [error.partition(": ")[0] for error in found.errors] == [
        "mountPath /data cannot be mounted",
        "/nas cannot be mounted",
    ]
    assert "(not permitted)" in found.errors[0]
    assert any("/dev/shm is shared with the machine" in note for note in found.notes)
    found = checked(tmp_path, {"volumeMounts": mounts}, isolated=True, **pod)
    assert found.errors == []
    assert not any("/dev/shm" in note for note in found.notes)


def test_nodes_are_matched_by_the_labels_of_this_machine(tmp_path: Path):
    assert checked(tmp_path, {}, nodeSelector={"kubernetes.io/os": "linux"}).errors == []
    (error,) = checked(tmp_path, {}, nodeSelector={"zone": "a"}).errors
    assert error.startswith("spec.worker.template: nodeSelector zone=a does not match this machine")
    required = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}
    (error,) = checked(tmp_path, {}, affinity=required).errors
    assert "required nodeAffinity is not supported" in error
    preferred = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    assert checked(tmp_path, {}, affinity=preferred).errors == []


def gpu(count: int) -> dict[str, Any]:
    return {"resources": {"limits": {"nvidia.com/gpu": count}}}


def test_what_is_missing_names_its_reason_and_what_can_be_done(tmp_path: Path):
    (error,) = checked(tmp_path, gpu(1), machine=Machine("m", 2, 1 << 30, (), "the driver failed")).errors
    assert "this machine has none (the driver failed); train on the CPU with --cpu" in error
    (error,) = checked(tmp_path, {"resources": {"limits": {"amd.com/gpu": 1}}}, machine=Machine("m", 2, 1)).errors
    assert "this machine has none; train on the CPU" in error
    limits = {"resources": {"limits": {"cpu": 3}}}
    assert "--overcommit" in checked(tmp_path, limits).errors[0]
    assert checked(tmp_path, limits, options={"overcommit": True}).errors == []
    assert checked(tmp_path, {"resources": {"limits": {"cpu": 2}}}).errors == [], "all of it may be used"


def test_gpus_that_others_use_are_shared_only_with_overcommit_and_that_is_noted(tmp_path: Path):
    machine = Machine("m", 2, 1 << 30, fake_gpus(2))
    (held,) = lock_gpus(machine.gpus, 1)
    try:
        found = checked(tmp_path, gpu(2), machine=machine, options={"overcommit": True})
        assert any("1 of 2 GPUs are in use by other jobs and are shared" in note for note in found.notes)
        for wanted, options in ((2, {}), (1, {"overcommit": True})):
            found = checked(tmp_path, gpu(wanted), machine=machine, options=options)
            assert not any("in use by other jobs" in note for note in found.notes)
    finally:
        held.release()


def test_a_job_file_that_chooses_gpus_itself_is_noted(tmp_path: Path):
    chosen = {"env": [{"name": "CUDA_VISIBLE_DEVICES", "value": "0"}]}
    machine = Machine("m", 2, 1 << 30, fake_gpus(1), "one GPU cannot be read")
    notes = "\n".join(checked(tmp_path, {**gpu(1), **chosen}, machine=machine).notes)
    assert "spec.worker: the job file sets CUDA_VISIBLE_DEVICES, which overrides the GPU assignment" in notes
    assert "one GPU cannot be read" in notes
    assert "CUDA_VISIBLE_DEVICES" not in "\n".join(checked(tmp_path, chosen, machine=machine).notes), "no GPU wanted"


@pytest.mark.parametrize(
    ("container", "needed"),
    [
        ({"image": "paddlejob/mnist:v1", "command": []}, True),
        ({"image": "paddlejob/mnist:v1", "command": ["python3", "train.py"]}, True),
        ({"image": "paddlejob/mnist:v1", "command": ["ls"]}, False),
        ({"command": ["python", "-m", "paddle.distributed.launch"]}, True),
        ({"command": ["bash", "-c"], "args": ["python -m paddle.distributed.launch x.py"]}, True),
        ({"command": ["python", "-m", "mine"]}, False),
    ],
)
def test_a_python_without_paddle_is_an_error_where_paddle_is_needed(
    tmp_path: Path, container: dict[str, Any], needed: bool
):
    bare = tmp_path / "bare"
    bare.write_text("#!/bin/sh\nexit 1\n")
    bare.chmod(0o755)
    errors = checked(tmp_path, container, options={"python": str(bare)}).errors
    assert any(f"PaddlePaddle is not installed for {bare}" in error for error in errors) is needed


def test_whether_an_interpreter_has_paddle_is_asked_of_itself(tmp_path: Path):
    assert not has_paddle(str(tmp_path / "absent"))
    bare = interpreter(tmp_path / "python3")
    assert has_paddle(bare) == has_paddle(sys.executable)


def test_what_is_left_out_on_the_cpu_is_listed(tmp_path: Path):
    made = document("mnist", ps=1, workers=1)
    pod = made["spec"]["worker"]["template"]["spec"]
    pod["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 2, "cpu": 1}, "claims": []}
    pod |= {"nodeSelector": {"a": "b"}, "affinity": {"nodeAffinity": {"x": 1}, "podAffinity": {"y": 1}}}
    changed, removed = on_the_cpu(made)
    left = changed["spec"]["worker"]["template"]["spec"]
    assert left["containers"][0]["resources"]["limits"] == {"cpu": 1}
    assert "nodeSelector" not in left
    assert "nodeAffinity" not in left.get("affinity", {})
    assert removed[:2] == ["worker: nvidia.com/gpu 2", "worker: nodeSelector"]
    assert pod["nodeSelector"] == {"a": "b"}, "the document itself is not changed"
