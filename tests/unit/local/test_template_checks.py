"""What can be checked in a pod template, and in the objects beside it, before anything runs."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from paddlejob.local.options import RunOptions
from paddlejob.local.runtime.container import PodFacts, config_maps, environment, object_errors, secrets
from paddlejob.local.template_checks import environment_errors, not_honoured, template_errors

Manifest = dict[str, Any]


def container(name: str = "paddle", **fields: Any) -> Manifest:
    return {"name": name, **fields}


def pod(*containers: Manifest, **fields: Any) -> Manifest:
    return {"containers": list(containers) or [container()], **fields}


def mounting(**mount: Any) -> Manifest:
    made = container(volumeMounts=[{"name": "data", "mountPath": "/data", **mount}])
    return pod(made, volumes=[{"name": "data", "emptyDir": {}}])


def volume(**fields: Any) -> Manifest:
    return pod(volumes=[{"name": "data", **fields}])


@pytest.mark.parametrize(
    "good",
    [
        pod(),
        mounting(subPath="a/b"),
        mounting(mountPath="relative"),
        volume(hostPath={"path": "/data/..dots"}),
        volume(persistentVolumeClaim={"claimName": "a.claim-1"}),
        volume(configMap={"items": [{"key": "a", "path": "b/c"}]}),
        pod(initContainers=[container("init")]),
    ],
)
def test_nothing_is_wrong_with_an_ordinary_template(good: Manifest):
    assert list(template_errors(good)) == []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (pod(container("Paddle")), "'Paddle' is not a valid name for a container; use lower-case letters"),
        (pod(container("../up")), "'../up' is not a valid name for a container"),
        (pod({"name": None}), "None is not a valid name for a container"),
        (pod(container(), initContainers=[container("a b")]), "'a b' is not a valid name for a container"),
        (pod(container(), container()), "2 containers are named paddle; give each a name of its own"),
        (pod(container(), initContainers=[container()]), "2 containers are named paddle"),
        (pod(volumes=[{"name": "a"}, {"name": "a"}, {"name": "a"}]), "3 volumes are named a"),
        (mounting(mountPath="/"), "container paddle mounts a volume at /; choose a directory below it"),
        (mounting(mountPath="/data/.."), "mounts a volume at /"),
        (mounting(subPath="../etc"), "subPath ../etc of container paddle points outside the volume"),
        (mounting(subPath="/etc"), "subPath /etc of container paddle points outside the volume"),
        (pod(volumes=[{"name": "a/b"}]), "'a/b' is not a valid name for a volume"),
        (volume(persistentVolumeClaim={"claimName": "../x"}), "'../x' is not a valid name for a claim"),
        (volume(persistentVolumeClaim={"claimName": ""}), "'' is not a valid name for a claim"),
        (volume(hostPath={"path": "data"}), "hostPath data is not an absolute path without '..'; correct it"),
        (volume(hostPath={"path": "/a/../b"}), "hostPath /a/../b is not an absolute path"),
        (volume(configMap={"items": [{"path": "../x"}]}), "path ../x in volume data points outside the volume"),
        (volume(secret={"items": [{"path": "/x"}]}), "path /x in volume data points outside the volume"),
        (volume(downwardAPI={"items": [{"path": ""}]}), "in volume data points outside the volume"),
        (
            pod(container(volumeMounts=[{"name": "other", "mountPath": "/x"}]), volumes=[{"name": "data"}]),
            "container paddle mounts volume other, which does not exist; add it to volumes, or correct the name "
            "(the pod has: data)",
        ),
        (pod(container(volumeMounts=[{"name": "other", "mountPath": "/x"}])), "(the pod has no volumes)"),
    ],
)
def test_each_mistake_is_named_with_its_remedy(wrong: Manifest, message: str):
    (error,) = template_errors(wrong)
    assert message in error


def test_every_container_with_a_reference_to_nothing_is_named():
    absent = [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "token", "key": "x"}}}]
    fields = [{"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    made = pod(container(env=absent), container("fine", env=fields), initContainers=[container("init", env=absent)])
    assert list(environment_errors(made, RunOptions())) == [
        "container init: Secret token does not exist; add it to the job file",
        "container paddle: Secret token does not exist; add it to the job file",
    ]
    token = {"kind": "Secret", "metadata": {"name": "token"}, "stringData": {"x": "1"}}
    assert list(environment_errors(made, RunOptions(objects=(token,)))) == []


def test_fields_without_effect_are_listed_once_in_order():
    probed = container(livenessProbe={"exec": {}}, readinessProbe={}, tty=True)
    made = pod(probed, container("b", tty=True), hostAliases=[{"ip": "::1"}], securityContext={}, hostIPC=True)
    assert not_honoured(made, isolated=True) == ["hostAliases", "hostIPC", "livenessProbe", "tty"]


def test_hooks_that_only_a_kubelet_can_run_are_listed():
    hooks = {"postStart": {"httpGet": {}}, "preStop": {"exec": {"command": ["true"]}, "tcpSocket": {}}}
    assert not_honoured(pod(container(lifecycle=hooks)), True) == ["postStart.httpGet", "preStop.tcpSocket"]
    assert not_honoured(pod(container(lifecycle={"preStop": {"sleep": {"seconds": 1}}})), True) == []
    assert not_honoured(pod(container(lifecycle={"stopSignal": "SIGUSR1"})), True) == ["stopSignal"]


def test_what_needs_namespaces_is_listed_where_there_are_none():
    made = pod(container(terminationMessagePath="/dev/termination-log"), hostname="trainer")
    assert not_honoured(made, isolated=True) == []
    assert not_honoured(made, isolated=False) == ["hostname", "terminationMessagePath"]


def stored(kind: str, **fields: Any) -> Manifest:
    return {"kind": kind, "metadata": {"name": "mine"}, **fields}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (stored("ConfigMap", data={"rate": 0.1}), 'ConfigMap mine: data.rate: write "0.1" in quotes'),
        (stored("ConfigMap", data={"on": True}), 'ConfigMap mine: data.on: write "true" in quotes'),
        (stored("ConfigMap", data={"on": None}), 'ConfigMap mine: data.on: write "none" in quotes'),
        (stored("ConfigMap", data={1: "x"}), "ConfigMap mine: data.1: write"),
        (stored("ConfigMap", data=["a"]), "ConfigMap mine: data is not a mapping; write one `key: value` per line"),
        (stored("ConfigMap", data={"a/b": "x"}), "ConfigMap mine: data: 'a/b' is not a valid key"),
        (stored("ConfigMap", data={"..": "x"}), "ConfigMap mine: data: '..' is not a valid key"),
        (stored("Secret", data={"key": "not base64!"}), "Secret mine: data.key is not base64; encode it"),
        (stored("Secret", stringData={"key": 7}), 'Secret mine: stringData.key: write "7" in quotes'),
    ],
)
def test_objects_that_the_api_server_rejects_are_named_with_the_remedy(wrong: Manifest, message: str):
    (error,) = object_errors((stored("ConfigMap", data={"a.b-c_d": "x"}), wrong))
    assert message in error


def test_every_mistake_of_an_object_is_named_and_other_kinds_are_not_looked_at():
    wrong = stored("Secret", data={"a": "not base64!", "b": 1}, stringData={"c/d": "plain"})
    assert len(list(object_errors((wrong,)))) == 3
    fine = (stored("Secret", data={"a": "YWJj"}, stringData={"b": "plain!"}), stored("Service", data={"a": 1}))
    assert list(object_errors(fine)) == []


def test_secrets_are_decoded_and_what_is_written_as_text_wins():
    encoded = base64.b64encode(b"\xff1").decode()
    made = stored("Secret", data={"a": encoded, "b": "YWJj"}, stringData={"b": "plain"})
    assert secrets((made, stored("ConfigMap", data={"c": "x"}))) == {"mine": {"a": "\udcff1", "b": "plain"}}
    assert config_maps((made, stored("ConfigMap", data={"c": "x"}))) == {"mine": {"c": "x"}}
    assert config_maps((stored("ConfigMap"),)) == {"mine": {}}
    assert secrets((stored("Secret"),)) == {"mine": {}}


FACTS = PodFacts(
    {"metadata": {"name": "p", "namespace": "team", "annotations": {"a/b": "c"}}, "spec": {}},
    "127.64.0.1",
    "uid-1",
    "laptop",
    {"one": {"A": "1", "B": "1"}, "two": {"B": "2"}},
    {"three": {"C": "3"}},
)


def variables(*env: Manifest, **fields: Any) -> dict[str, str]:
    return environment({"name": "paddle", "env": list(env), **fields}, FACTS)


def test_sources_are_read_in_order_with_their_prefixes():
    sources = [
        {"configMapRef": {"name": "one"}},
        {"configMapRef": {"name": "two"}},
        {"secretRef": {"name": "three"}, "prefix": "P_"},
        {"secretRef": {"name": "absent", "optional": True}},
        {"unknown": {}},
    ]
    assert variables(envFrom=sources) == {"A": "1", "B": "2", "P_C": "3"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.annotations['a/b']", "c"),
        ("metadata.annotations['x']", ""),
        ("metadata.labels['x']", ""),
        ("spec.serviceAccountName", "default"),
        ("status.podIPs", "127.64.0.1"),
        ("status.hostIP", "127.0.0.1"),
    ],
)
def test_fields_that_have_a_value_on_one_machine(path: str, value: str):
    assert variables({"name": "X", "valueFrom": {"fieldRef": {"fieldPath": path}}}) == {"X": value}


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ({"resource": "limits.cpu"}, "2"),
        ({"resource": "requests.cpu"}, "1"),
        ({"resource": "requests.memory", "divisor": "1Mi"}, "64"),
        ({"resource": "limits.memory"}, str(64 << 20)),
        ({"resource": "limits.cpu", "divisor": "1m"}, "1500"),
        ({"resource": "limits.storage"}, "0"),
    ],
)
def test_resources_in_the_unit_of_the_divisor(reference: Manifest, value: str):
    resources = {"limits": {"cpu": "1500m", "memory": "64Mi"}, "requests": {"cpu": "0.5"}}
    found = variables({"name": "X", "valueFrom": {"resourceFieldRef": reference}}, resources=resources)
    assert found == {"X": value}


def test_an_optional_key_that_is_missing_sets_nothing_and_an_empty_value_sets_an_empty_one():
    absent = {"configMapKeyRef": {"name": "one", "key": "Z", "optional": True}}
    present = {"configMapKeyRef": {"name": "one", "key": "A", "optional": True}}
    found = variables({"name": "X", "valueFrom": absent}, {"name": "Y"}, {"name": "Z", "valueFrom": present})
    assert found == {"Y": "", "Z": "1"}
