"""The objects in the files of `pdj submit`, validated before anything is sent."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from paddlejob import contract
from paddlejob.api.checks.objects import check_object
from paddlejob.api.checks.pods import check_job, check_pods
from paddlejob.api.checks.references import missing_keys
from paddlejob.api.convert import is_kubeflow_job
from paddlejob.api.fault import Severity
from paddlejob.client.files import is_paddle_job, kubeflow_job_in, no_job_in
from paddlejob.client.given import Given
from paddlejob.errors import InvalidJob, PaddleJobError

Object = dict[str, Any]

ORDER = (
    "Namespace", "CustomResourceDefinition", "StorageClass", "PriorityClass", "PersistentVolume",
    "PersistentVolumeClaim", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ConfigMap",
    "Secret", "Service", "Queue", "PodGroup",
)  # fmt: skip
"""Objects that others refer to are created first; jobs come last."""
CLUSTER_SCOPED = (
    "Namespace", "CustomResourceDefinition", "StorageClass", "PriorityClass", "PersistentVolume", "ClusterRole",
    "ClusterRoleBinding", "Queue",
)  # fmt: skip


@dataclass(frozen=True)
class Submission:
    documents: tuple[Object, ...]
    """In the order in which they are applied."""
    warnings: tuple[str, ...] = ()

    @property
    def jobs(self) -> list[tuple[str, str]]:
        return [
            (document["metadata"].get("namespace") or "default", document["metadata"]["name"])
            for document in self.documents
            if is_paddle_job(document)
        ]

    @property
    def new_namespaces(self) -> set[str]:
        return {document["metadata"]["name"] for document in self.documents if document["kind"] == "Namespace"}

    def in_namespace(self, namespace: str) -> Submission:
        """The same objects, with this namespace where none is set."""
        documents = tuple(_with_namespace(document, namespace) for document in self.documents)
        return Submission(documents, self.warnings)


def _with_namespace(document: Object, namespace: str) -> Object:
    if document["kind"] in CLUSTER_SCOPED:
        return document
    return {**document, "metadata": {"namespace": namespace, **document["metadata"]}}


def read_submission(chosen: Given, namespace: str = "") -> Submission:
    """All objects that a command names; raises InvalidJob with every error in any of them."""
    objects: list[Object] = []
    errors: list[str] = []
    warnings: list[str] = []
    for name in chosen.names:
        try:
            documents = chosen.load(name)
        except PaddleJobError as error:
            errors.append(str(error))
            continue
        if not any(map(is_paddle_job, documents)):
            errors.append(str(no_job_in(name, documents)))
        for document in documents:
            errors += _errors(document, documents, name, namespace)
            warnings += [] if errors else _warnings(document, name)
        objects += documents
    errors += [] if errors else _duplicates(objects, namespace)
    if errors:
        raise InvalidJob(errors)
    return Submission(tuple(sorted(objects, key=_rank)), tuple(warnings))


def _errors(document: Object, documents: list[Object], source: str, namespace: str) -> list[str]:
    if is_kubeflow_job(document):
        return [str(kubeflow_job_in(source, document))]
    if is_paddle_job(document):
        found = [one for one in check_job(document) if one.severity is not Severity.WARNING]
        errors = [fault.at(document, source) for fault in found or missing_keys(document, documents)]
    else:
        errors = [f"{source}: {fault}" for fault in _missing_fields(document)]
        errors += [] if errors else [fault.at(document, source) for fault in check_object(document)]
    if errors or not namespace:
        return errors
    own = document["metadata"].get("namespace", namespace)
    if own != namespace:
        title = f"{document['kind']} {document['metadata']['name']}"
        return [f"{source}: {title} is in namespace {own}, not {namespace}; change metadata.namespace or -n"]
    return []


def _warnings(document: Object, source: str) -> list[str]:
    found = check_pods(document) if is_paddle_job(document) else []
    return [fault.at(document, source) for fault in found if fault.severity is Severity.WARNING]


def _missing_fields(document: Object) -> list[str]:
    metadata = document.get("metadata")
    named = isinstance(metadata, dict) and isinstance(metadata.get("name"), str)
    kind = document.get("kind") or "a document"
    missing = [f"{field}: is missing; add it" for field in ("apiVersion", "kind") if not document.get(field)]
    return missing + ([] if named else [f"{kind}: metadata.name: is missing; add it"])


def _duplicates(documents: list[Object], namespace: str) -> list[str]:
    keys = Counter(
        (
            str(document["kind"]),
            str(document["metadata"].get("namespace", namespace)),
            str(document["metadata"]["name"]),
        )
        for document in documents
    )
    return [
        f"{kind} {name} is defined {count} times; rename the duplicates"
        for (kind, _, name), count in keys.items()
        if count > 1
    ]


def _rank(document: Object) -> int:
    if document["kind"] == contract.KIND:
        return len(ORDER) + 1
    return ORDER.index(document["kind"]) if document["kind"] in ORDER else len(ORDER)
