"""Mistakes in a pod template that the schema allows are found before the job runs, with the remedy."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.api.checks.pods import check_pods
from paddlejob.api.fault import Severity
from tests.support.builders import document

POD = "spec.worker.template.spec"
CONTAINER = f"{POD}.containers[0]"


def job(container: dict[str, Any] | None = None, workers: int = 1, **pod: Any) -> dict[str, Any]:
    made = document(workers=workers)
    made["spec"]["worker"]["template"]["spec"] |= pod
    made["spec"]["worker"]["template"]["spec"]["containers"][0] |= container or {}
    return made


def found(made: dict[str, Any]) -> list[tuple[str, str]]:
    return [(fault.where, str(fault.severity)) for fault in check_pods(made)]


def checked(**container: Any) -> list[tuple[Severity, str]]:
    return [(fault.severity, str(fault)) for fault in check_pods(job(container))]


VOLUME = [{"name": "v", "emptyDir": {}}]


@pytest.mark.parametrize(
    ("made", "where", "severity"),
    [
        (job({"command": [" "]}), f"{CONTAINER}.command[0]", "error"),
        (job({"command": ["a b"]}), f"{CONTAINER}.command[0]", "warning"),
        (job({"image": "‘x’"}), f"{CONTAINER}.image", "warning"),
        (job({"workingDir": "/x”"}), f"{CONTAINER}.workingDir", "warning"),
        (job({"args": ["a", "“b"]}), f"{CONTAINER}.args[1]", "warning"),
        (job({"resources": {"limits": {"gpus": 1}}}), f"{CONTAINER}.resources.limits.gpus", "error"),
        (job({"resources": {"requests": {"tpu": 1}}}), f"{CONTAINER}.resources.requests.tpu", "error"),
        (job({"envFrom": [{"configMapRef": {"name": "a"}, "secretRef": {"name": "b"}}]}), f"{CONTAINER}.envFrom[0]",
         "error"),
        (job(volumes=[*VOLUME, {"name": "w", "secret": {}, "nfs": {"server": "s", "path": "/"}}]),
         f"{POD}.volumes[1]", "error"),
        (job({"command": ["mpirun", "x"]}), f"{CONTAINER}.command[0]", "warning"),
        (job({"args": ["x", "mpiexec -n 2 y"]}), f"{CONTAINER}.args[1]", "warning"),
        (job({"env": [{"name": "A", "value": "b"}, {"name": "save_dir", "value": "/x"}]}, workers=2),
         f"{CONTAINER}.env[1]", "warning"),
        (job({"command": ["python", "--output-dir=/x"]}, workers=2), f"{CONTAINER}.command[1]", "warning"),
        (job({"args": ["--ckpt_path", "/x"]}, workers=2), f"{CONTAINER}.args[0]", "warning"),
    ],
)  # fmt: skip
def test_each_finding_is_reported_once_where_it_is(made: dict[str, Any], where: str, severity: str):
    assert found(made) == [(where, severity)]


@pytest.mark.parametrize("field", ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"])
def test_an_init_container_has_no_probes_and_hooks_unless_it_is_a_sidecar(field: str):
    value = {"preStop": {"exec": {"command": ["true"]}}} if field == "lifecycle" else {"exec": {"command": ["true"]}}
    init = {"name": "first", "image": "i", field: value}
    assert found(job(initContainers=[init])) == [(f"{POD}.initContainers[0].{field}", "error")]
    assert found(job(initContainers=[{**init, "restartPolicy": "Always"}])) == []
    assert found(job({field: value})) == []


@pytest.mark.parametrize(
    "made",
    [
        job({"env": [{"name": "a", "value": "b"}, {"name": "c"}]}),
        job({"env": [{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['x/y']"}}}]}),
        job({"env": [{"name": "a", "valueFrom": {"resourceFieldRef": {"resource": "requests.memory"}}}]}),
        job({"env": [{"name": "a", "valueFrom": {"resourceFieldRef": {"resource": "limits.hugepages-2Mi"}}}]}),
        job({"envFrom": [{"prefix": "X_", "configMapRef": {"name": "a"}}]}),
        job({"resources": {"requests": {"ephemeral-storage": "1Gi", "hugepages-2Mi": "4Mi"}}}),
        job({"resources": {"limits": {"a/b": 1}, "requests": {"a/b": 1}}}),
        job({"command": ["bash", "-c", "mpirun.sh && /opt/mpirun-x"]}),
        job({"command": ["python", "--output_dir", "out"]}, workers=2),
        job({"command": ["python", "--output_dir"]}, workers=2),
        job({"command": ["output_dir=/x"]}, workers=2),
        job({"command": ["python", "--output_dir", "/x"]}),
        job({"command": ["python", "--save=/m/x"], "volumeMounts": [{"name": "n", "mountPath": "/m/"}]}, workers=2,
            volumes=[{"name": "n", "nfs": {"server": "s", "path": "/"}}]),
    ],
)  # fmt: skip
def test_what_pods_may_have_is_accepted(made: dict[str, Any]):
    assert found(made) == []


@pytest.mark.parametrize(
    ("written", "remedy"),
    [("always", "Always"), ("ifNotPresent", "IfNotPresent"), ("No", "Always or IfNotPresent or Never")],
)
def test_a_policy_that_a_cluster_does_not_know_is_reported(written: str, remedy: str) -> None:
    ((severity, fault),) = checked(imagePullPolicy=written)
    assert (severity, fault) == (
        Severity.CLUSTER,
        f'{CONTAINER}.imagePullPolicy: "{written}" is not valid; write {remedy}',
    )


def test_a_cluster_needs_an_image_and_one_machine_does_not() -> None:
    ((severity, fault),) = checked(image="")
    assert severity is Severity.CLUSTER
    assert fault.startswith(f"{CONTAINER}.image is missing; add the image")


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


def test_a_device_that_is_only_requested_is_reported() -> None:
    ((_, fault),) = checked(resources={"requests": {"nvidia.com/gpu": 1}})
    assert 'requests["nvidia.com/gpu"]: a device must also be in limits; add nvidia.com/gpu: 1 to limits' in fault


@pytest.mark.parametrize(
    ("requests", "limits", "problem"),
    [
        ({}, {"nvidia.com/gpu": "500m"}, '"500m" is not a number of devices; write a whole number'),
        ({}, {"nvidia.com/gpu": -1}, "-1 is not a number of devices"),
        ({"nvidia.com/gpu": 1}, {"nvidia.com/gpu": 2}, "a device is not overcommitted; write 2, as in limits"),
        ({"nvidia.com/gpu": "1000m"}, {"nvidia.com/gpu": 1}, ""),
        ({}, {"nvidia.com/gpu": 0}, ""),
        ({"kubernetes.io/batch-cpu": 500}, {"kubernetes.io/batch-cpu": 1000}, ""),
        ({"kubernetes.io/batch-memory": "1Gi"}, {}, ""),
    ],
)
def test_devices_are_counted_in_whole_numbers_and_not_overcommitted(requests: dict, limits: dict, problem: str) -> None:
    found = [fault for _, fault in checked(resources={"requests": requests, "limits": limits})]
    assert [problem in fault for fault in found] == [True] * bool(problem), found


def test_a_mount_without_a_volume_lists_the_volumes() -> None:
    made = job({"volumeMounts": [{"name": "data", "mountPath": "/d"}]}, volumes=[{"name": "dataset", "emptyDir": {}}])
    assert [fault.message for fault in check_pods(made)] == [
        'no volume is named "data" (use one of dataset); add it to volumes of the pod'
    ]


def test_typographic_quotes_in_a_command_are_reported() -> None:
    ((severity, fault),) = checked(command=["“python”", "train.py"])
    assert severity is Severity.WARNING
    assert 'the quote “ is part of the value "“python”"; write " instead' in fault


@pytest.mark.parametrize("name", ["gpu", "gpus", "nvidia", "cuda", "GPU"])
def test_each_short_name_of_a_gpu_is_answered_with_its_full_one(name: str) -> None:
    ((_, fault),) = checked(resources={"limits": {name: 2}})
    assert fault.endswith("so no device would be assigned; write nvidia.com/gpu: 2")


def test_each_plain_resource_of_kubernetes_is_accepted() -> None:
    for name in ("cpu", "memory", "ephemeral-storage", "storage", "hugepages-2Mi"):
        assert checked(resources={"requests": {name: 2}}) == []


FIELDS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip


def test_each_field_that_a_variable_may_have_is_accepted() -> None:
    for field in FIELDS:
        assert checked(env=[{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": field}}}]) == []
