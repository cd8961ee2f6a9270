"""Waiting for a status on any stage."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

ROLES = ("ps", "worker", "heter")


def shown(status: dict[str, Any], field: str) -> Any:
    """A field of a status; worker_ready means status.worker.ready."""
    role, _, rest = field.partition("_")
    if role in ROLES and rest:
        return (status.get(role) or {}).get(rest)
    return status.get(field)


def matches(status: dict[str, Any], expected: dict[str, Any]) -> bool:
    """Whether the status has the expected fields; an absent field counts as zero or empty."""
    return all((shown(status, field) or type(value)()) == value for field, value in expected.items())


async def until(
    read: Callable[[], Awaitable[dict[str, Any]]], expected: dict[str, Any], seconds: float = 60
) -> dict[str, Any]:
    ends = time.monotonic() + seconds
    while True:
        status = await read()
        if matches(status, expected):
            return status
        assert time.monotonic() < ends, f"after {seconds} s, expected {expected}, the status is {status}"
        await asyncio.sleep(0.1)
