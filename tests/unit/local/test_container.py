"""The environment of a container, by Kubernetes' rules."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.errors import NotPossible
from paddlejob.local.runtime.container import PodFacts, environment, expand

FACTS = PodFacts(
    manifest={
        "metadata": {"name": "mnist-worker-0", "namespace": "team", "labels": {"app": "mnist"}},
        "spec": {"containers": []},
    },
    address="127.64.0.1",
    uid="uid-1",
    node="laptop",
    config_maps={"env-1": {"PADDLE_TRAINERS_NUM": "2"}},
    secrets={"token": {"key": "abc"}},
)


def seen(*env: dict[str, Any], **container: Any) -> dict[str, str]:
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


def test_the_shared_environment_comes_first_and_a_users_own_wins():
    found = seen({"name": "PADDLE_TRAINERS_NUM", "value": "9"}, envFrom=[{"configMapRef": {"name": "env-1"}}])
    assert found == {"PADDLE_TRAINERS_NUM": "9"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("status.podIP", "127.64.0.1"),
        ("metadata.name", "mnist-worker-0"),
        ("metadata.namespace", "team"),
        ("metadata.uid", "uid-1"),
        ("metadata.labels['app']", "mnist"),
        ("spec.nodeName", "laptop"),
    ],
)
def test_fields_of_the_pod(path: str, value: str):
    assert seen({"name": "X", "valueFrom": {"fieldRef": {"fieldPath": path}}}) == {"X": value}


def test_resources_are_rounded_up():
    wanted = {"resourceFieldRef": {"resource": "limits.cpu"}}
    found = seen({"name": "CPUS", "valueFrom": wanted}, resources={"limits": {"cpu": "1500m"}})
    assert found == {"CPUS": "2"}


def test_secrets_and_what_is_optional():
    secret = {"secretKeyRef": {"name": "token", "key": "key"}}
    absent = {"configMapKeyRef": {"name": "absent", "key": "x", "optional": True}}
    assert seen({"name": "A", "valueFrom": secret}, {"name": "B", "valueFrom": absent}) == {"A": "abc"}


@pytest.mark.parametrize(
    "source",
    [
        {"configMapKeyRef": {"name": "absent", "key": "x"}},
        {"secretKeyRef": {"name": "token", "key": "nothing"}},
        {"fieldRef": {"fieldPath": "status.phase"}},
    ],
)
def test_what_is_missing_is_named(source: dict[str, Any]):
    with pytest.raises(NotPossible, match=r"absent|nothing|status.phase"):
        seen({"name": "A", "valueFrom": source})
