"""Completion of job names in the shell. It must never fail, print anything or take long."""

from __future__ import annotations

from typing import Any

SECONDS = 2.0


def complete_jobs(ctx: Any, incomplete: str) -> list[str]:
    """The jobs of the target that the command line selects so far."""
    try:
        return [name for name in sorted(_names(ctx.params)) if name.startswith(incomplete)]
    except Exception:
        return []


def _names(options: dict[str, Any]) -> set[str]:
    import asyncio

    from paddlejob.client.targets.target import choose_target

    target = choose_target(options.get("cluster"), options.get("context") or "")
    namespace = options.get("namespace") or target.default_namespace
    if not hasattr(target, "access"):
        return {view.job.name for view in target.jobs(namespace)}
    return asyncio.run(_names_in_cluster(target, namespace))


async def _names_in_cluster(target: Any, namespace: str) -> set[str]:
    import asyncio

    from paddlejob.kube.client import Client
    from paddlejob.objects.resources import PADDLEJOBS

    async with asyncio.timeout(SECONDS), Client(target.access) as client:
        return {job["metadata"]["name"] for job in await client.list(PADDLEJOBS, namespace)}
