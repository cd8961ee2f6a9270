"""The PersistentVolume and PersistentVolumeClaim for the cluster's file system, named as in the tutorial."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paddlejob.errors import NotPossible

NAME = "efsvol"
MOUNT_OPTIONS = "nfsvers=4.1,rsize=1048576,wsize=1048576,hard,timeo=600,retrans=2,noresvport"


def file_system(outputs: Mapping[str, str], name: str) -> str:
    if "FileSystemId" not in outputs:
        raise NotPossible(f"cluster {name} has no file system yet; run `pdj aws up`")
    return outputs["FileSystemId"]


def dns_name(file_system_id: str, region: str) -> str:
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return f"{file_system_id}.efs.{region}.{suffix}"


def volume(file_system_id: str, region: str, nfs: bool = False) -> dict[str, Any]:
    """The EFS add-on mounts the volume, encrypted in transit; with `nfs` the node's NFS client does, unencrypted."""
    source: dict[str, Any] = {"csi": {"driver": "efs.csi.aws.com", "volumeHandle": file_system_id}}
    if nfs:
        server = {"server": dns_name(file_system_id, region), "path": "/"}
        source = {"mountOptions": MOUNT_OPTIONS.split(","), "nfs": server}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": NAME},
        "spec": {
            "capacity": {"storage": "100Gi"},
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "persistentVolumeReclaimPolicy": "Retain",
            **source,
        },
    }


def claim() -> dict[str, Any]:
    """An empty storage class keeps a default class from provisioning; volumeName binds the claim to this volume."""
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


def summary(file_system_id: str, region: str) -> dict[str, str]:
    server = dns_name(file_system_id, region)
    return {"fileSystem": file_system_id, "server": server, "mount": mount_command(file_system_id)}


def mount_command(file_system_id: str) -> str:
    """Return the command that mounts the file system on a node, encrypted in transit."""
    return f"sudo dnf install -y amazon-efs-utils && mkdir -p efs && sudo mount -t efs -o tls {file_system_id}:/ efs"
