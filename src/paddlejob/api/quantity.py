"""Quantities as Kubernetes writes them, and what the containers of a pod request."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from paddlejob.api.types import Slot, Spec
from paddlejob.errors import BadInput

UNITS = {"": 1, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
UNITS |= {f"{letter}i": 1024 ** (power + 1) for power, letter in enumerate("KMGTPE")}


def parse_quantity(quantity: str | int | float) -> float:
    """A quantity as Kubernetes writes it: 2, "500m", "1.5Gi", "1e3"."""
    found = re.fullmatch(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)([a-zA-Z]*)", str(quantity).strip())
    if not found or found[2] not in UNITS:
        raise BadInput(f"{quantity!r} is not a quantity; write it as 2, 500m or 1Gi")
    return float(found[1]) * UNITS[found[2]]


def format_quantity(resource: str, quantity: float) -> str:
    """For people: memory in GiB, the rest as a plain number."""
    return f"{quantity / 1024**3:.1f} GiB" if resource == "memory" else f"{quantity:g}"


def limits(container: dict[str, Any]) -> dict[str, Any]:
    return (container.get("resources") or {}).get("limits") or {}


def requests(container: dict[str, Any]) -> dict[str, Any]:
    """A limit without a request counts as a request."""
    return {**limits(container), **((container.get("resources") or {}).get("requests") or {})}


def of_pod(pod_spec: dict[str, Any]) -> Counter[str]:
    """As Kubernetes counts: init containers run one by one before the others, and sidecars among them keep running."""
    total: Counter[str] = Counter()
    highest: Counter[str] = Counter()
    for container in pod_spec.get("initContainers") or []:
        running = _added(total, container)
        highest |= running
        total = running if container.get("restartPolicy") == "Always" else total
    for container in pod_spec["containers"]:
        total = _added(total, container)
    return total | highest


def _added(total: Counter[str], container: dict[str, Any]) -> Counter[str]:
    own: dict[str, Any] = {name: parse_quantity(quantity) for name, quantity in requests(container).items()}
    return total + Counter(own)


def of_job(spec: Spec) -> Counter[str]:
    return of_replicas(spec, spec.slots)


def of_replicas(spec: Spec, slots: Iterable[Slot]) -> Counter[str]:
    """What some replicas of a job request together."""
    total: Counter[str] = Counter()
    for role, count in Counter(role for role, _ in slots).items():
        for name, requested in of_pod(spec.roles[role].template["spec"]).items():
            total[name] += requested * count
    return total
