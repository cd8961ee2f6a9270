"""Leader election: of several processes, the one that holds a Lease object acts."""

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

log = logging.getLogger(__name__)


def steady_clock() -> float:
    """Seconds that also pass while this process, or the whole machine, is stopped."""
    boot: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


class Lease:
    """`async with lease:` waits until the lease is ours, renews it inside, and gives it back at the end.

    `held()` is the `may_write` of the client that does the leader's work: it turns False by the clock alone,
    `renew_deadline` seconds after the last renewal was sent, which is before anyone else may take over.
    `lost()` returns when that happens; once lost, it stays lost. The lease's own client has no `may_write`.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        *,
        lease_seconds: float = 15.0,
        renew_deadline: float = 10.0,
        retry: float = 2.0,
        clock: Callable[[], float] = steady_clock,
    ) -> None:
        if not retry < renew_deadline < lease_seconds:
            raise ValueError("retry must be less than renew_deadline, and that less than lease_seconds")
        self.identity = identity
        self._client = client
        self._namespace = namespace
        self._name = name
        self._lease_seconds = lease_seconds
        self._renew_deadline = renew_deadline
        self._retry = retry
        self._clock = clock
        self.last_contact = time.monotonic()
        """When the server last answered, whoever holds the lease."""
        self._good_until = -1.0
        self._record: Object | None = None
        self._seen_version = ""
        self._seen_at = 0.0
        self._renewing: asyncio.Task[None] | None = None

    def held(self) -> bool:
        return self._clock() < self._good_until

    async def lost(self) -> None:
        """Return when the lease is no longer ours."""
        if self._renewing is not None:
            await asyncio.wait([self._renewing])

    async def __aenter__(self) -> Self:
        while True:
            if await self._attempt():
                break
            await asyncio.sleep(self._retry * random.uniform(0.8, 1.2))
        log.info("%s: we lead now, as %s", self._name, self.identity)
        self._renewing = asyncio.create_task(self._renew())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait([self._renewing])
        was_held, self._good_until = self.held(), -1.0
        if was_held:
            await self._give_back()

    async def _renew(self) -> None:
        while self.held():
            await asyncio.sleep(self._retry)
            if self.held():
                await self._attempt()
        self._good_until = -1.0
        log.warning("%s: we no longer lead; nothing was renewed for %g s", self._name, self._renew_deadline)

    async def _attempt(self) -> bool:
        """Take or renew the lease once; True where it is ours then."""
        begun = self._clock()
        try:
            async with asyncio.timeout(self._renew_deadline / 2):
                self._record = await self._client.get(LEASES, self._name, self._namespace)
                self.last_contact = time.monotonic()
                if not self._is_free(self._record["spec"]):
                    self._good_until = -1.0
                    return False
                self._record = await self._client.replace(LEASES, self._claim(self._record))
        except NotFound:
            return await self._create(begun)
        except (KubeError, TimeoutError) as fault:
            log.warning("%s: the lease could not be renewed or taken: %s", self._name, fault)
            return False
        self._good_until = begun + self._renew_deadline
        return self.held()

    async def _create(self, begun: float) -> bool:
        metadata = {"name": self._name, "namespace": self._namespace}
        try:
            async with asyncio.timeout(self._renew_deadline / 2):
                self._record = await self._client.create(LEASES, self._claim({"metadata": metadata, "spec": {}}))
        except (KubeError, TimeoutError) as fault:
            log.warning("%s: the lease could not be created: %s", self._name, fault)
            return False
        self._good_until = begun + self._renew_deadline
        return self.held()

    def _is_free(self, spec: Object) -> bool:
        """Ours, given back, or not renewed for its whole duration, which we time by our own clock."""
        assert self._record is not None
        if self._record["metadata"]["resourceVersion"] != self._seen_version:
            self._seen_version = self._record["metadata"]["resourceVersion"]
            self._seen_at = self._clock()
        holder = spec.get("holderIdentity")
        duration = float(spec.get("leaseDurationSeconds") or self._lease_seconds)
        return not holder or holder == self.identity or self._clock() - self._seen_at > duration

    def _claim(self, record: Object) -> Object:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = dict(record["spec"] or {})
        if spec.get("holderIdentity") != self.identity:
            spec["acquireTime"] = now
            spec["leaseTransitions"] = int(spec.get("leaseTransitions", -1)) + 1
        spec["holderIdentity"] = self.identity
        spec["leaseDurationSeconds"] = max(1, round(self._lease_seconds))
        spec["renewTime"] = now
        return {**record, "spec": spec}

    async def _give_back(self) -> None:
        """So that the next one need not wait for the lease to run out."""
        assert self._record is not None
        spec = {**self._record["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
        try:
            async with asyncio.timeout(self._renew_deadline / 2):
                await self._client.replace(LEASES, {**self._record, "spec": spec})
        except Conflict:
            pass
        except (KubeError, TimeoutError) as fault:
            log.warning("%s: the lease could not be given back: %s", self._name, fault)
