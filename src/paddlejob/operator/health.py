"""The operator's HTTP endpoints: metrics, and liveness and readiness for the kubelet's probes."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from ssl import SSLContext

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

from paddlejob.errors import BadInput, NotPossible
from paddlejob.kube.resource import Resource
from paddlejob.operator.metrics.access import MetricsAccess

CONTACT_TIMEOUT = 600.0
FAILING_SECONDS = 30.0
"""A list or watch that fails for less time is a connection that broke."""


class Health:
    """Live while the API server responds from time to time; ready while the informers are current, or on standby."""

    def __init__(self) -> None:
        self.standby = True
        self.synced = False
        self.last_contact: Callable[[], float] = time.monotonic
        self.failing: Callable[[], Mapping[Resource, float]] = dict
        """The resources whose list or watch fails, and for how many seconds."""

    def live(self) -> bool:
        syncing = not self.standby and not self.synced
        return syncing or time.monotonic() - self.last_contact() < CONTACT_TIMEOUT

    def not_ready(self) -> str:
        """Why the operator is not ready; empty if it is."""
        if self.standby:
            return ""
        failing = [str(resource) for resource, seconds in self.failing().items() if seconds > FAILING_SECONDS]
        if failing:
            return f"list or watch fails: {', '.join(failing)}; see the log"
        return "" if self.synced else "the informers have not synced yet"


@asynccontextmanager
async def serving(
    health: Health,
    registry: CollectorRegistry,
    metrics: str,
    probes: str,
    *,
    access: MetricsAccess | None = None,
    tls: SSLContext | None = None,
) -> AsyncIterator[None]:
    """Serve metrics and probes inside the context; an address of "0" disables one.

    `access` decides who may read the metrics, and `tls` encrypts them.
    """

    async def show_metrics(request: web.Request) -> web.Response:
        denial = await access.denial(request.headers.get("Authorization", "")) if access else None
        if denial is not None:
            return web.Response(status=denial.code, text=denial.message)
        return web.Response(body=generate_latest(registry), content_type="text/plain", charset="utf-8")

    async def healthz(request: web.Request) -> web.Response:
        return _probe("" if health.live() else "no response from the API server for ten minutes")

    async def readyz(request: web.Request) -> web.Response:
        return _probe(health.not_ready())

    runners = [
        await _serve(metrics, {"/metrics": show_metrics}, tls),
        await _serve(probes, {"/healthz": healthz, "/readyz": readyz}),
    ]
    try:
        yield
    finally:
        for runner in runners:
            await runner.cleanup()


def _probe(failure: str) -> web.Response:
    return web.Response(status=503, text=failure) if failure else web.Response(text="ok")


async def _serve(
    address: str, routes: dict[str, Callable[[web.Request], object]], tls: SSLContext | None = None
) -> web.AppRunner:
    app = web.Application()
    app.add_routes([web.get(path, handler) for path, handler in routes.items()])  # type: ignore[arg-type]
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    if address != "0":
        host, port = host_and_port(address)
        try:
            await web.TCPSite(runner, host or None, port, ssl_context=tls).start()
        except OSError as error:
            await runner.cleanup()
            raise NotPossible(f"cannot listen on {address}: {error.strerror}; choose another address") from error
    return runner


def is_loopback(address: str) -> bool:
    """Whether only processes of this machine, or of this pod, reach the address."""
    host = "" if address == "0" else host_and_port(address)[0]
    return address == "0" or host in ("localhost", "::1") or host.startswith("127.")


def host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not port.isdigit():
        raise BadInput(f"{address}: not an address; use HOST:PORT, :PORT, or 0 to disable it")
    return host.strip("[]"), int(port)
