"""What users of a cluster may do with jobs: Kubernetes' roles `view`, `edit` and `admin` include it."""

from __future__ import annotations

from paddlejob import contract
from paddlejob.kube.resource import Object

AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
READ, WRITE = ["get", "list", "watch"], ["create", "update", "patch", "delete", "deletecollection"]


def user_roles(labels: dict[str, str]) -> list[Object]:
    """`edit` includes `view`, and `admin` includes `edit`. Whoever may edit may create pods already."""
    jobs, scale = contract.PLURAL, f"{contract.PLURAL}/scale"
    return [
        _role("view", labels, [_rule([jobs], READ), _rule([f"{jobs}/status", scale], ["get"])]),
        _role("edit", labels, [_rule([jobs], WRITE), _rule([scale], ["update", "patch"])]),
    ]


def _role(name: str, labels: dict[str, str], rules: list[Object]) -> Object:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": f"paddlejob-{name}", "labels": {**labels, f"{AGGREGATE}{name}": "true"}},
        "rules": rules,
    }


def _rule(resources: list[str], verbs: list[str]) -> Object:
    return {"apiGroups": [contract.GROUP], "resources": resources, "verbs": verbs}
