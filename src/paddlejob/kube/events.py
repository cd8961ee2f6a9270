"""Events about objects, as `kubectl describe` shows them."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from paddlejob.errors import KubeError, NotFound
from paddlejob.kube.client import Client
from paddlejob.kube.resource import EVENTS, Object, Resource

SAME_SECONDS = 600.0
MOST_WAITING = 1000
MOST_REMEMBERED = 4096
MOST_CHARACTERS = 1024

log = logging.getLogger(__name__)

Kind = Literal["Normal", "Warning"]


@dataclass(frozen=True, slots=True)
class Said:
    """What makes two events the same one."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    kind: Kind
    reason: str
    message: str


@dataclass(slots=True)
class Sent:
    name: str
    count: int
    at: float


class Recorder:
    """Writes events in the background, while `run()` runs. The same one within 10 minutes raises its count.

    `record` never waits and never raises. Where a thousand wait to be written, further ones are dropped and
    counted in `dropped`.
    """

    def __init__(self, client: Client, component: str, instance: str = "") -> None:
        self.dropped = 0
        self._client = client
        self._component = component
        self._instance = instance or component
        self._waiting: dict[Said, int] = {}
        self._sent: OrderedDict[Said, Sent] = OrderedDict()
        self._wake = asyncio.Event()

    def record(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        uid: str,
        *,
        kind: Kind = "Normal",
        reason: str,
        message: str,
    ) -> None:
        """Say something about an object; `reason` is one word in CamelCase."""
        said = Said(resource, namespace, name, uid, kind, reason, _cut(message))
        if said not in self._waiting and len(self._waiting) >= MOST_WAITING:
            self.dropped += 1
            return
        self._waiting[said] = self._waiting.get(said, 0) + 1
        self._wake.set()

    async def run(self) -> None:
        """Write what was recorded, until cancelled."""
        while True:
            await self._wake.wait()
            await self.flush()

    async def flush(self) -> None:
        """Write all that waits now."""
        self._wake.clear()
        while self._waiting:
            said = next(iter(self._waiting))
            times = self._waiting.pop(said)
            try:
                await self._write(said, times)
            except KubeError as fault:
                self.dropped += times
                log.warning("event %s about %s/%s is lost: %s", said.reason, said.namespace, said.name, fault)
            except Exception:
                self.dropped += times
                log.exception("event %s about %s/%s is lost", said.reason, said.namespace, said.name)

    async def _write(self, said: Said, times: int) -> None:
        before = self._sent.get(said)
        if before and time.monotonic() - before.at < SAME_SECONDS and await self._count_up(said, before, times):
            return
        event = self._event(said, times)
        await self._client.create(EVENTS, event)
        self._sent.pop(said, None)
        self._sent[said] = Sent(event["metadata"]["name"], times, time.monotonic())
        if len(self._sent) > MOST_REMEMBERED:
            self._sent.popitem(last=False)

    async def _count_up(self, said: Said, before: Sent, times: int) -> bool:
        changes = {"count": before.count + times, "lastTimestamp": _now()}
        try:
            await self._client.patch(EVENTS, before.name, said.namespace or "default", changes)
        except NotFound:
            return False
        before.count += times
        before.at = time.monotonic()
        return True

    def _event(self, said: Said, times: int) -> Object:
        now = _now()
        namespace = said.namespace or "default"
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{said.name[:200]}.{uuid.uuid4().hex[:16]}", "namespace": namespace},
            "involvedObject": {
                "apiVersion": said.resource.api_version,
                "kind": said.resource.kind,
                "namespace": said.namespace,
                "name": said.name,
                "uid": said.uid,
            },
            "type": said.kind,
            "reason": said.reason,
            "message": said.message,
            "count": times,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._instance,
        }


def _cut(message: str) -> str:
    return message if len(message) <= MOST_CHARACTERS else message[: MOST_CHARACTERS - 3] + "..."


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
