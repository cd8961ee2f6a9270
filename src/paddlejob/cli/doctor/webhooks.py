"""Webhooks that a removed Volcano left behind: the API server asks a service that is gone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from paddlejob.errors import Forbidden, NotFound
from paddlejob.kube.client import Client
from paddlejob.kube.resource import SERVICES, Resource

Object = dict[str, Any]
PREFIX = "volcano-admission-service"
GROUP = "admissionregistration.k8s.io"
KINDS = (
    Resource(GROUP, "v1", "validatingwebhookconfigurations", False, "ValidatingWebhookConfiguration"),
    Resource(GROUP, "v1", "mutatingwebhookconfigurations", False, "MutatingWebhookConfiguration"),
)


@dataclass(frozen=True)
class Leftover:
    kind: str
    """The plural, as kubectl takes it."""
    name: str
    stops_pods: bool
    """Whether pods are refused because of it."""


async def find_leftovers(client: Client) -> list[Leftover]:
    """Volcano's webhooks whose service is not there. Who may not see webhooks finds none."""
    found = []
    services: dict[tuple[str, str], bool] = {}
    for resource in KINDS:
        try:
            configurations = await client.list(resource)
        except Forbidden:
            return []
        for one in configurations:
            name = one["metadata"]["name"]
            hooks = one.get("webhooks") or []
            if name.startswith(PREFIX) and not await _answered(client, hooks, services):
                found.append(Leftover(resource.plural, name, any(map(_stops_pods, hooks))))
    return found


def commands(leftovers: list[Leftover]) -> list[str]:
    """What removes them: one command for each kind."""
    kinds = dict.fromkeys(one.kind for one in leftovers)
    return [f"kubectl delete {kind} {' '.join(one.name for one in leftovers if one.kind == kind)}" for kind in kinds]


def told(leftovers: list[Leftover]) -> str:
    effect = "no pod can start" if any(one.stops_pods for one in leftovers) else "some requests are refused"
    lines = "\n".join(f"  {line}" for line in commands(leftovers))
    return f"Volcano was removed, but its webhooks are still there, so {effect}; remove them:\n{lines}"


async def _answered(client: Client, hooks: list[Object], services: dict[tuple[str, str], bool]) -> bool:
    for hook in hooks:
        service = (hook.get("clientConfig") or {}).get("service")
        if service:
            key = (service["namespace"], service["name"])
            if key not in services:
                services[key] = await _exists(client, *key)
            if not services[key]:
                return False
    return True


async def _exists(client: Client, namespace: str, name: str) -> bool:
    try:
        await client.get(SERVICES, name, namespace)
    except NotFound:
        return False
    except Forbidden:
        return True
    return True


def _stops_pods(hook: Object) -> bool:
    resources = [name for rule in hook.get("rules") or [] for name in rule.get("resources") or []]
    return hook.get("failurePolicy", "Fail") == "Fail" and any(name in ("pods", "*", "*/*") for name in resources)
