"""The operator as a process: lead, watch, and work on every job that something happened to."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import time
import uuid
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial

from paddlejob.engine.backend import Key
from paddlejob.engine.queue import KeyedQueue
from paddlejob.engine.reconcile import Reconciler
from paddlejob.errors import KubeError, NotLeader
from paddlejob.kube.access import Access
from paddlejob.kube.client import Client
from paddlejob.kube.events import Recorder
from paddlejob.kube.lease import Lease
from paddlejob.operator.backend import KubeBackend
from paddlejob.operator.caches import Caches
from paddlejob.operator.health import Health, serving
from paddlejob.operator.metrics import Metrics

LEASE_NAME = "paddlejob-operator"
JOBS_AT_ONCE = 16
log = logging.getLogger("paddlejob.operator")


@dataclass(frozen=True)
class Options:
    namespace: str | None = None
    leader_elect: bool = False
    leader_namespace: str = ""
    metrics: str = ":8080"
    probes: str = ":8081"
    lease_seconds: float = 15.0


async def run(access: Access, options: Options) -> None:
    """Run until told to stop."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    metrics, health = Metrics(), Health()
    async with serving(health, metrics.registry, options.metrics, options.probes):
        working = asyncio.create_task(_work_for_ever(access, options, metrics, health))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not working.done():
            log.info("stopping")
            working.cancel()
        with suppress(asyncio.CancelledError):
            await working


async def _work_for_ever(access: Access, options: Options, metrics: Metrics, health: Health) -> None:
    """Lead; and when the lease was lost (the API server was away, another took over), stand by to lead again."""
    while True:
        health.standby = True
        await _lead(access, options, metrics, health)


async def _lead(access: Access, options: Options, metrics: Metrics, health: Health) -> None:
    async with AsyncExitStack() as stack:
        lease = None
        if options.leader_elect:
            lease = await _lease(access, options, stack)
            health.last_contact = partial(getattr, lease, "last_contact")
            await stack.enter_async_context(lease)
        may_write = lease.held if lease else lambda: True
        client = await stack.enter_async_context(Client(access, may_write=may_write, observe=metrics.request))
        health.standby = False
        await _work(client, options, metrics, health, lease)


async def _lease(access: Access, options: Options, stack: AsyncExitStack) -> Lease:
    client = await stack.enter_async_context(Client(access))
    identity = f"{os.environ.get('POD_NAME') or socket.gethostname()}-{uuid.uuid4().hex[:8]}"
    seconds = options.lease_seconds
    return Lease(
        client,
        options.leader_namespace or access.namespace or "default",
        LEASE_NAME,
        identity,
        lease_seconds=seconds,
        renew_deadline=seconds * 2 / 3,
        retry=seconds * 2 / 15,
    )


async def _work(client: Client, options: Options, metrics: Metrics, health: Health, lease: Lease | None) -> None:
    caches = Caches(client, options.namespace)
    recorder = Recorder(client, "paddlejob")
    queue: KeyedQueue[Key] = KeyedQueue(observe=metrics.turn, on_failure=_failed(metrics))
    reconciler = Reconciler(KubeBackend(client, caches, recorder))
    caches.on_change(queue.add)
    metrics.watch(caches.jobs, queue)
    health.last_contact = lambda: max(cache.last_contact for cache in caches.all)

    async def turn(key: Key) -> None:
        wake_at = await reconciler.step(key)
        if wake_at is not None:
            queue.add_after(key, wake_at - time.time())

    async with asyncio.TaskGroup() as tasks:
        watching = [tasks.create_task(caches.run()), tasks.create_task(recorder.run())]
        await caches.synced()
        health.synced = True
        log.info("watching %s; %d jobs", options.namespace or "all namespaces", len(caches.jobs))
        working = tasks.create_task(queue.run(turn, JOBS_AT_ONCE))
        if lease is not None:
            await lease.lost()
            log.error("the lease is lost; standing by")
            for task in (*watching, working):
                task.cancel()


def _failed(metrics: Metrics) -> Callable[[Key, Exception], None]:
    def failed(key: Key, error: Exception) -> None:
        metrics.failure()
        if isinstance(error, NotLeader):
            return
        name = "/".join(key)
        if isinstance(error, KubeError):
            log.warning("job %s: %s; trying again", name, error)
        else:
            log.error("job %s: unexpected error; trying again", name, exc_info=error)

    return failed
