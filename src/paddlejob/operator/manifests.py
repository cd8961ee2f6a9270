"""What installs the operator: namespace, service account, exactly the rights it uses, and its Deployment."""

from __future__ import annotations

from typing import Any

from paddlejob import contract

Object = dict[str, Any]

NAMESPACE = "paddle-system"
NAME = "paddle-controller-manager"
IMAGE = "paddlejob/operator:0.1.0"
LABELS = {"app.kubernetes.io/name": "paddlejob", "control-plane": "controller-manager"}

RULES: list[Object] = [
    {
        "apiGroups": [contract.GROUP],
        "resources": [contract.PLURAL],
        "verbs": ["get", "list", "watch", "patch", "delete"],
    },
    {"apiGroups": [contract.GROUP], "resources": [f"{contract.PLURAL}/status"], "verbs": ["update"]},
    {"apiGroups": [contract.GROUP], "resources": [f"{contract.PLURAL}/finalizers"], "verbs": ["update"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "create", "patch", "delete"]},
    {
        "apiGroups": [""],
        "resources": ["configmaps", "services"],
        "verbs": ["get", "list", "watch", "create", "delete"],
    },
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
    {
        "apiGroups": ["scheduling.volcano.sh"],
        "resources": ["podgroups"],
        "verbs": ["get", "list", "watch", "create", "delete"],
    },
]
LEASE_RULES: list[Object] = [
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
    {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "resourceNames": ["paddlejob-operator"],
        "verbs": ["get", "update"],
    },
]


def manifests(*, namespace: str = NAMESPACE, watch: str = "", image: str = IMAGE, replicas: int = 1) -> list[Object]:
    """All objects, in the order to create them. `watch` limits the operator, and its rights, to one namespace."""
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": _restricted()}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(namespace)},
        *_rights(namespace, watch),
        *_lease_rights(namespace),
        deployment(namespace, watch, image, replicas),
    ]


def _restricted() -> dict[str, str]:
    """Only where nothing else runs is the whole namespace restricted; jobs may need more, so it warns."""
    return {"app.kubernetes.io/name": "paddlejob", "pod-security.kubernetes.io/warn": "restricted"}


def _metadata(namespace: str, name: str = NAME) -> Object:
    return {"name": name, "namespace": namespace, "labels": LABELS}


def _rights(namespace: str, watch: str) -> list[Object]:
    kind = "Role" if watch else "ClusterRole"
    metadata: Object = _metadata(watch) if watch else {"name": NAME, "labels": LABELS}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata, "rules": RULES}
    return [role, _binding(kind, metadata, namespace)]


def _lease_rights(namespace: str) -> list[Object]:
    metadata = _metadata(namespace, f"{NAME}-lease")
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": metadata,
        "rules": LEASE_RULES,
    }
    return [role, _binding("Role", metadata, namespace)]


def _binding(kind: str, metadata: Object, namespace: str) -> Object:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": f"{kind}Binding",
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": metadata["name"]},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}],
    }


def deployment(namespace: str, watch: str, image: str, replicas: int) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(namespace),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": LABELS},
            "template": {
                "metadata": {"labels": LABELS},
                "spec": {
                    "serviceAccountName": NAME,
                    "terminationGracePeriodSeconds": 10,
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": 65532,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [_container(watch, image)],
                },
            },
        },
    }


def _container(watch: str, image: str) -> Object:
    probe = {"port": 8081, "path": "/healthz"}
    return {
        "name": "manager",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["operator", "--leader-elect", *([f"--namespace={watch}"] if watch else [])],
        "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "ports": [{"name": "metrics", "containerPort": 8080}, {"name": "health", "containerPort": 8081}],
        "livenessProbe": {"httpGet": probe, "initialDelaySeconds": 15, "periodSeconds": 20},
        "readinessProbe": {"httpGet": probe | {"path": "/readyz"}, "periodSeconds": 5},
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
