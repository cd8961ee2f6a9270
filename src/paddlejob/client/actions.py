"""What can be done with a job that exists, and how that is confirmed; for verbs and the web page."""

from __future__ import annotations

from paddlejob.client.describe.humanize import plural
from paddlejob.targets.target import Target


async def suspend(target: Target, namespace: str, name: str) -> str:
    await target.change(namespace, name, suspend=True)
    return f"{name} suspended; run `pdj resume {name}{target.flags(namespace)}` to continue"


async def resume(target: Target, namespace: str, name: str) -> str:
    await target.change(namespace, name, suspend=False)
    return f"{name} resumed in the background; follow it with `pdj logs -f {name}{target.flags(namespace)}`"


async def scale(target: Target, namespace: str, name: str, workers: int) -> str:
    await target.change(namespace, name, worker={"replicas": workers})
    return f"{name} scaled to {plural(workers, 'worker')}"
