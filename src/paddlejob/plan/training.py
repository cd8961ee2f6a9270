"""Which container of a template trains, and on what."""

from __future__ import annotations

from typing import Any

from paddlejob import contract
from paddlejob.api.types import RoleSpec


def training_container(template: dict[str, Any]) -> dict[str, Any]:
    """The container named paddle, else the first."""
    containers: list[dict[str, Any]] = template["spec"]["containers"]
    named = (one for one in containers if one["name"] == contract.TRAINING_CONTAINER)
    return next(named, containers[0])


def has_accelerator(role: RoleSpec) -> bool:
    """Whether pods ask for a device: an extended resource, as in nvidia.com/gpu."""
    resources = training_container(role.template).get("resources") or {}
    asked = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    return any("/" in name and str(amount) != "0" for name, amount in asked.items())
