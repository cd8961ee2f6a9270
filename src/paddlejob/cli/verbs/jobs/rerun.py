"""`pdj rerun`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from paddlejob.cli.options import Cluster, Context, JobName, Namespace

if TYPE_CHECKING:
    from paddlejob.client.targets.local import LocalTarget
    from paddlejob.client.targets.target import JobView
    from paddlejob.kube.client import Client

Object = dict[str, Any]
KEPT_METADATA = ("name", "namespace", "labels", "annotations")
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def command(name: JobName, namespace: Namespace = "", cluster: Cluster = None, context: Context = "") -> None:
    """Run a job that has ended once more, from the start and in the background.

    The job keeps its name and its options. On this machine the logs of the former run are kept (`pdj list --history`);
    on a cluster they are deleted with its pods.

    \b
    Example:
      pdj rerun resnet
    """
    from paddlejob.client.targets.local import LocalTarget
    from paddlejob.client.targets.target import choose_target
    from paddlejob.errors import BadInput

    target = choose_target(cluster, context)
    namespace = namespace or target.default_namespace
    view = target.job(namespace, name)
    flags = target.flags(namespace)
    if not view.job.status.finished:
        raise BadInput(f"job {name} has not ended ({view.phase}); end it with `pdj delete {name}{flags}` first")
    if isinstance(target, LocalTarget):
        _run_here(target, view)
    else:
        from paddlejob.client.targets.cluster import ClusterTarget

        assert isinstance(target, ClusterTarget)
        target.with_client(lambda client: _submit_again(client, view.document))
    typer.echo(f"{name} runs again; follow it with `pdj logs -f {name}{flags}`")


def fresh_document(document: Object) -> Object:
    """The job as a user would submit it: without its status and what a server has set."""
    metadata = {key: value for key, value in document["metadata"].items() if key in KEPT_METADATA}
    annotations = {
        key: value for key, value in (metadata.pop("annotations", None) or {}).items() if key != LAST_APPLIED
    }
    spec = {key: value for key, value in document["spec"].items() if key != "suspend"}
    kept = {key: value for key, value in document.items() if key not in ("metadata", "spec", "status")}
    return {**kept, "metadata": metadata | ({"annotations": annotations} if annotations else {}), "spec": spec}


def _run_here(target: LocalTarget, view: JobView) -> None:
    """With the options and the environment of the former run."""
    from paddlejob.api.types import PaddleJob
    from paddlejob.client.begin import begin
    from paddlejob.errors import NotPossible
    from paddlejob.local.machine.resources import this_machine
    from paddlejob.local.preflight import preflight
    from paddlejob.local.runner import start_detached
    from paddlejob.local.sandbox.supervisor import probe

    folder = target.store.folder((view.job.namespace, view.job.name))
    stored, options = folder.document(), folder.options()
    document = fresh_document(stored or view.document)
    checked = preflight(PaddleJob.model_validate(document), options, target.store, this_machine(), *probe())
    if checked.errors:
        raise NotPossible("\n".join(f"job {view.job.name}: {error}" for error in checked.errors))
    held, notes = begin(target.store, [(document, options)])
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    start_detached(target.store, held)


async def _submit_again(client: Client, job: Object) -> None:
    """Delete the job and create it again; a dry run comes first, so that a rejection changes nothing."""
    import asyncio

    from paddlejob.client.targets.cluster import wait_until_deleted
    from paddlejob.errors import ApiError, NotPossible, PaddleJobError
    from paddlejob.objects.resources import PADDLEJOBS

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
    from paddlejob import contract
    from paddlejob.code.shipping import config_map_names
    from paddlejob.kube.resource import CONFIGMAPS

    digest, _, parts = ((job["metadata"].get("annotations") or {}).get(contract.ANNOTATION_CODE) or "").partition("/")
    names = config_map_names(digest, int(parts)) if digest and parts.isdecimal() else []
    return [await client.get(CONFIGMAPS, name, job["metadata"]["namespace"]) for name in names]


async def _store_code(client: Client, job: Object, code: list[Object]) -> None:
    from paddlejob.client.submit.code import create_or_share
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
    import tempfile

    from paddlejob.client.describe.formats import to_yaml

    with tempfile.NamedTemporaryFile("w", suffix=".yaml", prefix="pdj-rerun-", delete=False) as file:
        file.write(to_yaml(*documents))
    return file.name
