"""The manifests that install the operator: namespace, service account, the permissions it uses, and its Deployment."""

from __future__ import annotations

import paddlejob
from paddlejob import contract
from paddlejob.kube.resource import LEASES, PRIORITY_CLASSES, Object
from paddlejob.objects.resources import POD_GROUPS, WORKLOADS
from paddlejob.operator.flow_control import flow_control
from paddlejob.operator.metrics.access import TOKEN_REVIEWS
from paddlejob.operator.user_roles import user_roles

NAMESPACE = "paddle-system"
NAME = "paddle-controller-manager"
IMAGE = f"paddlejob/operator:{paddlejob.__version__}"
LEASE_NAME = "paddlejob-operator"
AGENTS_SERVICE = f"{NAME}-agents"
AGENTS_PORT = 8443
SECRET_NAME = "paddlejob-agents"
"""Of the Secret with the certificate authority of the channel of agents."""
LABELS = {"app.kubernetes.io/name": "paddlejob", "control-plane": "controller-manager"}
ROLE_LABELS = {"app.kubernetes.io/name": "paddlejob"}

RULES: list[Object] = [
    {
        "apiGroups": [contract.GROUP],
        "resources": [contract.PLURAL],
        "verbs": ["get", "list", "watch", "patch", "delete"],
    },
    {"apiGroups": [contract.GROUP], "resources": [f"{contract.PLURAL}/status"], "verbs": ["update"]},
    {"apiGroups": [contract.GROUP], "resources": [f"{contract.PLURAL}/finalizers"], "verbs": ["update"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "create", "patch", "delete"]},
    {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
    {
        "apiGroups": [""],
        "resources": ["configmaps", "services"],
        "verbs": ["get", "list", "watch", "create", "delete"],
    },
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
    {
        "apiGroups": [POD_GROUPS.group],
        "resources": [POD_GROUPS.plural],
        "verbs": ["get", "list", "watch", "create", "delete"],
    },
    {
        "apiGroups": [WORKLOADS.group],
        "resources": [WORKLOADS.plural],
        "verbs": ["get", "list", "watch", "create", "delete"],
    },
    {"apiGroups": [WORKLOADS.group], "resources": [f"{WORKLOADS.plural}/status"], "verbs": ["update"]},
]
CLUSTER_RULES: list[Object] = [
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]},
    {
        "apiGroups": [WORKLOADS.group],
        "resources": ["resourceflavors", "workloadpriorityclasses"],
        "verbs": ["get"],
    },
    {"apiGroups": [PRIORITY_CLASSES.group], "resources": [PRIORITY_CLASSES.plural], "verbs": ["get"]},
    {"apiGroups": [TOKEN_REVIEWS.group], "resources": [TOKEN_REVIEWS.plural], "verbs": ["create"]},
]
"""These belong to no namespace, so an operator of one namespace lacks them. Tokens are those of agents."""
LEASE_RULES: list[Object] = [
    {"apiGroups": [LEASES.group], "resources": [LEASES.plural], "verbs": ["create"]},
    {
        "apiGroups": [LEASES.group],
        "resources": [LEASES.plural],
        "resourceNames": [LEASE_NAME],
        "verbs": ["get", "update"],
    },
]
AGENT_RULES: list[Object] = [
    {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [SECRET_NAME], "verbs": ["get", "update"]}
]


def manifests(*, namespace: str = NAMESPACE, watch: str = "", image: str = IMAGE, replicas: int = 1) -> list[Object]:
    """All objects in the order to create them. `watch` limits the operator and its permissions to one namespace."""
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": _namespace_labels()}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(namespace)},
        *_permissions(namespace, watch),
        *_role(namespace, "lease", LEASE_RULES),
        *([] if watch else _agent_channel(namespace)),
        *([] if watch else [*user_roles(ROLE_LABELS), *flow_control(NAME, namespace, LABELS)]),
        _deployment(namespace, watch, image, replicas),
        _disruption_budget(namespace),
    ]


def _namespace_labels() -> dict[str, str]:
    """Pod security only warns, because jobs in the same namespace may need more than `restricted` allows."""
    return {"app.kubernetes.io/name": "paddlejob", "pod-security.kubernetes.io/warn": "restricted"}


def _metadata(namespace: str, name: str = NAME) -> Object:
    return {"name": name, "namespace": namespace, "labels": LABELS}


def _permissions(namespace: str, watch: str) -> list[Object]:
    kind = "Role" if watch else "ClusterRole"
    metadata: Object = _metadata(watch) if watch else {"name": NAME, "labels": LABELS}
    rules = RULES if watch else [*RULES, *CLUSTER_RULES]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata, "rules": rules}
    return [role, _binding(kind, metadata, namespace)]


def _role(namespace: str, name: str, rules: list[Object]) -> list[Object]:
    """Permissions in the operator's own namespace."""
    metadata = _metadata(namespace, f"{NAME}-{name}")
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata, "rules": rules}
    return [role, _binding("Role", metadata, namespace)]


def _agent_channel(namespace: str) -> list[Object]:
    """For restarts in place. The operator fills the Secret, so it need not be permitted to create any."""
    ports = [{"name": "agents", "port": AGENTS_PORT, "targetPort": "agents"}]
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": _metadata(namespace, SECRET_NAME)}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(namespace, AGENTS_SERVICE),
        "spec": {"selector": LABELS, "ports": ports},
    }
    return [*_role(namespace, "agents", AGENT_RULES), secret, service]


def _binding(kind: str, metadata: Object, namespace: str) -> Object:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": f"{kind}Binding",
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": metadata["name"]},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}],
    }


def _deployment(namespace: str, watch: str, image: str, replicas: int) -> Object:
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


def _disruption_budget(namespace: str) -> Object:
    """A drain waits for one replica after the other; it is never blocked, not even by a sole replica."""
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": LABELS}}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _metadata(namespace),
        "spec": spec,
    }


def _container(watch: str, image: str) -> Object:
    probe = {"port": 8081, "path": "/healthz"}
    return {
        "name": "manager",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["operator", "--leader-elect", f"--namespace={watch}" if watch else _agent_option()],
        "env": [_own_field("POD_NAME", "name"), _own_field("POD_NAMESPACE", "namespace")],
        "ports": [
            {"name": "metrics", "containerPort": 8080},
            {"name": "health", "containerPort": 8081},
            {"name": "agents", "containerPort": AGENTS_PORT},
        ],
        "livenessProbe": {"httpGet": probe, "initialDelaySeconds": 15, "periodSeconds": 20},
        "readinessProbe": {"httpGet": probe | {"path": "/readyz"}, "periodSeconds": 5},
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def _agent_option() -> str:
    return f"--agent-url=https://{AGENTS_SERVICE}.$(POD_NAMESPACE).svc:{AGENTS_PORT}"


def _own_field(variable: str, field: str) -> Object:
    return {"name": variable, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.{field}"}}}
