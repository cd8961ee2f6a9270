"""Leader election: of several processes, only the one that holds a Lease object acts."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from paddlejob.errors import Conflict, KubeError, NotFound
from paddlejob.kube.client import Client
from paddlejob.kube.resource import LEASES, Object
from paddlejob.kube.server_clock import steady_clock

log = logging.getLogger(__name__)


class LeaderElector:
    """`async with elector:` waits to become the leader, renews the lease inside, and releases it at the end.

    `is_leader()` is the `may_write` of the client that does the leader's work: it turns False by the clock alone,
    `renew_deadline` seconds after the last renewal was sent, which is before another process may take over.
    `lost()` returns when that happens; a lost lease is not regained. The elector's own client has no `may_write`.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        *,
        lease_duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
        clock: Callable[[], float] = steady_clock,
    ) -> None:
        if not retry_period < renew_deadline < lease_duration:
            raise ValueError("retry_period must be less than renew_deadline, and that less than lease_duration")
        self.identity = identity
        self._client = client
        self._namespace = namespace
        self._name = name
        self._lease_duration = lease_duration
        self._renew_deadline = renew_deadline
        self._retry_period = retry_period
        self._clock = clock
        self.last_contact = time.monotonic()
        """When the server last responded, whoever holds the lease."""
        self._leader_until = -1.0
        self._lease: Object | None = None
        self._observed_version = ""
        self._observed_at = 0.0
        self._renewing: asyncio.Task[None] | None = None

    def is_leader(self) -> bool:
        return self._clock() < self._leader_until

    async def lost(self) -> None:
        """Return when this process is no longer the leader."""
        if self._renewing is not None:
            await asyncio.wait([self._renewing])

    async def __aenter__(self) -> Self:
        while not await self._try_acquire_or_renew():  # noqa: ASYNC110
            await asyncio.sleep(self._retry_period * random.uniform(0.8, 1.2))
        log.info("%s: became leader as %s", self._name, self.identity)
        self._renewing = asyncio.create_task(self._renew())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait([self._renewing])
        was_leader, self._leader_until = self.is_leader(), -1.0
        if was_leader:
            await self._release()

    async def _renew(self) -> None:
        while self.is_leader():
            await asyncio.sleep(self._retry_period)
            if self.is_leader():
                await self._renew_once()
        self._leader_until = -1.0
        log.warning("%s: no longer the leader: %s", self._name, self._why_lost())

    def _why_lost(self) -> str:
        holder = ((self._lease or {}).get("spec") or {}).get("holderIdentity")
        taken = holder and holder != self.identity
        return f"{holder} holds the lease" if taken else f"not renewed for {self._renew_deadline:g} s"

    async def _renew_once(self) -> None:
        try:
            await self._try_acquire_or_renew()
        except Exception:
            # A response that is no Lease, for instance from a proxy, must not end the renewals.
            log.exception("%s: failed to renew the lease", self._name)

    async def _try_acquire_or_renew(self) -> bool:
        """Returns whether this process is the leader after the attempt."""
        started = self._clock()
        try:
            async with asyncio.timeout(self._renew_deadline / 2):
                self._lease = await self._client.get(LEASES, self._name, self._namespace)
                self.last_contact = time.monotonic()
                if not self._is_available(self._lease):
                    self._leader_until = -1.0
                    return False
                self._lease = await self._client.replace(LEASES, self._held_by_us(self._lease))
        except NotFound:
            return await self._create(started)
        except (KubeError, TimeoutError) as error:
            log.warning("%s: failed to acquire or renew the lease: %s", self._name, str(error) or "no answer in time")
            return False
        self._leader_until = started + self._renew_deadline
        return self.is_leader()

    async def _create(self, started: float) -> bool:
        metadata = {"name": self._name, "namespace": self._namespace}
        try:
            async with asyncio.timeout(self._renew_deadline / 2):
                self._lease = await self._client.create(LEASES, self._held_by_us({"metadata": metadata, "spec": {}}))
        except (KubeError, TimeoutError) as error:
            log.warning("%s: failed to create the lease: %s", self._name, str(error) or "no answer in time")
            return False
        self._leader_until = started + self._renew_deadline
        return self.is_leader()

    def _is_available(self, lease: Object) -> bool:
        """Ours, released, or not renewed for its whole duration by our own clock."""
        if lease["metadata"]["resourceVersion"] != self._observed_version:
            self._observed_version = lease["metadata"]["resourceVersion"]
            self._observed_at = self._clock()
        holder = lease["spec"].get("holderIdentity")
        duration = float(lease["spec"].get("leaseDurationSeconds") or self._lease_duration)
        return not holder or holder == self.identity or self._clock() - self._observed_at > duration

    def _held_by_us(self, lease: Object) -> Object:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = dict(lease["spec"] or {})
        if spec.get("holderIdentity") != self.identity:
            spec["acquireTime"] = now
            spec["leaseTransitions"] = int(spec.get("leaseTransitions", -1)) + 1
        spec["holderIdentity"] = self.identity
        spec["leaseDurationSeconds"] = max(1, round(self._lease_duration))
        spec["renewTime"] = now
        return {**lease, "spec": spec}

    async def _release(self) -> None:
        """Let the next leader take over without waiting for the lease to expire."""
        try:
            async with asyncio.timeout(self._renew_deadline / 2):
                # Read anew: a renewal that was cancelled may have reached the server.
                lease = await self._client.get(LEASES, self._name, self._namespace)
                held = lease.get("spec") or {}
                if held.get("holderIdentity") == self.identity:
                    spec = {**held, "holderIdentity": "", "leaseDurationSeconds": 1}
                    await self._client.replace(LEASES, {**lease, "spec": spec})
        except (Conflict, NotFound):
            pass
        except (KubeError, TimeoutError) as error:
            log.warning("%s: failed to release the lease: %s", self._name, str(error) or "no answer in time")
