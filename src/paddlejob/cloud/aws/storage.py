"""The document's PersistentVolume and PersistentVolumeClaim, for the file system that `up` made."""

from __future__ import annotations

from typing import Any

from paddlejob.errors import NotPossible

from .stack import StackState

NAME = "efsvol"
MOUNT_OPTIONS = "nfsvers=4.1,rsize=1048576,wsize=1048576,hard,timeo=600,retrans=2"


def file_system(state: StackState | None, name: str) -> str:
    if state is None or "FileSystemId" not in state.outputs:
        raise NotPossible(f"cluster {name} has no file system yet; run `pdj aws up`")
    return state.outputs["FileSystemId"]


def dns_name(file_system_id: str, region: str) -> str:
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return f"{file_system_id}.efs.{region}.{suffix}"


def volume(file_system_id: str, region: str, csi: bool = False) -> dict[str, Any]:
    """With `csi`, the EFS add-on mounts it, encrypted on the wire; else the node's own NFS client does."""
    source: dict[str, Any] = {"nfs": {"server": dns_name(file_system_id, region), "path": "/"}}
    if csi:
        source = {
            "persistentVolumeReclaimPolicy": "Retain",
            "csi": {"driver": "efs.csi.aws.com", "volumeHandle": file_system_id},
        }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": NAME},
        "spec": {
            "capacity": {"storage": "100Gi"},
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            **source,
        },
    }


def claim() -> dict[str, Any]:
    """No storage class, so that no default class takes the claim; the volume is named, so that no other does."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": NAME},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "volumeName": NAME,
            "resources": {"requests": {"storage": "50Gi"}},
        },
    }


def facts(file_system_id: str, region: str) -> dict[str, str]:
    server = dns_name(file_system_id, region)
    return {"fileSystem": file_system_id, "server": server, "mount": mount_command(file_system_id, region)}


def mount_command(file_system_id: str, region: str) -> str:
    """How the document looks at the results, from a node."""
    return f"mkdir -p efs && sudo mount -t nfs4 -o {MOUNT_OPTIONS} {dns_name(file_system_id, region)}:/ efs"
