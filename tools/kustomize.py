"""Where a PaddleJob names other objects, for kustomize: it knows this of Kubernetes' own kinds only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from paddlejob import contract
from paddlejob.api.types import Role

CONTAINERS = ("containers", "initContainers")
IN_CONTAINERS = {
    "ConfigMap": ("env/valueFrom/configMapKeyRef/name", "envFrom/configMapRef/name"),
    "Secret": ("env/valueFrom/secretKeyRef/name", "envFrom/secretRef/name"),
}
IN_PODS = {
    "ConfigMap": ("volumes/configMap/name", "volumes/projected/sources/configMap/name"),
    "Secret": ("volumes/secret/secretName", "volumes/projected/sources/secret/name", "imagePullSecrets/name"),
    "PersistentVolumeClaim": ("volumes/persistentVolumeClaim/claimName",),
    "ServiceAccount": ("serviceAccountName",),
}


def name_references() -> dict[str, Any]:
    return {"nameReference": [{"kind": kind, "version": "v1", "fieldSpecs": [*_fields(kind)]} for kind in IN_PODS]}


def _fields(kind: str) -> Iterator[dict[str, str]]:
    below = [*IN_PODS[kind], *(f"{one}/{path}" for one in CONTAINERS for path in IN_CONTAINERS.get(kind, ()))]
    for role in Role:
        for path in below:
            yield {"group": contract.GROUP, "kind": contract.KIND, "path": f"spec/{role}/template/spec/{path}"}
