"""Webhooks that a removed Volcano left behind: the API server calls a service that no longer exists."""

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
    """The plural, as kubectl expects it."""
    name: str
    blocks_pods: bool
    """Whether pods are rejected because of it."""


async def find_leftovers(client: Client) -> list[Leftover]:
    """Webhooks of Volcano whose service does not exist; empty when the caller may not list webhooks."""
    leftovers = []
    services: dict[tuple[str, str], bool] = {}
    for resource in KINDS:
        try:
            configurations = await client.list(resource)
        except Forbidden:
            return []
        for configuration in configurations:
            name = configuration["metadata"]["name"]
            hooks = configuration.get("webhooks") or []
            if name.startswith(PREFIX) and not await _has_service(client, hooks, services):
                leftovers.append(Leftover(resource.plural, name, any(map(_blocks_pods, hooks))))
    return leftovers


def delete_commands(leftovers: list[Leftover]) -> list[str]:
    """The kubectl commands that remove them, one per kind."""
    kinds = dict.fromkeys(leftover.kind for leftover in leftovers)
    return [f"kubectl delete {kind} {' '.join(one.name for one in leftovers if one.kind == kind)}" for kind in kinds]


def describe(leftovers: list[Leftover]) -> str:
    effect = "no pod can start" if any(one.blocks_pods for one in leftovers) else "some requests are rejected"
    commands = "\n".join(f"  {command}" for command in delete_commands(leftovers))
    return f"Volcano was removed but its webhooks remain, so {effect}; delete them:\n{commands}"


async def _has_service(client: Client, hooks: list[Object], services: dict[tuple[str, str], bool]) -> bool:
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


def _blocks_pods(hook: Object) -> bool:
    resources = [name for rule in hook.get("rules") or [] for name in rule.get("resources") or []]
    return hook.get("failurePolicy", "Fail") == "Fail" and any(name in ("pods", "*", "*/*") for name in resources)
