"""The environment of a container, by Kubernetes' rules."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from paddlejob.errors import NotPossible
from paddlejob.local.runtime.container import PodFacts, config_maps, environment, expand, secrets

Manifest = dict[str, Any]
METADATA = {"name": "mnist-worker-0", "namespace": "team", "labels": {"app/x": "mnist"}, "annotations": {"a/b": "c"}}
FACTS = PodFacts(
    manifest={"metadata": METADATA, "spec": {"containers": []}},
    address="127.64.0.1",
    uid="uid-1",
    node="laptop",
    config_maps={"one": {"A": "1", "B": "1"}, "two": {"B": "2"}},
    secrets={"token": {"KEY": "abc"}},
)


def seen(*env: Manifest, **container: Any) -> dict[str, str]:
    return environment({"name": "paddle", "env": list(env), **container}, FACTS)


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)-$(B)", "1-2"),
        ("$(C)", "$(C)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$A ${A} $", "$A ${A} $"),
        ("$(A", "$(A"),
    ],
)
def test_references_are_expanded(text: str, expanded: str):
    assert expand(text, {"A": "1", "B": "2"}) == expanded


def test_a_variable_may_refer_to_those_before_it_only():
    found = seen({"name": "A", "value": "$(B)"}, {"name": "B", "value": "b"}, {"name": "C", "value": "$(B)"})
    assert found == {"A": "$(B)", "B": "b", "C": "b"}


def test_sources_are_read_in_order_with_their_prefixes_and_a_variable_of_the_container_wins():
    sources = [
        {"configMapRef": {"name": "one"}},
        {"configMapRef": {"name": "two"}},
        {"secretRef": {"name": "token"}, "prefix": "P_"},
        {"secretRef": {"name": "absent", "optional": True}},
        {"unknown": {}},
    ]
    assert seen({"name": "A", "value": "9"}, envFrom=sources) == {"A": "9", "B": "2", "P_KEY": "abc"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "mnist-worker-0"), ("metadata.namespace", "team"), ("metadata.uid", "uid-1"),
        ("metadata.labels['app/x']", "mnist"), ("metadata.labels['x']", ""), ("metadata.annotations['a/b']", "c"),
        ("metadata.annotations['x']", ""), ("spec.nodeName", "laptop"), ("spec.serviceAccountName", "default"),
        ("status.podIP", "127.64.0.1"), ("status.podIPs", "127.64.0.1"), ("status.hostIP", "127.0.0.1"),
        ("status.hostIPs", "127.0.0.1"),
    ],
)  # fmt: skip
def test_fields_of_the_pod(path: str, value: str):
    assert seen({"name": "X", "valueFrom": {"fieldRef": {"fieldPath": path}}}) == {"X": value}


def test_a_pod_without_annotations_has_empty_ones_and_may_have_a_service_account():
    facts = PodFacts({"metadata": {"annotations": None}, "spec": {"serviceAccountName": "me"}}, "", "", "")
    paths = {"A": "metadata.annotations['a']", "S": "spec.serviceAccountName"}
    env = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in paths.items()]
    assert environment({"name": "paddle", "env": env}, facts) == {"A": "", "S": "me"}


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
def test_resources_are_rounded_up_in_the_unit_of_the_divisor(reference: Manifest, value: str):
    resources = {"limits": {"cpu": "1500m", "memory": "64Mi"}, "requests": {"cpu": "0.5"}}
    found = seen({"name": "X", "valueFrom": {"resourceFieldRef": reference}}, resources=resources)
    assert found == {"X": value}


def test_an_optional_value_that_is_missing_sets_nothing_and_an_empty_value_sets_an_empty_one():
    def optional(name: str, key: str) -> Manifest:
        return {"name": f"{name}_{key}", "valueFrom": {"configMapKeyRef": {"name": name, "key": key, "optional": True}}}

    secret = {"name": "S", "valueFrom": {"secretKeyRef": {"name": "token", "key": "KEY"}}}
    found = seen(optional("one", "Z"), optional("absent", "A"), optional("one", "A"), secret, {"name": "Y"})
    assert found == {"one_A": "1", "S": "abc", "Y": ""}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"fileKeyRef": {}}, "valueFrom fileKeyRef is not supported on one machine; write the value itself"),
        ({"fieldRef": {"fieldPath": "status.phase"}}, "fieldPath status.phase is not supported on one machine"),
        ({"configMapKeyRef": {"name": "absent", "key": "a"}}, "ConfigMap absent does not exist; add it"),
        ({"configMapKeyRef": {"key": "a"}}, "ConfigMap  does not exist"),
        ({"secretKeyRef": {"name": "token", "key": "z"}}, "Secret token has no key z; add it, or correct the key"),
    ],
)
def test_a_value_from_nowhere_is_an_error(source: Manifest, message: str):
    with pytest.raises(NotPossible, match=message):
        seen({"name": "A", "valueFrom": source})


def stored(kind: str, name: str, **fields: Any) -> Manifest:
    return {"kind": kind, "metadata": {"name": name}, **fields}


def test_objects_of_a_job_file_are_decoded_and_what_is_written_as_text_wins():
    encoded = base64.b64encode(b"\xff1").decode()
    objects = (
        stored("Secret", "s", data={"a": encoded, "b": "YWJj"}, stringData={"b": "plain"}),
        stored("Secret", "bare", data=None, stringData=None),
        stored("ConfigMap", "c", data={"c": "x"}, binaryData={"a": "/w=="}),
        stored("ConfigMap", "bare", data=None),
        stored("Service", "other", data={"x": "y"}),
    )
    assert secrets(objects) == {"s": {"a": "\udcff1", "b": "plain"}, "bare": {}}
    assert config_maps(objects) == {"c": {"a": "\udcff", "c": "x"}, "bare": {}}
