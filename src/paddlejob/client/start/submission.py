"""Place on a cluster: the objects that are sent to its API server, in the order in which they are applied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from paddlejob import contract
from paddlejob.client.files import is_paddle_job
from paddlejob.client.start.check import Checked

Object = dict[str, Any]

ORDER = (
    "Namespace", "CustomResourceDefinition", "StorageClass", "PriorityClass", "PersistentVolume",
    "PersistentVolumeClaim", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ConfigMap",
    "Secret", "Service", "Queue", "PodGroup",
)  # fmt: skip
"""Objects that others refer to are created first; jobs come last."""


@dataclass(frozen=True)
class Submission:
    documents: tuple[Object, ...]

    @property
    def jobs(self) -> list[tuple[str, str]]:
        return [
            (document["metadata"].get("namespace") or contract.DEFAULT_NAMESPACE, document["metadata"]["name"])
            for document in self.documents
            if is_paddle_job(document)
        ]

    @property
    def new_namespaces(self) -> set[str]:
        return {document["metadata"]["name"] for document in self.documents if document["kind"] == "Namespace"}


def submission_of(checked: Checked) -> Submission:
    objects = [document for one in checked.loaded for document in one.objects]
    return Submission(tuple(sorted(objects, key=_rank)))


def _rank(document: Object) -> int:
    if document["kind"] == contract.KIND:
        return len(ORDER) + 1
    return ORDER.index(document["kind"]) if document["kind"] in ORDER else len(ORDER)
