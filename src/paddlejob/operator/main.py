"""The operator process: become leader, watch, and reconcile every job that changes."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from paddlejob import contract
from paddlejob.engine.backend import Key
from paddlejob.engine.queue import KeyedQueue
from paddlejob.engine.reconcile import Reconciler
from paddlejob.errors import BadInput, KubeError, NotLeader, PaddleJobError
from paddlejob.kube.access import Access
from paddlejob.kube.client import Client
from paddlejob.kube.events import EventRecorder
from paddlejob.kube.leader_election import LeaderElector
from paddlejob.kube.loop_thread import LoopThread
from paddlejob.operator.agents.gate import AgentGate
from paddlejob.operator.agents.identity import Identity
from paddlejob.operator.backend import KubeBackend
from paddlejob.operator.health import Health, is_loopback, serving
from paddlejob.operator.informers import Informers
from paddlejob.operator.log_reader import LogReader
from paddlejob.operator.manifests import LEASE_NAME
from paddlejob.operator.metrics import Metrics
from paddlejob.operator.metrics.access import MetricsAccess
from paddlejob.operator.metrics.certificate import Certificate

MAX_CONCURRENT_RECONCILES = 16
REVIEW_TIMEOUT = 5.0
"""Seconds to check a token; Prometheus gives a scrape ten."""
IDENTITY = os.environ.get("POD_NAME") or f"{socket.gethostname()}-{uuid.uuid4().hex[:8]}"
"""Who holds the lease may take it up at once: this process, or in a pod the process of its restarted container.

The kubelet starts a container again only after its process has ended, so the two never run at the same time.
"""
log = logging.getLogger("paddlejob.operator")


@dataclass(frozen=True)
class Options:
    namespace: str | None = None
    leader_elect: bool = False
    leader_namespace: str = ""
    metrics: str = ":8080"
    probes: str = ":8081"
    lease_seconds: float = 15.0
    read_logs: bool = True
    job_metrics: bool = False
    metrics_auth: bool = False
    metrics_certificate: str = ""
    agent_url: str = ""
    agent_bind_address: str = ":8443"


async def run(access: Access, options: Options) -> None:
    """Run until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    metrics, health = Metrics(options.job_metrics), Health()
    async with _serving(access, options, metrics, health):
        working = asyncio.create_task(_lead_repeatedly(access, options, metrics, health))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not working.done():
            log.info("stopping")
            working.cancel()
        with suppress(asyncio.CancelledError), _logging_errors():
            await working


@contextmanager
def _logging_errors() -> Iterator[None]:
    """The log of a pod is where an administrator looks for why it restarts."""
    try:
        yield
    except PaddleJobError:
        raise
    except Exception:
        log.critical("unexpected error; the operator ends", exc_info=True)
        raise


@asynccontextmanager
async def _serving(access: Access, options: Options, metrics: Metrics, health: Health) -> AsyncIterator[None]:
    """Serve metrics and probes; also on standby, so the check of tokens has a client of its own."""
    if options.metrics_auth and not options.metrics_certificate and not is_loopback(options.metrics):
        raise BadInput(
            "--metrics-auth: tokens would be sent without encryption; set --metrics-certificate to a directory with "
            "tls.crt and tls.key, or serve metrics on 127.0.0.1"
        )
    async with AsyncExitStack() as stack:
        admission, tls = None, None
        if options.metrics_auth:
            client = Client(access, observe=metrics.observe_request, timeout=REVIEW_TIMEOUT)
            admission = MetricsAccess(await stack.enter_async_context(client))
        if options.metrics_certificate:
            certificate = Certificate(options.metrics_certificate)
            tls = certificate.tls
            renewing = asyncio.create_task(certificate.run())
            stack.callback(renewing.cancel)
        endpoints = serving(health, metrics.registry, options.metrics, options.probes, access=admission, tls=tls)
        await stack.enter_async_context(endpoints)
        yield


async def _lead_repeatedly(access: Access, options: Options, metrics: Metrics, health: Health) -> None:
    """Lead; after the lease is lost (the API server was unreachable, or another took over), stand by to lead again."""
    while True:
        health.standby = True
        await _lead(access, options, metrics, health)


async def _lead(access: Access, options: Options, metrics: Metrics, health: Health) -> None:
    async with AsyncExitStack() as stack:
        may_write, lost = lambda: True, None
        metrics.set_leader(lambda: False)
        if options.leader_elect:
            # Whatever keeps this loop busy must not cost the lease; a loop that hangs fails its liveness probe.
            thread = stack.enter_context(LoopThread())
            elector = await _elector(access, options, thread, stack)
            health.last_contact = partial(getattr, elector, "last_contact")
            await thread.enter(stack, elector)
            may_write, lost = elector.is_leader, lambda: thread.call(elector.lost())
        client = await stack.enter_async_context(Client(access, may_write=may_write, observe=metrics.observe_request))
        metrics.set_leader(may_write)
        health.standby = False
        await _reconcile_jobs(client, options, metrics, health, lost, may_write)


def _own_namespace(access: Access, options: Options) -> str:
    """Of the lease, and of the Secret for agents."""
    return options.leader_namespace or access.namespace or "default"


async def _elector(access: Access, options: Options, thread: LoopThread, stack: AsyncExitStack) -> LeaderElector:
    client = await thread.enter(stack, Client(access.for_another_loop()))
    seconds = options.lease_seconds
    return LeaderElector(
        client,
        _own_namespace(access, options),
        LEASE_NAME,
        IDENTITY,
        lease_duration=seconds,
        renew_deadline=seconds * 2 / 3,
        retry_period=seconds * 2 / 15,
    )


async def _reconcile_jobs(
    client: Client,
    options: Options,
    metrics: Metrics,
    health: Health,
    lost: Callable[[], Awaitable[None]] | None,
    may_write: Callable[[], bool],
) -> None:
    """Reconcile jobs until cancelled, or until the lease is lost."""
    informers = Informers(client, options.namespace)
    recorder = EventRecorder(client, contract.EVENT_SOURCE)
    queue: KeyedQueue[Key] = KeyedQueue(observe=metrics.observe_reconcile, on_failure=_on_failure(metrics))
    logs = LogReader(client, informers, recorder, queue.add, enabled=options.read_logs)
    gate = await AgentGate.opened(client, options.agent_url, _own_namespace(client.access, options))
    backend = KubeBackend(client, informers, recorder, logs, gate.agents)
    reconciler = Reconciler(backend, clock=client.server_time, crowded=lambda: queue.crowded)
    informers.enqueue_changes(queue.add)
    health.last_contact = lambda: informers.last_contact
    health.failing = lambda: informers.failing

    async def reconcile(key: Key) -> None:
        wake_at = await reconciler.step(key)
        if wake_at is not None:
            queue.add_after(key, wake_at - client.server_time())

    with metrics.collecting(informers, queue, recorder, client.server_time):
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(informers.run()), tasks.create_task(recorder.run())]
            await informers.wait_for_sync()
            health.synced = True
            log.info("watching %s; %d jobs", options.namespace or "all namespaces", len(informers.jobs))
            running.append(tasks.create_task(queue.run(reconcile, MAX_CONCURRENT_RECONCILES)))
            running.append(tasks.create_task(logs.run()))
            if gate.agents.channel:
                identity = Identity(client, informers)
                serving = gate.run(options.agent_bind_address, identity, queue.add, may_write)
                running.append(tasks.create_task(serving))
            if lost is not None:
                await lost()
                log.error("the lease is lost; standing by")
                for task in running:
                    task.cancel()


def _on_failure(metrics: Metrics) -> Callable[[Key, Exception], None]:
    def failed(key: Key, error: Exception) -> None:
        metrics.count_error()
        if isinstance(error, NotLeader):
            return
        name = "/".join(key)
        if isinstance(error, KubeError):
            log.warning("job %s: %s; retrying", name, error)
        else:
            log.error("job %s: unexpected error; retrying", name, exc_info=error)

    return failed
