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

AGGREGATION_SECONDS = 600.0
MAX_PENDING = 1000
MAX_REMEMBERED = 4096
MAX_CHARACTERS = 1024

log = logging.getLogger(__name__)

EventType = Literal["Normal", "Warning"]


@dataclass(frozen=True, slots=True)
class EventKey:
    """The fields that make two events the same."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    event_type: EventType
    reason: str
    message: str


@dataclass(slots=True)
class WrittenEvent:
    """An Event object that was created, whose count may grow."""

    name: str
    count: int
    at: float


class EventRecorder:
    """Writes events in the background while `run()` runs; one that repeats within 10 minutes raises its count.

    `record` never waits and never raises. While a thousand events are pending, further ones are dropped.
    """

    def __init__(self, client: Client, component: str) -> None:
        self.dropped = 0
        """How many events were not written: too many were pending, or the server rejected them."""
        self._client = client
        self._component = component
        self._pending: dict[EventKey, int] = {}
        self._written: OrderedDict[EventKey, WrittenEvent] = OrderedDict()
        self._wake = asyncio.Event()

    def record(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        uid: str,
        *,
        event_type: EventType = "Normal",
        reason: str,
        message: str,
    ) -> None:
        """Record an event about an object; `reason` is one word in CamelCase."""
        key = EventKey(resource, namespace, name, uid, event_type, reason, _truncated(message))
        if key not in self._pending and len(self._pending) >= MAX_PENDING:
            self.dropped += 1
            log.warning("event %s about %s/%s dropped: too many events are pending", reason, namespace, name)
            return
        self._pending[key] = self._pending.get(key, 0) + 1
        self._wake.set()

    async def run(self) -> None:
        """Write recorded events until cancelled."""
        while True:
            await self._wake.wait()
            await self.flush()

    async def flush(self) -> None:
        """Write all pending events now."""
        self._wake.clear()
        while self._pending:
            key = next(iter(self._pending))
            times = self._pending.pop(key)
            try:
                await self._write(key, times)
            except KubeError as error:
                self.dropped += times
                log.warning("event %s about %s/%s is lost: %s", key.reason, key.namespace, key.name, error)
            except Exception:
                self.dropped += times
                log.exception("event %s about %s/%s is lost", key.reason, key.namespace, key.name)

    async def _write(self, key: EventKey, times: int) -> None:
        known = self._written.get(key)
        recent = known and time.monotonic() - known.at < AGGREGATION_SECONDS
        if known and recent and await self._raise_count(key, known, times):
            return
        event = self._event(key, times)
        await self._client.create(EVENTS, event)
        self._written.pop(key, None)
        self._written[key] = WrittenEvent(event["metadata"]["name"], times, time.monotonic())
        if len(self._written) > MAX_REMEMBERED:
            self._written.popitem(last=False)

    async def _raise_count(self, key: EventKey, known: WrittenEvent, times: int) -> bool:
        """Returns False if the event no longer exists."""
        changes = {"count": known.count + times, "lastTimestamp": _now()}
        try:
            await self._client.patch(EVENTS, known.name, key.namespace or "default", changes)
        except NotFound:
            return False
        known.count += times
        known.at = time.monotonic()
        return True

    def _event(self, key: EventKey, times: int) -> Object:
        now = _now()
        namespace = key.namespace or "default"
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{key.name[:200]}.{uuid.uuid4().hex[:16]}", "namespace": namespace},
            "involvedObject": {
                "apiVersion": key.resource.api_version,
                "kind": key.resource.kind,
                "namespace": key.namespace,
                "name": key.name,
                "uid": key.uid,
            },
            "type": key.event_type,
            "reason": key.reason,
            "message": key.message,
            "count": times,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._component,
        }


def _truncated(message: str) -> str:
    return message if len(message) <= MAX_CHARACTERS else message[: MAX_CHARACTERS - 3] + "..."


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
