"""Which container of a pod template trains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paddlejob import contract

Container = dict[str, Any]


def training_container(containers: Sequence[Container]) -> Container:
    """The container named `paddle`, or the first one."""
    named = (one for one in containers if one["name"] == contract.TRAINING_CONTAINER)
    return next(named, containers[0])
