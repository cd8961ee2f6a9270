"""Checks before a run: what overcommitting changes, what has no effect here, and which Python is needed."""

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

SMALL = Machine("laptop", cpus=2, memory=4 << 30)


def check(
    root: Path, wanted: dict[str, Any], machine: Machine = SMALL, isolated: bool = True, **options: Any
) -> PreflightResult:
    chosen = RunOptions(**{"folder": str(root), **options})
    return preflight(
        PaddleJob.model_validate(wanted), chosen, Store(root / "state"), machine, isolated, "not permitted"
    )


def with_containers(*containers: dict[str, Any], **pod: Any) -> dict[str, Any]:
    made = [
        {"name": f"c{number}", "image": "mine", "command": ["true"], **one} for number, one in enumerate(containers)
    ]
    return document("mnist", workers=1, worker_={"template": {"spec": {"containers": made, **pod}}})


def elastic(cpu: int) -> dict[str, Any]:
    made = template(image="mine", command=["true"], resources={"limits": {"cpu": cpu, "example-resource": 9}})
    return document("mnist", workers=4, elastic=1, worker_={"requests": 1, "template": made})


def test_an_elastic_job_is_made_smaller_only_if_it_does_not_overcommit(tmp_path: Path):
    def notes(**options: Any) -> list[str]:
        return [one for one in check(tmp_path, elastic(1), **options).notes if "with the workers that fit" in one]

    assert len(notes()) == 1
    assert notes(overcommit=True) == [], "all of its workers run"


def test_an_elastic_job_that_needs_exactly_what_there_is_runs_with_all_its_workers(tmp_path: Path):
    machine = Machine("pc", cpus=4, memory=1 << 30)
    assert not [one for one in check(tmp_path, elastic(1), machine).notes if "it is elastic" in one]
    assert [one for one in check(tmp_path, elastic(2), machine).notes if "it is elastic" in one]


def test_fields_without_effect_are_listed_once_and_in_order(tmp_path: Path):
    wanted = with_containers({"readinessProbe": {"exec": {}}}, priorityClassName="high", dnsPolicy="None")
    wanted["spec"]["ps"] = wanted["spec"]["worker"]
    (note,) = [one for one in check(tmp_path, wanted).notes if one.startswith("No effect on one machine")]
    listed = note.partition(": ")[2].removesuffix(".").split(", ")
    assert listed == sorted(set(listed))
    assert {"readinessProbe"} <= set(listed)
    assert not [one for one in check(tmp_path, with_containers({})).notes if one.startswith("No effect")]


@pytest.mark.parametrize(
    ("container", "needed"),
    [
        ({"command": ["python", "-V"]}, True),
        ({"command": ["sh", "-c"], "args": ["exec python3 -V"]}, True),
        ({"command": ["ls"], "args": None}, False),
        ({"image": "paddlejob/mnist:v1", "command": []}, True),
    ],
)
def test_an_interpreter_that_does_not_exist_is_an_error_where_python_is_used(
    tmp_path: Path, container: dict[str, Any], needed: bool
):
    absent = str(tmp_path / "absent" / "python")
    errors = check(tmp_path, with_containers({"command": ["ls"]}, container), python=absent).errors
    assert errors == ([f"the Python {absent} does not exist; {REMEDY}"] if needed else [])


REMEDY = "activate another virtual environment, or choose a Python with --python"


def test_an_image_whose_directory_is_gone_is_one_error_and_the_other_containers_are_checked(tmp_path: Path):
    bare = tmp_path / "bare"
    bare.write_text("#!/bin/sh\nexit 1\n")
    bare.chmod(0o755)
    launched = {"command": ["python", "-m", "paddle.distributed.launch", "-V"]}
    images = {"gone": {"directory": str(tmp_path / "gone")}}
    wanted = with_containers({"image": "gone"}, launched)
    errors = check(tmp_path, wanted, images=images, python=str(bare)).errors
    assert [one for one in errors if one.startswith("image gone: ")] == [
        f"image gone: {tmp_path / 'gone'} is not a directory"
    ]
    assert any(one.startswith(f"PaddlePaddle is not installed for {bare}") for one in errors)


def test_a_mount_path_behind_a_path_that_cannot_exist_is_left_to_the_start(tmp_path: Path):
    too_long = "/" + "x" * 300
    mounted = {"volumeMounts": [{"name": "data", "mountPath": too_long}]}
    found = check(tmp_path, with_containers(mounted, volumes=[{"name": "data", "emptyDir": {}}]))
    assert found.errors == []


def test_a_directory_at_a_file_is_an_error_but_neither_one_file_of_it_nor_a_path_below_another_mount(tmp_path: Path):
    file = tmp_path / "train.cfg"
    file.touch()

    def errors(*mounts: dict[str, str]) -> list[str]:
        volumes = [{"name": "data", "emptyDir": {}}, {"name": "file", "hostPath": {"path": str(file)}}]
        return check(tmp_path, with_containers({"volumeMounts": list(mounts)}, volumes=volumes)).errors

    at_the_file = {"name": "data", "mountPath": str(file)}
    (error,) = errors(at_the_file)
    assert error.startswith(f"mountPath {file} is a file on this machine")
    assert errors(at_the_file | {"subPath": "a"}) == []
    assert errors(at_the_file | {"subPathExpr": "a"}) == []
    assert errors(at_the_file | {"name": "file"}) == []
    assert errors(at_the_file, {"name": "data", "mountPath": str(tmp_path)}) == []


def test_a_document_that_is_not_complete_has_nothing_to_leave_out_on_the_cpu():
    for spec in ({}, {"worker": None}, {"worker": {"template": {"spec": None}}}, {"worker": {}}):
        assert on_the_cpu({"spec": spec}) == ({"spec": spec}, [])
    odd = {"containers": [{"resources": None}, {"resources": {"limits": None}}], "affinity": None}
    assert on_the_cpu({"spec": {"heter": {"template": {"spec": odd}}}})[1] == []
