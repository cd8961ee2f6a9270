"""Whether nodes respond. They are read one by one and only on demand: a watch of all nodes would cost far more."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

from paddlejob.errors import Forbidden, KubeError, NotFound
from paddlejob.kube.client import Client
from paddlejob.kube.resource import NODES, Object

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
REMEMBERED_SECONDS = 5.0

log = logging.getLogger(__name__)


class Nodes:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, tuple[float, bool]] = {}
        """By name: when the node was read, and whether it responded."""
        self._may_read = True

    async def healthy(self, names: Iterable[str]) -> frozenset[str]:
        """Those of the nodes that respond. Without permission to read nodes, none is known to."""
        return frozenset([name for name in sorted(set(names)) if await self._responds(name)])

    async def _responds(self, name: str) -> bool:
        read_at, responds = self._known.get(name, (0.0, False))
        if read_at and time.monotonic() - read_at < REMEMBERED_SECONDS:
            return responds
        responds = await self._read(name)
        self._known = {**self._known, name: (time.monotonic(), responds)} if len(self._known) < 1000 else {}
        return responds

    async def _read(self, name: str) -> bool:
        try:
            node = await self._client.get(NODES, name)
        except NotFound:
            return False
        except Forbidden as error:
            if self._may_read:
                log.warning(
                    "pods that do not end are force-deleted after a timeout, without checking the node: %s", error
                )
            self._may_read = False
            return False
        except KubeError as error:
            log.warning("node %s cannot be read; its pods are not force-deleted for now: %s", name, error)
            return True
        return _is_healthy(node)


def _is_healthy(node: Object) -> bool:
    taints = (node.get("spec") or {}).get("taints") or []
    conditions = (node.get("status") or {}).get("conditions") or []
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return ready and not any(one["key"] == OUT_OF_SERVICE for one in taints)
