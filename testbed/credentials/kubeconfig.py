"""Kubeconfig files for the clients of a test cluster."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml

from testbed.credentials.certificates import Pair


def by_certificate(pair: Pair) -> dict[str, Any]:
    """Return a user that authenticates with a client certificate."""
    return {
        "client-certificate-data": _inline(pair.certificate),
        "client-key-data": _inline(pair.key),
    }


def write(path: Path, server: str, authority: Path, user: dict[str, Any]) -> Path:
    """Write a kubeconfig with one cluster, one user and one context, with all data inline."""
    cluster = {"server": server, "certificate-authority-data": _inline(authority)}
    return _save(path, cluster, user, "default")


def with_token(path: Path, own: dict[str, Any], token: str, namespace: str) -> Path:
    """Write a kubeconfig for the cluster in the kubeconfig `own`, with a token instead of its user."""
    return _save(path, own["clusters"][0]["cluster"], {"token": token}, namespace)


def _save(path: Path, cluster: dict[str, Any], user: dict[str, Any], namespace: str) -> Path:
    context = {"cluster": "testbed", "user": "user", "namespace": namespace}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "testbed", "cluster": cluster}],
        "users": [{"name": "user", "user": user}],
        "contexts": [{"name": "testbed", "context": context}],
        "current-context": "testbed",
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(document))
    return path


def _inline(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
