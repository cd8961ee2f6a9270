"""Creating or updating what the operator needs in a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paddlejob.api.crd import crd
from paddlejob.cli.install.operators import Operator, find_operators
from paddlejob.errors import BadInput, NotFound, NotPossible
from paddlejob.kube.client import Client
from paddlejob.kube.resource import CRDS, DEPLOYMENTS, NAMESPACES, Resource
from paddlejob.operator.manifests import manifests

Object = dict[str, Any]
MANAGER = "pdj-install"
RBAC = "rbac.authorization.k8s.io"
RESOURCES = {
    one.kind: one
    for one in (
        NAMESPACES,
        CRDS,
        DEPLOYMENTS,
        Resource("", "v1", "serviceaccounts", kind="ServiceAccount"),
        Resource(RBAC, "v1", "roles", kind="Role"),
        Resource(RBAC, "v1", "rolebindings", kind="RoleBinding"),
        Resource(RBAC, "v1", "clusterroles", False, "ClusterRole"),
        Resource(RBAC, "v1", "clusterrolebindings", False, "ClusterRoleBinding"),
    )
}
OURS = ("app.kubernetes.io/name", "paddlejob")


@dataclass(frozen=True)
class Installation:
    namespace: str
    watch: str
    image: str
    replicas: int

    @property
    def objects(self) -> list[Object]:
        """Everything, in the order to create it."""
        wanted = manifests(namespace=self.namespace, watch=self.watch, image=self.image, replicas=self.replicas)
        return [crd(), *wanted]


async def install(client: Client, wanted: Installation, say: Callable[[str], None]) -> Object:
    """Create or update every object; answers the Deployment. Jobs that run are not touched."""
    from paddlejob.cli.install.rollout import until_established

    before = await _check(client, wanted)
    made: Object = {}
    for obj in wanted.objects:
        if obj["kind"] == "Namespace" and not await _ours_or_new(client, obj):
            continue
        made = await client.apply(RESOURCES[obj["kind"]], obj, manager=MANAGER, force=True)
        say(f"{title(obj)}: there")
        if obj["kind"] == CRDS.kind:
            await until_established(client, obj["metadata"]["name"])
    if before and before.watch != wanted.watch:
        await _drop_old_rights(client, before, wanted, say)
    return made


def title(obj: Object) -> str:
    metadata = obj["metadata"]
    place = f" in namespace {metadata['namespace']}" if "namespace" in metadata else ""
    return f"{obj['kind']} {metadata['name']}{place}"


async def _check(client: Client, wanted: Installation) -> Operator | None:
    """What is installed there now. Two operators for one namespace would undo each other's work."""
    if wanted.watch and wanted.watch != wanted.namespace and not await _exists(client, wanted.watch):
        raise BadInput(
            f"--watch: there is no namespace {wanted.watch}; `kubectl create namespace {wanted.watch}` makes it"
        )
    found = await find_operators(client) or []
    for one in found:
        if one.namespace != wanted.namespace and (not wanted.watch or one.watches(wanted.watch)):
            raise NotPossible(
                f"the operator {one} watches {one.scope} already, and two would work on the same jobs; change that one "
                f"with `-n {one.namespace}`, or remove it first with `pdj uninstall -n {one.namespace} --keep-jobs`"
            )
    before = next((one for one in found if one.namespace == wanted.namespace), None)
    if before and before.release:
        raise NotPossible(f"{before} is of Helm's release {before.release}; change it with `helm upgrade`")
    return before


async def _exists(client: Client, namespace: str) -> bool:
    try:
        await client.get(NAMESPACES, namespace)
    except NotFound:
        return False
    return True


async def _ours_or_new(client: Client, obj: Object) -> bool:
    """A namespace that was there for something else is used as it is."""
    try:
        found = await client.get(NAMESPACES, obj["metadata"]["name"])
    except NotFound:
        return True
    return is_ours(found)


def is_ours(obj: Object) -> bool:
    label, value = OURS
    return (obj["metadata"].get("labels") or {}).get(label) == value


async def _drop_old_rights(client: Client, before: Operator, wanted: Installation, say: Callable[[str], None]) -> None:
    """Rights that the operator had for what it no longer watches."""
    kept = {title(one) for one in wanted.objects}
    for obj in manifests(namespace=before.namespace, watch=before.watch):
        if title(obj) not in kept:
            await remove(client, obj)
            say(f"{title(obj)}: removed")


async def remove(client: Client, obj: Object) -> bool:
    """Whether there was something to remove."""
    try:
        await client.delete(
            RESOURCES[obj["kind"]], obj["metadata"]["name"], obj["metadata"].get("namespace"), propagation="Background"
        )
    except NotFound:
        return False
    return True
