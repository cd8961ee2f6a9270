"""Helpers that the tests of this folder share."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any

from paddlejob.kube.resource import Object

LONG = 120.0


def configmap(name: str, namespace: str, **data: str) -> Object:
    return {"metadata": {"name": name, "namespace": namespace, "labels": {"app": "test"}}, "data": data}


def pod(name: str, namespace: str, **labels: str) -> Object:
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"containers": [{"name": "paddle", "image": "none"}]},
    }


@contextlib.asynccontextmanager
async def background(work: Coroutine[Any, Any, None]) -> AsyncIterator[asyncio.Task[None]]:
    """Run `work` during the test and cancel it at the end; it must not end earlier with an error."""
    task = asyncio.create_task(work)
    try:
        yield task
        if task.done() and not task.cancelled():
            task.result()
    finally:
        task.cancel()
        await asyncio.wait([task])
