"""The checks of a cluster: what jobs need there, and what the user may do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paddlejob import contract
from paddlejob.api.crd import crd
from paddlejob.cli.doctor.check import Check, change, good, note
from paddlejob.cli.doctor.webhooks import delete_commands, find_leftovers
from paddlejob.errors import Forbidden, KubeError, NotFound
from paddlejob.kube.client import Client
from paddlejob.kube.discovery import Discovery
from paddlejob.kube.resource import CRDS, Resource
from paddlejob.targets.cluster.operators import Operator, find_operators

if TYPE_CHECKING:
    from paddlejob.targets.cluster.cluster_target import ClusterTarget

OLDEST_VERSION = (1, 29)
REVIEWS = Resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews", False, "SelfSubjectAccessReview")
PERMISSIONS = (
    ("submit jobs", contract.GROUP, contract.PLURAL, "", "create"),
    ("list jobs", contract.GROUP, contract.PLURAL, "", "list"),
    ("change jobs", contract.GROUP, contract.PLURAL, "", "patch"),
    ("delete jobs", contract.GROUP, contract.PLURAL, "", "delete"),
    ("list pods", "", "pods", "", "list"),
    ("read logs", "", "pods", "log", "get"),
    ("list events", "", "events", "", "list"),
)


async def check_cluster(client: Client, target: ClusterTarget, namespace: str) -> list[Check]:
    try:
        version = await check_version(client)
    except KubeError as error:
        return [change("cluster", str(error), "choose another context with --context, or fix the connection")]
    return [
        version,
        await check_crd(client, target),
        *await check_operators(client, target, namespace),
        await check_permissions(client, namespace),
        await check_volcano(client),
        await check_kueue(client),
        await check_webhooks(client),
    ]


async def check_version(client: Client) -> Check:
    version = await client.read("/version")
    found = f"{client.access.server} runs Kubernetes {version['gitVersion']}"
    numbers = tuple(int("".join(filter(str.isdigit, version[part])) or 0) for part in ("major", "minor"))
    if numbers < OLDEST_VERSION:
        oldest = ".".join(map(str, OLDEST_VERSION))
        return change("cluster", found, f"upgrade the cluster: paddlejob is tested with Kubernetes {oldest} and newer")
    return good("cluster", found)


async def check_crd(client: Client, target: ClusterTarget) -> Check:
    name = f"{contract.PLURAL}.{contract.GROUP}"
    install = f"`pdj install{target.context_flag}`"
    try:
        installed = await client.get(CRDS, name)
    except NotFound:
        return change("PaddleJob", "the CRD is not installed", f"run {install}")
    except Forbidden:
        return await _check_served(client)
    if not _has_same_schema(installed):
        return note("PaddleJob", "the CRD is from another version of pdj", f"run {install} to update it")
    return good("PaddleJob", f"{name} is installed")


async def check_operators(client: Client, target: ClusterTarget, namespace: str) -> list[Check]:
    operators = await find_operators(client)
    if operators is None:
        return [note("operator", "unknown: you may not list Deployments", "ask the administrator of the cluster")]
    if not operators:
        return [change("operator", "not installed", f"run `pdj install{target.context_flag}`")]
    checks = [_check_operator(operator) for operator in operators]
    if not any(operator.watches(namespace) for operator in operators):
        install = f"`pdj install{target.context_flag} -n {namespace} --watch {namespace}`"
        advice = f"choose a watched namespace with -n, or install another operator with {install}"
        checks.append(change("operator", f"none watches namespace {namespace}", advice))
    return checks


def _check_operator(operator: Operator) -> Check:
    ready = f"{operator.available} of {operator.replicas} replicas ready"
    if operator.available:
        return good("operator", f"{operator} ({operator.image}) watches {operator.scope}; {ready}")
    describe = f"kubectl describe deployment {operator.name} -n {operator.namespace}"
    return change("operator", f"{operator} watches {operator.scope}; {ready}", f"find the cause with `{describe}`")


async def check_permissions(client: Client, namespace: str) -> Check:
    missing = [action for action, *permission in PERMISSIONS if not await _may(client, namespace, *permission)]
    if missing:
        advice = "ask for a Role with these permissions, or choose another namespace with -n"
        return change("permissions", f"in namespace {namespace} you may not {', '.join(missing)}", advice)
    return good("permissions", f"in namespace {namespace} you may manage jobs and read their logs")


async def check_volcano(client: Client) -> Check:
    if await Discovery(client).resource(contract.VOLCANO_API, "PodGroup"):
        return good("Volcano", "installed; gang scheduling is available")
    needs_it = "only jobs with schedulerName: volcano or a schedulingPolicy of more than a topology need it"
    return note("Volcano", "not installed", needs_it)


async def check_kueue(client: Client) -> Check:
    for version in contract.KUEUE_VERSIONS:
        if await Discovery(client).resource(f"{contract.KUEUE_GROUP}/{version}", "Workload"):
            return good("Kueue", f"installed ({version}); jobs can wait for quota in its queues")
    return note("Kueue", "not installed", f"only jobs with the label {contract.LABEL_QUEUE} need it")


async def check_webhooks(client: Client) -> Check:
    leftovers = await find_leftovers(client)
    if not leftovers:
        return good("webhooks", "no leftovers of a removed Volcano")
    names = ", ".join(leftover.name for leftover in leftovers)
    return change("webhooks", f"leftovers of a removed Volcano: {names}", "; ".join(delete_commands(leftovers)))


async def _check_served(client: Client) -> Check:
    """For users who may not read CRDs."""
    if await Discovery(client).resource(contract.API_VERSION, contract.KIND):
        return good("PaddleJob", "the API server serves this kind")
    advice = "ask the administrator of the cluster to run `pdj install`"
    return change("PaddleJob", "the API server does not serve this kind", advice)


async def _may(client: Client, namespace: str, group: str, resource: str, subresource: str, verb: str) -> bool:
    attributes = {"namespace": namespace, "group": group, "resource": resource, "verb": verb}
    if subresource:
        attributes["subresource"] = subresource
    review: dict[str, Any] = {
        "apiVersion": REVIEWS.api_version,
        "kind": REVIEWS.kind,
        "metadata": {},
        "spec": {"resourceAttributes": attributes},
    }
    answer = await client.create(REVIEWS, review)
    return bool(answer["status"].get("allowed"))


def _has_same_schema(installed: dict[str, Any]) -> bool:
    """Compares field names only: the server fills in and reorders the rest."""
    expected, actual = (one["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for one in (crd(), installed))
    return _fields(expected) == _fields(actual)


def _fields(schema: dict[str, Any]) -> dict[str, Any]:
    return {part: sorted(schema["properties"][part].get("properties") or {}) for part in ("spec", "status")}
