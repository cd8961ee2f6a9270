"""Run a finished job again, from the start and in the background, with the options and the code of the last run."""

from __future__ import annotations

import asyncio
import tempfile
from typing import TYPE_CHECKING, Any

from paddlejob import contract
from paddlejob.api.fault import Severity
from paddlejob.api.types import Phase
from paddlejob.client.start.check import check
from paddlejob.client.start.load import Loaded
from paddlejob.errors import ApiError, BadInput, NotPossible, PaddleJobError
from paddlejob.targets.local.local_target import LocalTarget
from paddlejob.targets.target import Target

if TYPE_CHECKING:
    from paddlejob.kube.client import Client
    from paddlejob.targets.views import JobView

Object = dict[str, Any]
KEPT_METADATA = ("name", "namespace", "labels", "annotations")
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


async def rerun(target: Target, namespace: str, name: str) -> list[str]:
    """Returns the warnings and notes about it; raises BadInput if the job has not ended."""
    view = await target.job(namespace, name)
    if not view.job.status.finished:
        job = f"{name}{target.flags(namespace)}"
        stopped = view.phase in (Phase.SUSPENDED, "Interrupted")
        remedy = f"continue it with `pdj resume {job}`" if stopped else f"wait for its end (`pdj watch {job}`)"
        remedy += f", or first delete it and its logs with `pdj delete {job}`"
        raise BadInput(f"job {name} has not ended ({view.phase}); {remedy}")
    if isinstance(target, LocalTarget):
        return await asyncio.to_thread(_run_here, target, view)
    from paddlejob.targets.cluster.cluster_target import ClusterTarget

    assert isinstance(target, ClusterTarget)
    checked = check([Loaded(f"job {name}", (fresh_document(view.document),))], cluster=Severity.ERROR)
    async with target.connection() as client:
        await submit_again(client, view.document)
    return list(checked.warnings)


def _run_here(target: LocalTarget, view: JobView) -> list[str]:
    from paddlejob.client.start.begin import begin
    from paddlejob.client.start.on_machine import place
    from paddlejob.local.machine.resources import this_machine
    from paddlejob.local.runner import spawn_detached

    folder = target.store.folder((view.job.namespace, view.job.name))
    document, options = fresh_document(folder.document() or view.document), folder.options()
    checked = check([Loaded(f"job {view.job.name}", (document, *options.objects))], cluster=None)
    (placed,) = place(checked, options, target.store, this_machine(), again=True)
    held, notes = begin(target.store, [(placed.document, placed.options)])
    spawn_detached(target.store, held)
    return [*checked.warnings, *notes]


def fresh_document(document: Object) -> Object:
    """The job as a user would submit it: without its status and what a server has set."""
    metadata = {key: value for key, value in document["metadata"].items() if key in KEPT_METADATA}
    annotations = {
        key: value for key, value in (metadata.pop("annotations", None) or {}).items() if key != LAST_APPLIED
    }
    spec = {key: value for key, value in document["spec"].items() if key != "suspend"}
    kept = {key: value for key, value in document.items() if key not in ("metadata", "spec", "status")}
    return {**kept, "metadata": metadata | ({"annotations": annotations} if annotations else {}), "spec": spec}


async def submit_again(client: Client, job: Object) -> None:
    """Delete the job and create it again; a dry run comes first, so that a rejection changes nothing."""
    from paddlejob.objects.resources import PADDLEJOBS
    from paddlejob.targets.cluster.cluster_target import wait_until_deleted

    document, code = fresh_document(job), await _code_of(client, job)
    name, namespace = document["metadata"]["name"], document["metadata"]["namespace"]
    other = {**document, "metadata": {**document["metadata"], "name": f"{name[:50]}-rerun"}}
    try:
        await client.create(PADDLEJOBS, other, dry_run=True)
    except ApiError as error:
        raise NotPossible(f"job {name}: {error.message}; nothing was changed") from error
    deleted = False
    try:
        await client.delete(PADDLEJOBS, name, namespace, uid=job["metadata"]["uid"], propagation="Background")
        deleted = True
        await wait_until_deleted(client, job)
        created = await client.create(PADDLEJOBS, document)
        await _store_code(client, created, code)
    except (PaddleJobError, asyncio.CancelledError) as error:
        if isinstance(error, PaddleJobError) and not deleted:
            raise
        remedy = f"create it again with `kubectl create -f` from {_saved(*map(_own, code), document)}"
        raise NotPossible(f"{str(error) or 'interrupted'}; job {name} was deleted; {remedy}") from error


async def _code_of(client: Client, job: Object) -> list[Object]:
    """The ConfigMaps with the code that was submitted with the job; they are deleted with it."""
    from paddlejob.code.shipping import config_map_names
    from paddlejob.kube.resource import CONFIGMAPS

    digest, _, parts = ((job["metadata"].get("annotations") or {}).get(contract.ANNOTATION_CODE) or "").partition("/")
    names = config_map_names(digest, int(parts)) if digest and parts.isdecimal() else []
    return [await client.get(CONFIGMAPS, name, job["metadata"]["namespace"]) for name in names]


async def _store_code(client: Client, job: Object, code: list[Object]) -> None:
    from paddlejob.client.start.shipment import create_or_share
    from paddlejob.code.shipping import owner_reference

    owner = owner_reference(job)
    for one in map(_own, code):
        document = {**one, "metadata": {**one["metadata"], "ownerReferences": [owner]}}
        await create_or_share(client, document, owner)


def _own(part: Object) -> Object:
    """A ConfigMap without what the server has set."""
    metadata = {key: part["metadata"][key] for key in ("name", "namespace", "labels") if key in part["metadata"]}
    return {**part, "metadata": metadata}


def _saved(*documents: Object) -> str:
    """The name of a file with the job and its code, for a job that would be lost otherwise."""
    from paddlejob.client.describe.formats import to_yaml

    with tempfile.NamedTemporaryFile("w", suffix=".yaml", prefix="pdj-rerun-", delete=False) as file:
        file.write(to_yaml(*documents))
    return file.name
