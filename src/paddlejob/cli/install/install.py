"""Creating or updating the objects that the operator needs in a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from paddlejob.api.crd import crd
from paddlejob.cli.install.rollout import wait_until_established
from paddlejob.errors import BadInput, NotFound, NotPossible
from paddlejob.kube.client import Client
from paddlejob.kube.resource import CRDS, DEPLOYMENTS, NAMESPACES, SERVICES, Resource
from paddlejob.operator.manifests import IMAGE, manifests
from paddlejob.targets.cluster.operators import Operator, find_operators

Object = dict[str, Any]
FIELD_MANAGER = "pdj-install"
RBAC = "rbac.authorization.k8s.io"
FLOW_CONTROL = "flowcontrol.apiserver.k8s.io"
RESOURCES = {
    resource.kind: resource
    for resource in (
        NAMESPACES,
        CRDS,
        DEPLOYMENTS,
        Resource("", "v1", "serviceaccounts", kind="ServiceAccount"),
        Resource("", "v1", "secrets", kind="Secret"),
        SERVICES,
        Resource(RBAC, "v1", "roles", kind="Role"),
        Resource(RBAC, "v1", "rolebindings", kind="RoleBinding"),
        Resource(RBAC, "v1", "clusterroles", False, "ClusterRole"),
        Resource(RBAC, "v1", "clusterrolebindings", False, "ClusterRoleBinding"),
        Resource("policy", "v1", "poddisruptionbudgets", kind="PodDisruptionBudget"),
        Resource(FLOW_CONTROL, "v1", "flowschemas", False, "FlowSchema"),
        Resource(FLOW_CONTROL, "v1", "prioritylevelconfigurations", False, "PriorityLevelConfiguration"),
    )
}
OWN_LABEL = ("app.kubernetes.io/name", "paddlejob")


@dataclass(frozen=True)
class Installation:
    namespace: str
    watch: str
    image: str = ""
    """Empty for the image of this version, or for the one that an installed operator has from another repository."""
    replicas: int = 0
    """0 for the number that an installed operator has, or 1."""
    widen: bool = False
    """Whether an installed operator that watches one namespace may watch all of them from now on."""

    @property
    def objects(self) -> list[Object]:
        """Every object, in the order of creation."""
        image, replicas = self.image or IMAGE, self.replicas or 1
        return [crd(), *manifests(namespace=self.namespace, watch=self.watch, image=image, replicas=replicas)]

    def keeping(self, current: Operator) -> Installation:
        """With what was chosen for the installed operator where nothing else is wanted."""
        own_image = current.image and _repository(current.image) != _repository(IMAGE)
        return replace(
            self,
            image=self.image or (current.image if own_image else ""),
            replicas=self.replicas or current.replicas,
        )


async def install(client: Client, wanted: Installation, say: Callable[[str], None], flags: str = "") -> Object:
    """Create or update every object and return the Deployment; running jobs are not affected."""
    current = await _check(client, wanted, flags)
    if current:
        kept = wanted.keeping(current)
        if kept.image != wanted.image:
            say(f"keeps the image {kept.image}; change it with --image")
        if kept.replicas > 1 and not wanted.replicas:
            say(f"keeps {kept.replicas} replicas; change it with --replicas")
        wanted = kept
    applied: Object = {}
    for obj in wanted.objects:
        if obj["kind"] == "Namespace" and not await _is_own_or_new(client, obj):
            continue
        applied = await client.apply(RESOURCES[obj["kind"]], obj, manager=FIELD_MANAGER, force=True)
        say(f"{title(obj)}: applied")
        if obj["kind"] == CRDS.kind:
            await wait_until_established(client, obj["metadata"]["name"])
    if current and current.watch != wanted.watch:
        await _remove_old_roles(client, current, wanted, say)
    return applied


def title(obj: Object) -> str:
    metadata = obj["metadata"]
    namespace = f" in namespace {metadata['namespace']}" if "namespace" in metadata else ""
    return f"{obj['kind']} {metadata['name']}{namespace}"


def _repository(image: str) -> str:
    """The name of an image without its tag and digest."""
    name = image.partition("@")[0]
    return name.rpartition(":")[0] if ":" in name.rpartition("/")[2] else name


async def _check(client: Client, wanted: Installation, flags: str) -> Operator | None:
    """The operator that is updated, if any. Two operators for one namespace would undo each other's work."""
    if wanted.watch and wanted.watch != wanted.namespace and not await _namespace(client, wanted.watch):
        raise BadInput(
            f"--watch: namespace {wanted.watch} not found; create it with `kubectl create namespace {wanted.watch}`"
        )
    operators = await find_operators(client) or []
    for other in operators:
        if other.namespace != wanted.namespace and (not wanted.watch or other.watches(wanted.watch)):
            update = f"pdj install{flags} -n {other.namespace}{_watch_option(other)}"
            raise NotPossible(
                f"the operator {other} already watches {other.scope}, and two operators must not manage the same jobs; "
                f"update it with `{update}`, or remove it first with "
                f"`pdj uninstall{flags} -n {other.namespace} --keep-jobs`"
            )
    current = next((operator for operator in operators if operator.namespace == wanted.namespace), None)
    if current and current.release:
        raise NotPossible(f"{current} belongs to the Helm release {current.release}; update it with `helm upgrade`")
    if current and current.watch and not wanted.watch and not wanted.widen:
        raise BadInput(
            f"the operator {current} watches only namespace {current.watch}, and this would make it watch all of them; "
            f"keep that with `pdj install{flags} -n {current.namespace}{_watch_option(current)}`, or confirm it with "
            "--all-namespaces"
        )
    return current


def _watch_option(operator: Operator) -> str:
    return f" --watch {operator.watch}" if operator.watch else ""


async def _namespace(client: Client, name: str) -> Object | None:
    try:
        return await client.get(NAMESPACES, name)
    except NotFound:
        return None


async def _is_own_or_new(client: Client, obj: Object) -> bool:
    """A namespace that already exists for something else is used as it is."""
    existing = await _namespace(client, obj["metadata"]["name"])
    return existing is None or _is_own(existing)


async def is_own_namespace(client: Client, name: str) -> bool:
    """Whether the namespace exists and was created by the installation."""
    existing = await _namespace(client, name)
    return existing is not None and _is_own(existing)


def _is_own(obj: Object) -> bool:
    label, value = OWN_LABEL
    return (obj["metadata"].get("labels") or {}).get(label) == value


async def _remove_old_roles(
    client: Client, current: Operator, wanted: Installation, say: Callable[[str], None]
) -> None:
    """Remove the permissions for namespaces that the operator no longer watches."""
    kept = {title(obj) for obj in wanted.objects}
    for obj in manifests(namespace=current.namespace, watch=current.watch):
        if title(obj) not in kept:
            await remove(client, obj)
            say(f"{title(obj)}: removed")


async def remove(client: Client, obj: Object) -> bool:
    """Returns whether the object existed."""
    try:
        await client.delete(
            RESOURCES[obj["kind"]], obj["metadata"]["name"], obj["metadata"].get("namespace"), propagation="Background"
        )
    except NotFound:
        return False
    return True
