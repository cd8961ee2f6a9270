"""Admission policies that deny requests for a while, as clean-up rules and guard rails of other teams do."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from testbed.access import Access

PATIENCE = 30.0
TRIED = {
    "CREATE": ("run", "probe", "--image=busybox", "--dry-run=server"),
    "DELETE": ("delete", "pods", "--all", "--dry-run=server"),
}
NOT_OF_KUBELETS = {"name": "not-of-kubelets", "expression": "!('system:nodes' in request.userInfo.groups)"}


@contextmanager
def denied(access: Access, namespace: str, operation: str, message: str = "not in this namespace") -> Iterator[None]:
    """Deny CREATE or DELETE of pods in a namespace to everybody but kubelets while the block runs.

    Whether DELETE is denied shows only in a namespace with pods.
    """
    documents = json.dumps({"apiVersion": "v1", "kind": "List", "items": _policy(namespace, operation, message)})
    access.kubectl("create", "-f", "-", input=documents)
    try:
        _wait(access, namespace, operation, denied=True)
        yield
    finally:
        access.kubectl("delete", "-f", "-", "--ignore-not-found", input=documents)
        _wait(access, namespace, operation, denied=False)


def _wait(access: Access, namespace: str, operation: str, *, denied: bool) -> None:
    """API servers notice a policy and its end about a second later."""
    deadline = time.monotonic() + PATIENCE
    while bool(access.kubectl("-n", namespace, *TRIED[operation], check=False).returncode) != denied:
        if time.monotonic() > deadline:
            raise AssertionError(f"the policy for {operation} of pods is not noticed after {PATIENCE:.0f} s")
        time.sleep(0.1)


def _policy(namespace: str, operation: str, message: str) -> list[dict[str, Any]]:
    name = f"{operation.lower()}-denied-{namespace}"
    api, kind = "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": [operation], "resources": ["pods"]}
    spec = {
        "matchConstraints": {
            "resourceRules": [rule],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        },
        "matchConditions": [NOT_OF_KUBELETS],
        "validations": [{"expression": "false", "message": message}],
    }
    binding = {"policyName": name, "validationActions": ["Deny"]}
    return [
        {"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec},
        {"apiVersion": api, "kind": f"{kind}Binding", "metadata": {"name": name}, "spec": binding},
    ]
