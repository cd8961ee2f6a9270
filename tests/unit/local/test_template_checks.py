"""What a pod template asks for that one machine cannot give."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.local.options import RunOptions
from paddlejob.local.template_checks import environment_errors, not_honoured

Manifest = dict[str, Any]
POD_FIELDS = [
    "activeDeadlineSeconds", "dnsConfig", "ephemeralContainers", "hostAliases", "hostIPC", "hostPID", "hostUsers",
    "overhead", "readinessGates", "resourceClaims", "runtimeClassName", "securityContext", "setHostnameAsFQDN",
    "shareProcessNamespace", "subdomain",
]  # fmt: skip
CONTAINER_FIELDS = [
    "livenessProbe", "readinessProbe", "securityContext", "startupProbe", "stdin", "tty", "volumeDevices",
]  # fmt: skip


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


@pytest.mark.parametrize("field", POD_FIELDS)
def test_a_field_of_a_pod_without_effect_is_listed(field: str):
    assert not_honoured(pod(**{field: "x"}), isolated=True) == [field]
    assert not_honoured(pod(**{field: {}}), isolated=True) == []


@pytest.mark.parametrize("field", CONTAINER_FIELDS)
def test_a_field_of_a_container_without_effect_is_listed_once(field: str):
    given = {field: "x"}
    made = pod(container(), container("b", **given), initContainers=[container("c", **given)], hostIPC=True)
    assert not_honoured(made, isolated=True) == sorted([field, "hostIPC"])


@pytest.mark.parametrize(
    ("hooks", "listed"),
    [
        (
            {"postStart": {"httpGet": {}}, "preStop": {"exec": {"command": ["true"]}, "tcpSocket": {}}},
            ["postStart.httpGet", "preStop.tcpSocket"],
        ),
        ({"preStop": {"sleep": {"seconds": 1}}}, []),
        ({"stopSignal": "SIGUSR1"}, ["stopSignal"]),
    ],
)
def test_hooks_that_only_a_kubelet_can_run_are_listed(hooks: Manifest, listed: list[str]):
    assert not_honoured(pod(container(lifecycle=hooks)), isolated=True) == listed


def test_what_needs_namespaces_is_listed_where_there_are_none():
    made = pod(container(terminationMessagePath="/dev/termination-log"), hostname="trainer")
    assert not_honoured(made, isolated=True) == []
    assert not_honoured(made, isolated=False) == ["hostname", "terminationMessagePath"]
