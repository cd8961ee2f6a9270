"""The actions of a page, by the functions that the verbs of the same name call."""

from __future__ import annotations

import asyncio

from paddlejob.client import actions
from paddlejob.client.start.rerun import rerun
from paddlejob.errors import BadInput, NotPossible
from paddlejob.targets.target import Target

TIMEOUT = 150.0
NAMES = ("suspend", "resume", "scale", "rerun", "delete")


async def act(target: Target, action: str, namespace: str, name: str, workers: int | None) -> str:
    """Returns the message for the user; raises BadInput if the action is unknown."""
    if action not in NAMES:
        raise BadInput(f"{action} is not an action; use one of {', '.join(NAMES)}")
    if (action == "scale") != (workers is not None):
        raise BadInput("scale needs a number of workers, and no other action takes one")
    if workers is not None:
        return await actions.scale(target, namespace, name, workers)
    if action == "suspend":
        return await actions.suspend(target, namespace, name)
    if action == "resume":
        return await actions.resume(target, namespace, name)
    if action == "delete":
        return await target.delete(namespace, name, wait=False)
    try:
        warnings = await asyncio.wait_for(rerun(target, namespace, name), TIMEOUT)
    except TimeoutError:
        raise NotPossible(f"job {name} did not start again within {TIMEOUT:.0f} s") from None
    return "\n".join([*warnings, f"{name} runs again"])
