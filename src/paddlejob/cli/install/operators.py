"""Which operators there are in a cluster, and whether one of them looks after a namespace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from paddlejob.errors import Forbidden, NotFound
from paddlejob.kube.client import Client
from paddlejob.kube.resource import DEPLOYMENTS
from paddlejob.operator.manifests import LABELS, NAME, NAMESPACE

SELECTOR = ",".join(f"{key}={value}" for key, value in LABELS.items())


@dataclass(frozen=True)
class Operator:
    """An operator's Deployment."""

    namespace: str
    name: str
    watch: str
    """The one namespace that it watches; empty: all."""
    image: str
    wanted: int
    available: int
    release: str = ""
    """Of Helm, where that installed it."""

    def watches(self, namespace: str) -> bool:
        return self.watch in ("", namespace)

    @property
    def scope(self) -> str:
        return f"namespace {self.watch}" if self.watch else "all namespaces"

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


async def find_operators(client: Client) -> list[Operator] | None:
    """All of the cluster; None where the user may not know. A user of one namespace may see the usual place only."""
    try:
        found = await client.list(DEPLOYMENTS, label_selector=SELECTOR)
    except Forbidden:
        try:
            found = [await client.get(DEPLOYMENTS, NAME, NAMESPACE)]
        except (Forbidden, NotFound):
            return None
    return [watcher(one) for one in found]


def watcher(deployment: dict[str, Any]) -> Operator:
    metadata, spec = deployment["metadata"], deployment["spec"]
    container = spec["template"]["spec"]["containers"][0]
    return Operator(
        namespace=metadata["namespace"],
        name=metadata["name"],
        watch=_watched([*(container.get("command") or []), *(container.get("args") or [])]),
        image=container.get("image", ""),
        wanted=spec.get("replicas", 1),
        available=(deployment.get("status") or {}).get("availableReplicas", 0),
        release=(metadata.get("annotations") or {}).get("meta.helm.sh/release-name", ""),
    )


def unwatched(operators: list[Operator] | None, namespace: str, flags: str = "") -> str:
    """Why jobs of a namespace would stay as they are, and what to do; empty where someone watches or we cannot tell."""
    if operators is None or any(one.watches(namespace) for one in operators):
        return ""
    if not operators:
        return f"no operator is installed in this cluster, so nothing happens to jobs; `pdj install{flags}` installs it"
    known = ", ".join(f"{one} watches {one.scope}" for one in operators)
    return (
        f"no operator watches namespace {namespace} ({known}); submit to a namespace that is watched, or "
        f"install another with `pdj install{flags} -n {namespace} --watch {namespace}`"
    )


def asleep(operators: list[Operator] | None, namespace: str) -> str:
    """Where the operator that should watch does not run; empty where it does or we cannot tell."""
    ours = [one for one in operators or [] if one.watches(namespace)]
    if not ours or any(one.available for one in ours):
        return ""
    one = ours[0]
    return (
        f"the operator {one} is not running ({one.available} of {one.wanted} ready); "
        f"see why: kubectl describe deployment {one.name} -n {one.namespace}"
    )


def _watched(words: list[str]) -> str:
    for number, word in enumerate(words):
        option, equals, value = word.partition("=")
        if option == "--namespace":
            return value if equals else "".join(words[number + 1 : number + 2])
    return ""
