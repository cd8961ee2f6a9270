"""Sending the objects of a file to the API server: all are asked about first, so that a rejection changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from paddlejob.cli.files import is_paddle_job
from paddlejob.cli.submit.files import Submission
from paddlejob.errors import AlreadyExists, ApiError, Forbidden, NotFound, NotPossible
from paddlejob.kube.client import Client
from paddlejob.kube.discovery import Discovery
from paddlejob.kube.resource import Resource

if TYPE_CHECKING:
    from paddlejob.cli.targets.cluster import ClusterTarget

Object = dict[str, Any]
MANAGER = "pdj-submit"
HINTS = {"PodGroup": "install Volcano, or remove the PodGroup", "Queue": "install Volcano, or remove the Queue"}


@dataclass(frozen=True)
class Letter:
    resource: Resource
    document: Object
    before: Object | None
    """What is there under this name."""

    @property
    def title(self) -> str:
        metadata = self.document["metadata"]
        place = f" in namespace {metadata['namespace']}" if self.resource.namespaced else ""
        kind = "job" if is_paddle_job(self.document) else self.document["kind"]
        return f"{kind} {metadata['name']}{place}"

    async def post(self, client: Client, dry_run: bool = False) -> Object:
        """A job is created, never changed under the feet of one that runs; other objects may be there already."""
        if is_paddle_job(self.document):
            return await client.create(self.resource, self.document, dry_run=dry_run)
        return await client.apply(self.resource, self.document, manager=MANAGER, dry_run=dry_run)


async def send(client: Client, submission: Submission, place: ClusterTarget) -> list[str]:
    """What was done, a line for each object."""
    letters = await _addressed(client, submission, place)
    await _rehearse(client, letters, submission.new_namespaces, place)
    done = []
    for letter in letters:
        after = await letter.post(client)
        word = "created" if not letter.before else "unchanged" if _same(letter.before, after) else "changed"
        done.append(f"{letter.title}: {word}")
    return done


async def _addressed(client: Client, submission: Submission, place: ClusterTarget) -> list[Letter]:
    from paddlejob.cli.targets.cluster import no_kind

    discovery = Discovery(client)
    letters, unknown = [], []
    for document in submission.documents:
        kind, version = document["kind"], document["apiVersion"]
        resource = await discovery.resource(version, kind)
        if resource is None and is_paddle_job(document):
            raise no_kind(place.access.server, place.flags())
        if resource is None:
            hint = HINTS.get(kind, "check apiVersion and kind")
            unknown.append(f"{kind} {document['metadata']['name']}: the cluster has no {kind} of {version}; {hint}")
            continue
        letters.append(Letter(resource, document, await _there(client, resource, document)))
    if unknown:
        raise NotPossible("\n".join(unknown))
    return letters


async def _there(client: Client, resource: Resource, document: Object) -> Object | None:
    """None also for who may not look: then the rehearsal tells."""
    metadata = document["metadata"]
    try:
        return await client.get(resource, metadata["name"], metadata.get("namespace"))
    except (NotFound, Forbidden):
        return None


def _same(before: Object, after: Object) -> bool:
    """Whatever the server notes about the write itself."""

    def content(obj: Object) -> Object:
        noted = ("managedFields", "resourceVersion")
        return {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key not in noted}}

    return content(before) == content(after)


async def _rehearse(client: Client, letters: list[Letter], new_namespaces: set[str], place: ClusterTarget) -> None:
    """The server is asked whether it would take each; where one is refused, nothing is sent."""
    refused = []
    for letter in letters:
        if letter.document["metadata"].get("namespace") in new_namespaces:
            continue
        try:
            await letter.post(client, dry_run=True)
        except AlreadyExists:
            refused.append(_taken(letter, place))
        except NotFound as error:
            namespace = letter.document["metadata"].get("namespace")
            refused.append(f"{letter.title}: {error.message}; `kubectl create namespace {namespace}` makes it")
        except ApiError as error:
            refused.append(f"{letter.title}: {error.message}")
    if refused:
        raise NotPossible("\n".join(refused))


def _taken(letter: Letter, place: ClusterTarget) -> str:
    name, namespace = letter.document["metadata"]["name"], letter.document["metadata"]["namespace"]
    flags = place.flags(namespace)
    return (
        f"{letter.title} is there already (`pdj get {name}{flags}`); "
        f"delete it first (`pdj delete {name}{flags}`), or give this one another name"
    )
