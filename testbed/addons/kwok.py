"""Fake nodes: pods bound to them become Running at once, stay so, and go away when they are deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

FAKE = "kwok.x-k8s.io/node"


def flags(kubeconfig: Path, port: int) -> list[str]:
    """KWOK with its built-in fast stages, for the nodes that carry our annotation only."""
    return [
        f"--kubeconfig={kubeconfig}",
        "--manage-all-nodes=false",
        f"--manage-nodes-with-annotation-selector={FAKE}=fake",
        f"--server-address=127.0.0.1:{port}",
        "--node-lease-duration-seconds=40",
    ]


def node(index: int, pods: int = 1000) -> dict[str, Any]:
    """A Node that KWOK keeps Ready, with room for `pods` pods."""
    name = f"fake-{index}"
    room = {"cpu": "4000", "memory": "64Ti", "pods": str(pods)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {FAKE: "fake"},
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "type": "kwok"},
        },
        "status": {"allocatable": room, "capacity": room},
    }


def nodes(count: int) -> dict[str, Any]:
    """A list of fake nodes, as `kubectl create -f -` takes it."""
    return {"apiVersion": "v1", "kind": "List", "items": [node(index) for index in range(count)]}
