"""A user who may view one namespace and edit another, and tries to harm the jobs of the first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paddlejob import contract
from testbed.access import Access

Object = dict[str, Any]
ROLES = ("view", "edit")
FINALIZER = "example.com/stays"


class Tenant(Access):
    """`kubectl` runs with the tenant's own rights. The namespace that he may edit must exist."""

    def __init__(self, admin: Access, views: str, edits: str) -> None:
        self.namespace = edits
        self.directory, self.kubectl_path = admin.directory, admin.kubectl_path
        admin.kubectl("-n", edits, "create", "serviceaccount", "tenant")
        for role, namespace in zip(ROLES, (views, edits), strict=True):
            bind = ("create", "rolebinding", f"tenant-{edits}", f"--clusterrole={role}")
            admin.kubectl("-n", namespace, *bind, f"--serviceaccount={edits}:tenant")
        self.kubeconfig: Path = admin.kubeconfig_for(edits, "tenant")


def forgeries(job: Object, namespace: str, attempt: int, command: list[str]) -> list[Object]:
    """Objects in another namespace that pretend to belong to a job: a worker, an environment and a Service."""
    name, uid = job["metadata"]["name"], job["metadata"]["uid"]
    owner = {
        "apiVersion": contract.API_VERSION,
        "kind": contract.KIND,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }
    labels = {
        contract.LABEL_JOB: name,
        contract.LABEL_ROLE: "worker",
        contract.LABEL_INDEX: "0",
        contract.LABEL_ATTEMPT: str(attempt),
    }
    container = {"name": contract.TRAINING_CONTAINER, "image": "busybox", "command": command}
    # The garbage collector deletes what has no owner in its namespace; a finalizer keeps it.
    metadata = {"namespace": namespace, "labels": labels, "ownerReferences": [owner], "finalizers": [FINALIZER]}
    own: tuple[tuple[str, str, Object], ...] = (
        ("Pod", f"{name}-worker-0", {"spec": {"restartPolicy": "Never", "containers": [container]}}),
        ("ConfigMap", f"{name}-env-{uid[:5]}-{attempt}", {"data": {"PADDLE_TRAINERS_NUM": "77"}}),
        ("Service", f"{name}-worker-0", {"spec": {"ports": [{"port": 9}]}}),
    )
    return [
        {
            "apiVersion": "v1",
            "kind": kind,
            "metadata": metadata | {"name": made},
            **more,
        }
        for kind, made, more in own
    ]
