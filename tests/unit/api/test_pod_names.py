"""Names and paths that no pod can have are found in a job file, and never acted on in a stored job."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.api.checks.names import check_names, unsafe_names
from paddlejob.api.checks.pods import check_job
from paddlejob.api.fault import Severity
from tests.support.builders import document

POD = "spec.worker.template.spec"
NAME_RULE = "is not a valid name; use lower-case letters"


def job(container: dict[str, Any] | None = None, **pod: Any) -> dict[str, Any]:
    made = document(workers=1)
    made["spec"]["worker"]["template"]["spec"] |= pod
    made["spec"]["worker"]["template"]["spec"]["containers"][0] |= container or {}
    return made


def mounting(**mount: Any) -> dict[str, Any]:
    return job({"volumeMounts": [{"name": "data", **mount}]}, volumes=[{"name": "data", "emptyDir": {}}])


def volume(**source: Any) -> dict[str, Any]:
    return job(volumes=[{"name": "data", **source}])


def faults(made: dict[str, Any]) -> list[str]:
    return [str(fault) for fault in check_job(made)]


@pytest.mark.parametrize("field", ["subPath", "subPathExpr"])
@pytest.mark.parametrize("path", ["../../etc", "/etc", "a/../../b"])
@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_a_sub_path_that_leads_out_of_its_volume(field: str, path: str, kind: str):
    made = mounting(mountPath="/data", **{field: path})
    pod = made["spec"]["worker"]["template"]["spec"]
    if kind == "initContainers":
        pod[kind] = [{**pod["containers"][0], "name": "first"}]
        del pod["containers"][0]["volumeMounts"]
    where = f"{POD}.{kind}[0].volumeMounts[0].{field}"
    assert faults(made) == [f"{where}: \"{path}\" points outside the volume; use a relative path without '..'"]


@pytest.mark.parametrize(
    ("made", "where", "message"),
    [
        (job({"name": "../x"}), "containers[0].name", f'"../x" {NAME_RULE}'),
        (job(hostname="x.y"), "hostname", f'"x.y" {NAME_RULE}'),
        (job(hostname="Trainer"), "hostname", f'"Trainer" {NAME_RULE}'),
        (job(subdomain="a_b"), "subdomain", f'"a_b" {NAME_RULE}'),
        (volume(emptyDir={}, nfs={"server": "s", "path": "/"}), "volumes[0]", "has 2 types: emptyDir, nfs; keep one"),
    ],
)
def test_each_name_and_path_is_reported_once_where_it_is(made: dict[str, Any], where: str, message: str):
    (fault,) = faults(made)
    assert fault.startswith((f"{POD}.{where}: ", f"{POD}.{where} "))
    assert message in fault


@pytest.mark.parametrize(
    ("path", "message"),
    [("data", '"data" is not an absolute path; write "/data"'), ("/a:b", '"/a:b" contains a colon; choose a path')],
)
def test_a_mount_path_that_the_api_server_accepts_against_its_documentation_is_a_warning(path: str, message: str):
    (fault,) = check_job(mounting(mountPath=path))
    assert fault.severity is Severity.WARNING
    assert fault.message.startswith(message)


def test_two_mounts_at_one_path_are_reported():
    mounts = [{"name": "data", "mountPath": "/data"}] * 2
    (fault,) = faults(job({"volumeMounts": mounts}, volumes=[{"name": "data", "emptyDir": {}}]))
    assert fault.startswith(f"{POD}.containers[0].volumeMounts[1].mountPath: ")
    assert "is used twice in this container" in fault


def test_a_sub_path_is_given_once():
    (fault,) = faults(mounting(mountPath="/data", subPath="a", subPathExpr="b"))
    assert fault.endswith("subPathExpr cannot be combined with subPath; remove one of them")


def test_ordinary_names_and_paths_are_accepted():
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "models.v2"}}
    mounts = [{"name": "data", "mountPath": "/data/", "subPath": "a/b..c"}, {"name": "data", "mountPath": "/d/../e"}]
    assert faults(job({"volumeMounts": mounts}, volumes=[claim], hostname="trainer-0")) == []


def container(name: Any = "paddle", **fields: Any) -> dict[str, Any]:
    return {"name": name, **fields}


def pod(*containers: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"containers": list(containers) or [container()], **fields}


def at(path: str, **mount: Any) -> dict[str, Any]:
    mounts = [{"name": "data", "mountPath": path, **mount}]
    return pod(container(volumeMounts=mounts), volumes=[{"name": "data", "emptyDir": {}}])


def holding(**source: Any) -> dict[str, Any]:
    return pod(volumes=[{"name": "data", **source}])


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        (pod(container("Paddle")), f'containers[0].name: "Paddle" {NAME_RULE}'),
        (pod(container("../up")), f'containers[0].name: "../up" {NAME_RULE}'),
        (pod(container(None)), f"containers[0].name: null {NAME_RULE}"),
        (pod(initContainers=[container("a b")]), f'initContainers[0].name: "a b" {NAME_RULE}'),
        (pod(container(), container()), 'containers: two containers are named "paddle"; rename one'),
        (pod(initContainers=[container()]), 'containers: two containers are named "paddle"; rename one'),
        (pod(volumes=[{"name": "a"}] * 3), 'volumes: two volumes are named "a"; rename one'),
        (pod(volumes=[{"name": "a/b"}]), f'volumes[0].name: "a/b" {NAME_RULE}'),
        (at("/"), "containers[0].volumeMounts[0].mountPath is the root directory; choose a directory below it"),
        (at("/data/.."), "containers[0].volumeMounts[0].mountPath is the root directory"),
        (at("/data", subPath="../etc"), 'volumeMounts[0].subPath: "../etc" points outside the volume'),
        (at("/data", subPath="/etc"), 'volumeMounts[0].subPath: "/etc" points outside the volume'),
        (
            holding(persistentVolumeClaim={"claimName": "../x"}),
            'volumes[0].persistentVolumeClaim.claimName: "../x" is not a valid name',
        ),
        (holding(persistentVolumeClaim={"claimName": ""}), 'claimName: "" is not a valid name'),
        (
            holding(hostPath={"path": "data"}),
            "volumes[0].hostPath.path: \"data\" is not an absolute path without '..'; correct it",
        ),
        (holding(hostPath={"path": "/a/../b"}), "\"/a/../b\" is not an absolute path without '..'"),
        (holding(configMap={"items": [{"path": "../x"}]}), 'configMap.items[0].path: "../x" points outside the volume'),
        (holding(secret={"items": [{"path": "/x"}]}), 'secret.items[0].path: "/x" points outside the volume'),
        (holding(downwardAPI={"items": [{"path": ""}]}), 'downwardAPI.items[0].path: "" points outside the volume'),
        (
            pod(container(volumeMounts=[{"name": "other", "mountPath": "/x"}]), volumes=[{"name": "data"}]),
            'volumeMounts[0].name: no volume is named "other" (use one of data); add it to volumes of the pod',
        ),
        (
            pod(container(volumeMounts=[{"name": "other", "mountPath": "/x"}])),
            'no volume is named "other" (there are none); add it to volumes of the pod',
        ),
    ],
)
def test_an_engine_acts_on_no_template_that_a_file_could_not_have(wrong: dict[str, Any], fault: str):
    """In a stored job, and once in a file."""
    for check in (unsafe_names, check_names):
        (found,) = check(wrong, ())
        assert fault in str(found)
        assert found.severity is Severity.ERROR


@pytest.mark.parametrize(
    "good",
    [
        pod(),
        at("/data", subPath="a/b"),
        holding(hostPath={"path": "/data/..dots"}),
        holding(persistentVolumeClaim={"claimName": "a.claim-1"}),
        holding(configMap={"items": [{"key": "a", "path": "b/c"}]}),
        pod(initContainers=[container("init")]),
    ],
)
def test_nothing_is_wrong_with_an_ordinary_template(good: dict[str, Any]):
    assert list(check_names(good, ())) == []


def test_a_stored_job_runs_with_a_name_that_is_wrong_but_harmless():
    """A name that leads elsewhere is rejected in stored jobs too."""
    pod = mounting(mountPath="data")["spec"]["worker"]["template"]["spec"]
    assert list(unsafe_names({**pod, "hostname": "x.y"}, ())) == []
    pod["containers"][0]["name"] = "../x"
    assert [fault.where for fault in unsafe_names(pod, ())] == ["containers[0].name"]


@pytest.mark.parametrize(
    ("variable", "where", "message"),
    [
        ({"name": "A=B", "value": "x"}, "env[0].name", '"A=B" is not the name of an environment variable'),
        ({"name": "", "value": "x"}, "env[0].name", "is not the name of an environment variable"),
        ({"name": "A", "valueFrom": {}}, "env[0].valueFrom", "needs exactly one source"),
        (
            {"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            "env[0].valueFrom",
            "cannot be combined with value",
        ),
        (
            {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.x"}}},
            "env[0].valueFrom.fieldRef.fieldPath",
            '"spec.x" is not a field that a variable can have; use one of metadata.name',
        ),
        (
            {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "cpu"}}},
            "env[0].valueFrom.resourceFieldRef.resource",
            '"cpu" is not a resource that a variable can have; use, for example, limits.cpu',
        ),
    ],
)
def test_a_variable_that_no_container_can_have_is_reported(variable: dict[str, Any], where: str, message: str):
    (fault,) = faults(job({"env": [variable]}))
    assert fault.startswith((f"{POD}.containers[0].{where}: ", f"{POD}.containers[0].{where} "))
    assert message in fault


def test_a_source_of_variables_that_names_nothing_is_reported():
    (fault,) = faults(job({"envFrom": [{"prefix": "A_"}]}))
    assert fault == f"{POD}.containers[0].envFrom[0] needs either configMapRef or secretRef; write one of them"


def test_ordinary_variables_are_accepted():
    fields = ["metadata.labels['app']", "metadata.annotations['a.b/c']", "status.hostIPs", "status.podIP"]
    env = [{"name": f"A{i}", "valueFrom": {"fieldRef": {"fieldPath": path}}} for i, path in enumerate(fields)]
    env.append({"name": "limit", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory"}}})
    env.append({"name": "my.name-x", "value": ""})
    assert faults(job({"env": env, "envFrom": [{"secretRef": {"name": "key"}}]})) == []
