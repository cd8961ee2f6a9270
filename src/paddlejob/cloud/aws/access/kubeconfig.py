"""The kubeconfig in the assets directory, which uses `pdj aws token` as its credential plugin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from paddlejob.cloud.aws.config import assets
from paddlejob.cloud.aws.session import Aws
from paddlejob.errors import NotPossible


def find_cluster(aws: Aws, name: str) -> dict[str, Any] | None:
    """Return the EKS cluster, or None if it does not exist (yet)."""
    found = aws.find("eks", "describe_cluster", "ResourceNotFoundException", name=name)
    return found and found["cluster"]


def get_cluster(aws: Aws, name: str) -> dict[str, Any]:
    cluster = find_cluster(aws, name)
    if cluster is None:
        raise NotPossible(f"cluster {name} does not exist in {aws.region}; run `pdj aws up`")
    return cluster


def kubeconfig(aws: Aws, name: str) -> dict[str, Any]:
    cluster = get_cluster(aws, name)
    if not cluster.get("endpoint"):
        raise NotPossible(f"cluster {name} is {cluster['status']} and has no endpoint yet; run `pdj aws up` again")
    arguments = ["aws", "token", "--cluster-name", name, "--region", aws.region]
    if aws.profile:
        arguments += ["--profile", aws.profile]
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "pdj",
        "args": arguments,
        "interactiveMode": "Never",
        "installHint": "kubectl gets its token from pdj; run `pip install 'paddlejob[aws]'`",
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
    """Write the kubeconfig, readable by its owner only."""
    assets.write(path, yaml.safe_dump(config, sort_keys=False), mode=0o600)
