"""What a pod template says: which container trains, and whether it asks for an accelerator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paddlejob import contract

Container = dict[str, Any]


def training_container(containers: Sequence[Container]) -> Container:
    """The container named `paddle`, or the first one."""
    named = (one for one in containers if one["name"] == contract.TRAINING_CONTAINER)
    return next(named, containers[0])


def has_accelerator(template: dict[str, Any]) -> bool:
    """Whether the training container requests a device, that is an extended resource such as nvidia.com/gpu."""
    resources = training_container(template["spec"]["containers"]).get("resources") or {}
    requested = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    return any("/" in name and str(amount) != "0" for name, amount in requested.items())
