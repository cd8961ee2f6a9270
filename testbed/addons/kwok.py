"""Fake nodes: pods bound to them become Running and stay so until they are deleted.

Pods of a job wait for their environment like those of a kubelet: until they are woken (kwok-stages.yaml).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

STAGES = Path(__file__).with_name("kwok-stages.yaml")
FAKE = "kwok.x-k8s.io/node"


def flags(kubeconfig: Path, port: int) -> list[str]:
    """Return KWOK's flags: our stages of pods and its own of nodes, for nodes with our annotation only."""
    return [
        f"--config={STAGES}",
        f"--kubeconfig={kubeconfig}",
        "--manage-all-nodes=false",
        f"--manage-nodes-with-annotation-selector={FAKE}=fake",
        f"--server-address=127.0.0.1:{port}",
        "--node-lease-duration-seconds=40",
    ]


def node(index: int, pods: int = 1000) -> dict[str, Any]:
    """Return a Node that KWOK keeps Ready, with capacity for `pods` pods."""
    name = f"fake-{index}"
    capacity = {"cpu": "4000", "memory": "64Ti", "pods": str(pods)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {FAKE: "fake"},
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "type": "kwok"},
        },
        "status": {"allocatable": capacity, "capacity": capacity},
    }


def nodes(count: int) -> dict[str, Any]:
    """Return a List of fake nodes for `kubectl create -f -`."""
    return {"apiVersion": "v1", "kind": "List", "items": [node(index) for index in range(count)]}
