"""Applying the objects of a submission: a dry run comes first, so that a rejection changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from paddlejob.client.files import is_paddle_job
from paddlejob.client.start.submission import Submission
from paddlejob.errors import AlreadyExists, ApiError, Forbidden, NotFound, NotPossible
from paddlejob.kube.client import Client
from paddlejob.kube.discovery import Discovery
from paddlejob.kube.resource import Resource

if TYPE_CHECKING:
    from paddlejob.targets.cluster.cluster_target import ClusterTarget

Object = dict[str, Any]
FIELD_MANAGER = "pdj-submit"
HINTS = {"PodGroup": "install Volcano, or remove the PodGroup", "Queue": "install Volcano, or remove the Queue"}


@dataclass(frozen=True)
class Operation:
    """One object to create or apply."""

    resource: Resource
    document: Object
    existing: Object | None
    """The object of this name before the operation."""

    @property
    def title(self) -> str:
        metadata = self.document["metadata"]
        namespace = f" in namespace {metadata['namespace']}" if self.resource.namespaced else ""
        kind = "job" if is_paddle_job(self.document) else self.document["kind"]
        return f"{kind} {metadata['name']}{namespace}"

    async def run(self, client: Client, dry_run: bool = False) -> Object:
        """Jobs are only created, so that a running job never changes by accident; other objects may already exist."""
        if is_paddle_job(self.document):
            return await client.create(self.resource, self.document, dry_run=dry_run)
        return await client.apply(self.resource, self.document, manager=FIELD_MANAGER, dry_run=dry_run)


async def apply(client: Client, submission: Submission, target: ClusterTarget) -> list[str]:
    """Apply every object; returns one line for each."""
    operations = await _operations(client, submission, target)
    await _dry_run(client, operations, submission.new_namespaces, target)
    return [f"{operation.title}: {_outcome(operation, await operation.run(client))}" for operation in operations]


async def _operations(client: Client, submission: Submission, target: ClusterTarget) -> list[Operation]:
    discovery = Discovery(client)
    operations, unknown = [], []
    for document in submission.documents:
        kind, version = document["kind"], document["apiVersion"]
        resource = await discovery.resource(version, kind)
        if resource is None and is_paddle_job(document):
            raise target.not_installed()
        if resource is None:
            hint = HINTS.get(kind, "check apiVersion and kind")
            unknown.append(f"{kind} {document['metadata']['name']}: the cluster has no {kind} in {version}; {hint}")
            continue
        operations.append(Operation(resource, document, await _existing(client, resource, document)))
    if unknown:
        raise NotPossible("\n".join(unknown))
    return operations


async def _existing(client: Client, resource: Resource, document: Object) -> Object | None:
    """Returns None also when the caller lacks permission; the dry run then reports what is forbidden."""
    metadata = document["metadata"]
    try:
        return await client.get(resource, metadata["name"], metadata.get("namespace"))
    except (NotFound, Forbidden):
        return None


async def _dry_run(
    client: Client, operations: list[Operation], new_namespaces: set[str], target: ClusterTarget
) -> None:
    """Raise NotPossible with every rejection. A namespace that is yet to be created cannot be tried."""
    rejections = []
    for operation in operations:
        namespace = operation.document["metadata"].get("namespace")
        if namespace in new_namespaces:
            continue
        try:
            await operation.run(client, dry_run=True)
        except AlreadyExists:
            rejections.append(_already_exists(operation, target))
        except NotFound as error:
            remedy = f"create it with `kubectl create namespace {namespace}`"
            rejections.append(f"{operation.title}: {error.message}; {remedy}")
        except ApiError as error:
            rejections.append(f"{operation.title}: {error.message}")
    if rejections:
        raise NotPossible("\n".join(rejections))


def _already_exists(operation: Operation, target: ClusterTarget) -> str:
    name, namespace = operation.document["metadata"]["name"], operation.document["metadata"]["namespace"]
    flags = target.flags(namespace)
    return (
        f"{operation.title} already exists (`pdj get {name}{flags}`); "
        f"choose another name, or delete it and its logs first (`pdj delete {name}{flags}`)"
    )


def _outcome(operation: Operation, result: Object) -> str:
    if operation.existing is None:
        return "created"
    return "unchanged" if _content(operation.existing) == _content(result) else "configured"


def _content(obj: Object) -> Object:
    """The object without what the server records about each write."""
    ignored = ("managedFields", "resourceVersion")
    return {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key not in ignored}}
