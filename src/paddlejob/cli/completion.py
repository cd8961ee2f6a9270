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

    from paddlejob.targets.choose import choose_target

    target = choose_target(options.get("cluster"), options.get("context") or "")
    namespace = options.get("namespace") or target.default_namespace

    async def names() -> set[str]:
        async with asyncio.timeout(SECONDS):
            return {view.job.name for view in await target.target.jobs(namespace)}

    return asyncio.run(names())
