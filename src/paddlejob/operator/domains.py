"""The domains of nodes in a job's topology: values of a label, which are read only where they decide."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable

from paddlejob.api.types import PaddleJob
from paddlejob.errors import Forbidden, KubeError, NotFound
from paddlejob.kube.client import Client
from paddlejob.kube.resource import NODES
from paddlejob.plan.ranks import topology_of

REMEMBERED_SECONDS = 60.0
"""Labels that describe the network hardly ever change."""
MOST_REMEMBERED = 10_000
AT_ONCE = 16

log = logging.getLogger(__name__)


class Domains:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[tuple[str, str], tuple[float, str]] = {}
        """By node and label: when the node was read, and the value."""
        self._may_read = True
        self._at_once = asyncio.Semaphore(AT_ONCE)

    async def of_nodes(self, job: PaddleJob, nodes: Iterable[str]) -> dict[str, str]:
        """By node. Without permission to read nodes, none is known."""
        topology = topology_of(job)
        label = (topology.required or topology.preferred) if topology else None
        if not label:
            return {}
        wanted = sorted(set(nodes))
        found = await asyncio.gather(*(self._of_node(name, label) for name in wanted))
        return {name: value for name, value in zip(wanted, found, strict=True) if value}

    async def _of_node(self, name: str, label: str) -> str:
        read_at, value = self._known.get((name, label), (0.0, ""))
        if read_at and time.monotonic() - read_at < REMEMBERED_SECONDS:
            return value
        async with self._at_once:
            read = await self._read(name, label)
        if read is None:
            return ""
        if len(self._known) >= MOST_REMEMBERED:
            self._known.clear()
        self._known[name, label] = (time.monotonic(), read)
        return read

    async def _read(self, name: str, label: str) -> str | None:
        """None if the node cannot be read now."""
        try:
            node = await self._client.get(NODES, name)
        except NotFound:
            return ""
        except Forbidden as error:
            if self._may_read:
                log.warning("ranks follow nodes but not the domains of a topology: %s", error)
            self._may_read = False
            return ""
        except KubeError as error:
            log.warning("node %s cannot be read; ranks are assigned without its label %s: %s", name, label, error)
            return None
        return str((node["metadata"].get("labels") or {}).get(label, ""))
