"""What `pdj validate` says about names and paths of a pod agrees with a real API server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from paddlejob.api.checks.pods import check_job
from paddlejob.api.fault import Severity
from testbed.controlplane import ControlPlane
from tests.support.builders import document

Object = dict[str, Any]
DATA = {"name": "data", "emptyDir": {}}


def mounting(*mounts: Object) -> Object:
    return {"container": {"volumeMounts": list(mounts)}, "volumes": [DATA]}


def variable(**fields: Any) -> Object:
    return {"container": {"env": [{"name": "A", **fields}]}}


def field(path: str) -> Object:
    return variable(valueFrom={"fieldRef": {"fieldPath": path}})


REJECTED: dict[str, Object] = {
    "a container name with dots": {"container": {"name": "../x"}},
    "a host name with a dot": {"hostname": "x.y"},
    "a host name in capitals": {"hostname": "Trainer"},
    "a subdomain with an underscore": {"subdomain": "a_b"},
    "a volume name with a slash": {"volumes": [{**DATA, "name": "a/b"}]},
    "a volume with two types": {"volumes": [{**DATA, "hostPath": {"path": "/x"}}]},
    "an unknown volume": {"container": {"volumeMounts": [{"name": "data", "mountPath": "/x"}]}},
    "two mounts at one path": mounting(*[{"name": "data", "mountPath": "/x"}] * 2),
    "a sub path with dots": mounting({"name": "data", "mountPath": "/x", "subPath": "../y"}),
    "two sub paths": mounting({"name": "data", "mountPath": "/x", "subPath": "y", "subPathExpr": "z"}),
    "a host path with dots": {"volumes": [{"name": "data", "hostPath": {"path": "/a/../b"}}]},
    "a file that leads out of its volume": {
        "volumes": [{"name": "data", "configMap": {"name": "x", "items": [{"key": "a", "path": "../b"}]}}]
    },
    "a variable with an equals sign": variable(name="A=B", value="x"),
    "a variable without a source": variable(valueFrom={}),
    "a variable with a value and a source": variable(value="x", valueFrom={"fieldRef": {"fieldPath": "metadata.name"}}),
    "a field that no variable can have": field("spec.x"),
    "a resource that no variable can have": variable(valueFrom={"resourceFieldRef": {"resource": "cpu"}}),
    "a source of variables that names nothing": {"container": {"envFrom": [{"prefix": "A_"}]}},
    "a hook of an init container": {
        "initContainers": [{"name": "first", "image": "x", "lifecycle": {"preStop": {"sleep": {"seconds": 1}}}}]
    },
}
ACCEPTED: dict[str, Object] = {
    "a volume without a type": {"volumes": [{"name": "data"}]},
    "a label as a variable": field("metadata.labels['app']"),
    "the addresses of the host": field("status.hostIPs"),
    "a variable with a dot": variable(name="a.b-c", value="x"),
    "a mount at a relative path": mounting({"name": "data", "mountPath": "x"}),
    "a mount at a path with a colon": mounting({"name": "data", "mountPath": "/a:b"}),
    "a mount with dots in its path": mounting({"name": "data", "mountPath": "/a/../b"}),
}


def made(part: Object) -> Object:
    job = document(workers=1)
    pod = job["spec"]["worker"]["template"]["spec"]
    pod |= {name: value for name, value in part.items() if name != "container"}
    pod["containers"][0] |= part.get("container", {})
    return job


def errors(part: Object) -> list[str]:
    return [str(fault) for fault in check_job(made(part)) if fault.severity is Severity.ERROR]


def server_says(plane: ControlPlane, namespace: str, part: Object) -> str:
    """Why the API server rejects a pod; empty if it accepts it."""
    spec = made(part)["spec"]["worker"]["template"]["spec"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": spec}
    command = ("create", "-n", namespace, "-f", "-", "--dry-run=server")
    done = plane.kubectl(*command, input=json.dumps(pod), check=False)
    return done.stderr if done.returncode else ""


@pytest.mark.parametrize("part", REJECTED.values(), ids=REJECTED)
def test_what_the_server_rejects_is_an_error(part: Object, installed: ControlPlane, namespace: str):
    assert "is invalid" in server_says(installed, namespace, part)
    assert errors(part) != []


@pytest.mark.parametrize("part", ACCEPTED.values(), ids=ACCEPTED)
def test_what_the_server_accepts_is_not_an_error(part: Object, installed: ControlPlane, namespace: str):
    assert server_says(installed, namespace, part) == ""
    assert errors(part) == []
