"""What a pod template asks for that one machine cannot give, and the environment of a container."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from paddlejob.local.options import RunOptions
from paddlejob.local.runtime.container import PodFacts, config_maps, environment, secrets
from paddlejob.local.template_checks import environment_errors, not_honoured

Manifest = dict[str, Any]


def container(name: str = "paddle", **fields: Any) -> Manifest:
    return {"name": name, **fields}


def pod(*containers: Manifest, **fields: Any) -> Manifest:
    return {"containers": list(containers) or [container()], **fields}


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
