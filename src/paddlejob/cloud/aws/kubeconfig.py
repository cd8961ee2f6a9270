"""./kubeconfig in the assets directory: where the cluster is, and `pdj aws token` as its credentials."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from paddlejob.errors import NotPossible

from . import assets
from .refusals import Refused
from .session import Aws


def find_cluster(aws: Aws, name: str) -> dict[str, Any] | None:
    """The EKS cluster, or None where there is none (yet)."""
    try:
        cluster: dict[str, Any] = aws.call("eks", "describe_cluster", name=name)["cluster"]
    except Refused as no:
        if no.code == "ResourceNotFoundException":
            return None
        raise
    return cluster


def kubeconfig(aws: Aws, name: str) -> dict[str, Any]:
    cluster = find_cluster(aws, name)
    if cluster is None:
        raise NotPossible(f"there is no cluster {name} in {aws.region}; run `pdj aws up`")
    if not cluster.get("endpoint"):
        raise NotPossible(f"cluster {name} is {cluster['status']} and has no address yet; run `pdj aws up` again")
    arguments = ["aws", "token", "--cluster-name", name, "--region", aws.region]
    if aws.profile:
        arguments += ["--profile", aws.profile]
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "pdj",
        "args": arguments,
        "interactiveMode": "Never",
        "installHint": "kubectl asks pdj for a token: pip install 'paddlejob[aws]'",
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": name,
                "cluster": {
                    "server": cluster["endpoint"],
                    "certificate-authority-data": cluster["certificateAuthority"]["data"],
                },
            }
        ],
        "users": [{"name": name, "user": {"exec": plugin}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


def write(path: Path, config: dict[str, Any]) -> None:
    """Readable by its owner only."""
    assets.write(path, yaml.safe_dump(config, sort_keys=False), mode=0o600)
