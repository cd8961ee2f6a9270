"""What the files of `pdj submit` hold, checked before anything is sent."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from paddlejob import contract
from paddlejob.api.validate import faults
from paddlejob.cli.files import is_paddle_job, no_job_in, objects_in
from paddlejob.errors import InvalidJob, PaddleJobError

Object = dict[str, Any]

FIRST = (
    "Namespace", "CustomResourceDefinition", "StorageClass", "PriorityClass", "PersistentVolume",
    "PersistentVolumeClaim", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ConfigMap",
    "Secret", "Service", "Queue", "PodGroup",
)  # fmt: skip
"""What others refer to is created before them; jobs come last."""
CLUSTER_WIDE = (
    "Namespace", "CustomResourceDefinition", "StorageClass", "PriorityClass", "PersistentVolume", "ClusterRole",
    "ClusterRoleBinding", "Queue",
)  # fmt: skip


@dataclass(frozen=True)
class Submission:
    documents: tuple[Object, ...]
    """In the order to send them."""

    @property
    def jobs(self) -> list[tuple[str, str]]:
        return [
            (one["metadata"].get("namespace") or "default", one["metadata"]["name"])
            for one in self.documents
            if is_paddle_job(one)
        ]

    @property
    def new_namespaces(self) -> set[str]:
        return {one["metadata"]["name"] for one in self.documents if one["kind"] == "Namespace"}

    def in_namespace(self, namespace: str) -> Submission:
        """With this namespace for what names none."""
        return Submission(tuple(_placed(one, namespace) for one in self.documents))


def _placed(document: Object, namespace: str) -> Object:
    if document["kind"] in CLUSTER_WIDE:
        return document
    return {**document, "metadata": {"namespace": namespace, **document["metadata"]}}


def read_submission(files: list[str], namespace: str = "") -> Submission:
    """All documents of the files; InvalidJob with everything that is wrong with any of them."""
    found: list[Object] = []
    wrong: list[str] = []
    for name in files:
        try:
            documents = objects_in(name)
        except PaddleJobError as error:
            wrong.append(str(error))
            continue
        if not any(map(is_paddle_job, documents)):
            wrong.append(str(no_job_in(name, documents)))
        wrong += [f"{name}: {fault}" for one in documents for fault in _faults(one, namespace)]
        found += documents
    wrong += [] if wrong else _twins(found, namespace)
    if wrong:
        raise InvalidJob(wrong)
    return Submission(tuple(sorted(found, key=_rank)))


def _faults(document: Object, namespace: str) -> list[str]:
    if is_paddle_job(document):
        found = faults(document)
    else:
        metadata = document.get("metadata")
        named = isinstance(metadata, dict) and isinstance(metadata.get("name"), str)
        kind = document.get("kind") or "a document"
        found = [f"{field}: is missing; add it" for field in ("apiVersion", "kind") if not document.get(field)]
        found += [] if named else [f"{kind}: metadata.name: is missing; add it"]
    if found or not namespace:
        return found
    given = document["metadata"].get("namespace", namespace)
    if given != namespace:
        what = f"{document['kind']} {document['metadata']['name']}"
        return [f"{what} is of namespace {given}, not {namespace}; change metadata.namespace or -n"]
    return []


def _twins(documents: list[Object], namespace: str) -> list[str]:
    keys = Counter(
        (str(one["kind"]), str(one["metadata"].get("namespace", namespace)), str(one["metadata"]["name"]))
        for one in documents
    )
    return [f"{kind} {name} is there {count} times; rename one" for (kind, _, name), count in keys.items() if count > 1]


def _rank(document: Object) -> int:
    if document["kind"] == contract.KIND:
        return len(FIRST) + 1
    return FIRST.index(document["kind"]) if document["kind"] in FIRST else len(FIRST)
