"""The operators installed in a cluster, and the namespaces they watch."""

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
    """The Deployment of an operator."""

    namespace: str
    name: str
    watch: str
    """The namespace that it watches; empty for all."""
    image: str
    replicas: int
    available: int
    release: str = ""
    """The Helm release that installed it, if any."""

    def watches(self, namespace: str) -> bool:
        return self.watch in ("", namespace)

    @property
    def scope(self) -> str:
        return f"namespace {self.watch}" if self.watch else "all namespaces"

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


async def find_operators(client: Client) -> list[Operator] | None:
    """All operators in the cluster; None when the caller lacks permission.

    Users of one namespace may at least see the operator in its default namespace.
    """
    try:
        deployments = await client.list(DEPLOYMENTS, label_selector=SELECTOR)
    except Forbidden:
        try:
            deployments = [await client.get(DEPLOYMENTS, NAME, NAMESPACE)]
        except (Forbidden, NotFound):
            return None
    return [_parse(deployment) for deployment in deployments]


def unwatched_message(operators: list[Operator] | None, namespace: str, flags: str = "") -> str:
    """Why no operator handles the jobs in a namespace; empty if one does or if that is unknown.

    The flags select the cluster for `pdj install`.
    """
    if operators is None or any(operator.watches(namespace) for operator in operators):
        return ""
    if not operators:
        return f"no operator is installed in this cluster, so jobs do not start; run `pdj install{flags}`"
    scopes = ", ".join(f"{operator} watches {operator.scope}" for operator in operators)
    return (
        f"no operator watches namespace {namespace} ({scopes}); submit to a watched namespace or "
        f"install another operator with `pdj install{flags} -n {namespace} --watch {namespace}`"
    )


def unavailable_message(operators: list[Operator] | None, namespace: str) -> str:
    """That no replica of the operator for a namespace is ready; empty if one is or if that is unknown."""
    watching = [operator for operator in operators or [] if operator.watches(namespace)]
    if not watching or any(operator.available for operator in watching):
        return ""
    operator = watching[0]
    return (
        f"the operator {operator} is not running ({operator.available} of {operator.replicas} ready); "
        f"check `kubectl describe deployment {operator.name} -n {operator.namespace}`"
    )


def _parse(deployment: dict[str, Any]) -> Operator:
    metadata, spec = deployment["metadata"], deployment["spec"]
    container = spec["template"]["spec"]["containers"][0]
    return Operator(
        namespace=metadata["namespace"],
        name=metadata["name"],
        watch=_namespace_option([*(container.get("command") or []), *(container.get("args") or [])]),
        image=container.get("image", ""),
        replicas=spec.get("replicas", 1),
        available=(deployment.get("status") or {}).get("availableReplicas", 0),
        release=(metadata.get("annotations") or {}).get("meta.helm.sh/release-name", ""),
    )


def _namespace_option(argv: list[str]) -> str:
    """The value of --namespace on the operator's command line."""
    for number, argument in enumerate(argv):
        option, equals, value = argument.partition("=")
        if option == "--namespace":
            return value if equals else "".join(argv[number + 1 : number + 2])
    return ""
