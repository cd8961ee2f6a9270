"""What `pdj doctor` looks at in a cluster: whatever jobs need there, and what the user may do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paddlejob import contract
from paddlejob.api.crd import crd
from paddlejob.cli.doctor.check import Check, change, good, note
from paddlejob.cli.doctor.webhooks import commands, find_leftovers
from paddlejob.cli.install.operators import find_operators
from paddlejob.errors import Forbidden, KubeError, NotFound
from paddlejob.kube.client import Client
from paddlejob.kube.discovery import Discovery
from paddlejob.kube.resource import CRDS, Resource

if TYPE_CHECKING:
    from paddlejob.cli.targets.cluster import ClusterTarget

OLDEST = (1, 29)
REVIEWS = Resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews", False, "SelfSubjectAccessReview")
RIGHTS = (
    ("submit jobs", contract.GROUP, contract.PLURAL, "", "create"),
    ("see jobs", contract.GROUP, contract.PLURAL, "", "list"),
    ("change jobs", contract.GROUP, contract.PLURAL, "", "patch"),
    ("delete jobs", contract.GROUP, contract.PLURAL, "", "delete"),
    ("see pods", "", "pods", "", "list"),
    ("read logs", "", "pods", "log", "get"),
    ("see events", "", "events", "", "list"),
)


async def check_cluster(client: Client, place: ClusterTarget, namespace: str) -> list[Check]:
    try:
        reached = await check_reached(client)
    except KubeError as error:
        return [change("cluster", str(error), "choose another context with --context, or mend the connection")]
    return [
        reached,
        await check_crd(client, place),
        *await check_operators(client, place, namespace),
        await check_rights(client, namespace),
        await check_volcano(client),
        await check_webhooks(client),
    ]


async def check_reached(client: Client) -> Check:
    version = await client.read("/version")
    found = f"{client.access.server} runs Kubernetes {version['gitVersion']}"
    numbers = tuple(int("".join(filter(str.isdigit, version[part])) or 0) for part in ("major", "minor"))
    if numbers < OLDEST:
        return change("cluster", found, f"paddlejob is tested with {OLDEST[0]}.{OLDEST[1]} and newer; update it")
    return good("cluster", found)


async def check_crd(client: Client, place: ClusterTarget) -> Check:
    name = f"{contract.PLURAL}.{contract.GROUP}"
    install = f"`pdj install{place.flags()}`"
    try:
        found = await client.get(CRDS, name)
    except NotFound:
        return change("PaddleJob", "the cluster does not know this kind", f"{install} installs it")
    except Forbidden:
        return await _served(client)
    if not _same_schema(found):
        return note("PaddleJob", "defined by another version than this pdj", f"{install} brings it to this one")
    return good("PaddleJob", f"{name} is installed")


async def check_operators(client: Client, place: ClusterTarget, namespace: str) -> list[Check]:
    operators = await find_operators(client)
    if operators is None:
        return [note("operator", "not known: you may not see Deployments elsewhere", "ask who runs the cluster")]
    if not operators:
        return [change("operator", "none is installed", f"`pdj install{place.flags()}` installs it")]
    checks = [
        good("operator", f"{one} ({one.image}) watches {one.scope}; {one.available} of {one.wanted} ready")
        if one.available
        else change(
            "operator",
            f"{one} watches {one.scope}, but 0 of {one.wanted} are ready",
            f"see why: kubectl describe deployment {one.name} -n {one.namespace}",
        )
        for one in operators
    ]
    if not any(one.watches(namespace) for one in operators):
        another = f"`pdj install{place.flags()} -n {namespace} --watch {namespace}`"
        advice = f"use a namespace that is watched (-n), or install another with {another}"
        checks.append(change("operator", f"none watches namespace {namespace}", advice))
    return checks


async def check_rights(client: Client, namespace: str) -> Check:
    missing = [words for words, *right in RIGHTS if not await _may(client, namespace, *right)]
    if missing:
        advice = "ask for a Role with them, or name a namespace where you have them (-n)"
        return change("your rights", f"in namespace {namespace} you may not {', '.join(missing)}", advice)
    return good("your rights", f"in namespace {namespace} you may submit, see, change and delete jobs, and read logs")


async def check_volcano(client: Client) -> Check:
    if await Discovery(client).resource(contract.VOLCANO_API, "PodGroup"):
        return good("Volcano", "installed: jobs with schedulerName volcano start as a whole")
    return note("Volcano", "not installed", "only jobs with schedulerName volcano or schedulingPolicy need it")


async def check_webhooks(client: Client) -> Check:
    leftovers = await find_leftovers(client)
    if not leftovers:
        return good("webhooks", "none left over from a removed Volcano")
    names = ", ".join(one.name for one in leftovers)
    return change("webhooks", f"left over from a removed Volcano: {names}", "; ".join(commands(leftovers)))


async def _served(client: Client) -> Check:
    """For users who may not see definitions: whether the kind is there at all."""
    if await Discovery(client).resource(contract.API_VERSION, contract.KIND):
        return good("PaddleJob", "the cluster knows this kind")
    return change("PaddleJob", "the cluster does not know this kind", "ask who runs the cluster to `pdj install`")


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


def _same_schema(found: dict[str, Any]) -> bool:
    """Compared by field names: the server fills in and reorders the rest."""
    ours, theirs = (one["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for one in (crd(), found))
    return _fields(ours) == _fields(theirs)


def _fields(schema: dict[str, Any]) -> dict[str, Any]:
    return {part: sorted(schema["properties"][part].get("properties") or {}) for part in ("spec", "status")}
