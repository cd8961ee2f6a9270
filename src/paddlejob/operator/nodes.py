"""The state of nodes. They are read one by one and only on demand: a watch of all nodes would cost far more."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable

from paddlejob.errors import Forbidden, KubeError, NotFound
from paddlejob.kube.client import Client
from paddlejob.kube.resource import NODES, Object
from paddlejob.plan.world import NodeState

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
REMEMBERED_SECONDS = 4.0
MOST_REMEMBERED = 1000
AT_ONCE = 16

log = logging.getLogger(__name__)


class Nodes:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, tuple[float, NodeState | None]] = {}
        """By name: when the node was read, and its state."""
        self._may_read = True

    async def states(self, names: Iterable[str]) -> dict[str, NodeState]:
        """Without permission to read nodes, none is known."""
        at_once = asyncio.Semaphore(AT_ONCE)

        async def bounded(name: str) -> NodeState | None:
            async with at_once:
                return await self._state(name)

        wanted = sorted(set(names))
        found = await asyncio.gather(*(bounded(name) for name in wanted))
        return {name: state for name, state in zip(wanted, found, strict=True) if state is not None}

    async def _state(self, name: str) -> NodeState | None:
        read_at, state = self._known.get(name, (0.0, None))
        if read_at and time.monotonic() - read_at < REMEMBERED_SECONDS:
            return state
        state = await self._read(name)
        if len(self._known) >= MOST_REMEMBERED:
            self._known.clear()
        self._known[name] = (time.monotonic(), state)
        return state

    async def _read(self, name: str) -> NodeState | None:
        try:
            return node_state(await self._client.get(NODES, name))
        except NotFound:
            return NodeState.GONE
        except Forbidden as error:
            if self._may_read:
                log.warning(
                    "pods that do not end are force-deleted after a timeout, without checking the node: %s", error
                )
            self._may_read = False
            return None
        except KubeError as error:
            log.warning("node %s cannot be read; its pods are not force-deleted for now: %s", name, error)
            return NodeState.READY


def node_state(node: Object) -> NodeState:
    taints = (node.get("spec") or {}).get("taints") or []
    if any(one["key"] == OUT_OF_SERVICE for one in taints):
        return NodeState.GONE
    conditions = (node.get("status") or {}).get("conditions") or []
    ready = next((one["status"] for one in conditions if one["type"] == "Ready"), "False")
    return {"True": NodeState.READY, "Unknown": NodeState.UNREACHABLE}.get(ready, NodeState.NOT_READY)
