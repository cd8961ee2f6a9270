"""The operator's two small web servers: metrics, and health for the kubelet's probes."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

from paddlejob.errors import BadInput, NotPossible

SILENCE_LIMIT = 600.0


class Health:
    """Live while the API server answers now and then; ready once the caches are filled, or while another leads."""

    def __init__(self) -> None:
        self.standby = True
        self.synced = False
        self.last_contact: Callable[[], float] = time.monotonic

    def live(self) -> bool:
        looking = not self.standby and not self.synced
        return looking or time.monotonic() - self.last_contact() < SILENCE_LIMIT

    def ready(self) -> bool:
        return self.standby or self.synced


@asynccontextmanager
async def serving(health: Health, registry: CollectorRegistry, metrics: str, probes: str) -> AsyncIterator[None]:
    """Serve both while inside; an address of "0" is not served."""

    async def show_metrics(request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), content_type="text/plain", charset="utf-8")

    async def healthz(request: web.Request) -> web.Response:
        return _answer(health.live(), "no word from the API server for ten minutes")

    async def readyz(request: web.Request) -> web.Response:
        return _answer(health.ready(), "the first look at the cluster is not complete")

    runners = [
        await _serve(metrics, {"/metrics": show_metrics}),
        await _serve(probes, {"/healthz": healthz, "/readyz": readyz}),
    ]
    try:
        yield
    finally:
        for runner in runners:
            await runner.cleanup()


def _answer(good: bool, trouble: str) -> web.Response:
    return web.Response(text="ok") if good else web.Response(status=503, text=trouble)


async def _serve(address: str, routes: dict[str, Callable[[web.Request], object]]) -> web.AppRunner:
    app = web.Application()
    app.add_routes([web.get(path, handler) for path, handler in routes.items()])  # type: ignore[arg-type]
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    if address != "0":
        host, port = split_address(address)
        try:
            await web.TCPSite(runner, host or None, port).start()
        except OSError as error:
            await runner.cleanup()
            raise NotPossible(f"cannot listen on {address}: {error.strerror}; choose another address") from error
    return runner


def split_address(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not port.isdigit():
        raise BadInput(f"{address}: is no address; write HOST:PORT, :PORT or 0 for none")
    return host.strip("[]"), int(port)
