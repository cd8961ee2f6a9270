"""Mistakes in a pod template that the schema allows are found before the job runs, with the remedy."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.api.checks.pods import check_pods
from paddlejob.api.fault import Severity
from tests.support.builders import document

CONTAINER = "spec.worker.template.spec.containers[0]"


def checked(**container: Any) -> list[tuple[Severity, str]]:
    job = document(workers=1)
    job["spec"]["worker"]["template"]["spec"]["containers"][0] |= container
    return [(fault.severity, str(fault)) for fault in check_pods(job)]


def test_a_good_template_has_no_findings() -> None:
    assert checked(command=["python", "train.py"], resources={"limits": {"nvidia.com/gpu": 1, "cpu": 2}}) == []


def test_a_cluster_needs_an_image_and_one_machine_does_not() -> None:
    ((severity, fault),) = checked(image="")
    assert severity is Severity.CLUSTER
    assert fault.startswith(f"{CONTAINER}.image: is missing; add the image")


@pytest.mark.parametrize(
    ("command", "remedy"),
    [
        ("python train.py", 'write ["python", "train.py"]'),
        ("cd /data && python train.py", 'write ["bash", "-c", "cd /data && python train.py"]'),
        ("python 'train", 'write ["bash", "-c", "python \'train"]'),
    ],
)
def test_a_command_in_one_string_is_shown_as_a_list(command: str, remedy: str) -> None:
    ((severity, fault),) = checked(command=[command])
    assert severity is Severity.WARNING
    assert fault.startswith(f"{CONTAINER}.command[0]: ")
    assert fault.endswith(remedy)
    assert checked(command=["bash", "-c", command]) == []


@pytest.mark.parametrize("field", ["limits", "requests"])
def test_a_gpu_by_its_short_name_is_reported_with_its_full_one(field: str) -> None:
    assert checked(resources={field: {"gpu": 2}}) == [
        (
            Severity.ERROR,
            f"{CONTAINER}.resources.{field}.gpu: is not a resource of Kubernetes, so no GPU would be assigned; "
            "write nvidia.com/gpu: 2",
        )
    ]


def test_a_device_that_is_only_requested_is_reported() -> None:
    ((_, fault),) = checked(resources={"requests": {"nvidia.com/gpu": 1}})
    assert 'requests["nvidia.com/gpu"]: a device must also be in limits; add nvidia.com/gpu: 1 to limits' in fault


def test_a_mount_without_a_volume_lists_the_volumes() -> None:
    job = document(workers=1)
    pod = job["spec"]["worker"]["template"]["spec"]
    pod["volumes"] = [{"name": "dataset", "emptyDir": {}}]
    pod["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    (fault,) = check_pods(job)
    assert (fault.severity, fault.where) == (Severity.ERROR, f"{CONTAINER}.volumeMounts[0].name")
    assert fault.message == 'no volume is named "data" (use one of dataset); add it to volumes of the pod'


def test_two_containers_of_one_name_are_reported() -> None:
    job = document(workers=1)
    containers = job["spec"]["worker"]["template"]["spec"]["containers"]
    containers.append(dict(containers[0]))
    assert [fault.message for fault in check_pods(job)] == ['two containers are named "paddle"; rename one']


def test_typographic_quotes_in_a_command_are_reported() -> None:
    ((severity, fault),) = checked(command=["“python”", "train.py"])
    assert severity is Severity.WARNING
    assert 'the quote “ is part of the value "“python”"; write " instead' in fault
