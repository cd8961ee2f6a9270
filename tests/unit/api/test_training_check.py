"""Warnings about training programs that cannot work as their job is written."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.api.checks.pods import check_pods
from paddlejob.api.fault import Severity
from paddlejob.api.program import Overrides, job_of_program, shell_command
from tests.support.builders import document

CLAIM = {"name": "out", "persistentVolumeClaim": {"claimName": "c"}}


def warnings(*command: str, workers: int = 2, env: dict[str, str] | None = None, **pod: Any) -> list[str]:
    document = job_of_program(shell_command(command), Overrides(workers=workers, image="i", environment=env or {}))
    spec = document["spec"]["worker"]["template"]["spec"]
    spec["containers"][0] |= {"volumeMounts": pod.pop("mounts", [])}
    spec |= pod
    return [str(fault) for fault in check_pods(document) if fault.severity is Severity.WARNING]


@pytest.mark.parametrize("command", [("mpirun", "-n", "2", "python", "train.py"), ("sh", "-c", "exec mpiexec -n 2 x")])
def test_mpirun_is_not_needed(command: tuple[str, ...]):
    (warning,) = warnings(*command)
    assert "starts processes itself, but every worker is a pod of its own" in warning


def test_a_file_that_is_named_like_it_is_fine():
    assert warnings("python", "mpirun.py", "my-mpirun") == []


@pytest.mark.parametrize(
    "command",
    [
        ("python", "train.py", "--output_dir", "/output"),
        ("python", "train.py", "--save-dir=/output/run"),
        ("python", "train.py", "--checkpoint_path", "/output"),
    ],
)
def test_checkpoints_of_several_workers_need_a_volume_that_they_share(command: tuple[str, ...]):
    (warning,) = warnings(*command)
    assert "is on no volume that the workers share" in warning
    assert len(warnings(*command, mounts=[{"name": "out", "mountPath": "/output"}], volumes=[CLAIM])) == 0
    private = {"name": "out", "emptyDir": {}}
    assert len(warnings(*command, mounts=[{"name": "out", "mountPath": "/output"}], volumes=[private])) == 1
    assert len(warnings(*command, mounts=[{"name": "out", "mountPath": "/out"}], volumes=[CLAIM])) == 1
    assert warnings(*command, workers=1) == []


def test_a_variable_may_name_the_directory_too():
    (warning,) = warnings("python", "train.py", env={"OUTPUT_DIR": "/output"})
    assert "OUTPUT_DIR is /output" in warning


@pytest.mark.parametrize("command", [("python", "t.py", "--output_dir", "out"), ("python", "t.py", "--output_dir")])
def test_a_relative_directory_says_nothing(command: tuple[str, ...]):
    assert warnings(*command) == []


@pytest.mark.parametrize("kind", ["emptyDir", "configMap", "secret", "downwardAPI", "projected", "ephemeral"])
def test_a_volume_that_each_pod_has_for_itself_keeps_no_checkpoint(kind: str):
    mounts, volumes = [{"name": "n", "mountPath": "/m"}], [{"name": "n", kind: {}}]
    assert len(warnings("python", "t.py", "--save_dir", "/m", mounts=mounts, volumes=volumes)) == 1


def where(made: dict[str, Any]) -> list[str]:
    return [fault.where for fault in check_pods(made)]


def test_only_workers_are_asked_where_they_save_and_every_role_how_it_starts():
    made = document(ps=2, workers=2, heter=1)
    server, heter = (made["spec"][role]["template"]["spec"]["containers"][0] for role in ("ps", "heter"))
    server["args"] = ["--save_dir", "/m"]
    assert where(made) == []
    server["args"], heter["args"] = ["mpirun"], ["x", "mpirun"]
    assert where(made) == [f"spec.{path}" for path in (
        "ps.template.spec.containers[0].args[0]", "heter.template.spec.containers[0].args[1]"
    )]  # fmt: skip
    sidecar = document(workers=2)
    containers = sidecar["spec"]["worker"]["template"]["spec"]["containers"]
    containers[0] |= {"name": "side", "args": ["mpirun"]}
    containers.append({"name": "paddle", "image": "i", "args": ["mpiexec"]})
    assert where(sidecar) == ["spec.worker.template.spec.containers[1].args[0]"]
