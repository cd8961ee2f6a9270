"""The part of a kubelet that serves logs, for a real API server: pods print what a test or a benchmark lets them."""

from __future__ import annotations

import json
import ssl
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from testbed.controlplane import ControlPlane
from tests.support.pod_logs import Line, log_text

Lines = Callable[[str], list[Line]]


class LogServer:
    """`lines(pod)` gives the whole log of a pod; without it, a log is what `write` put there."""

    def __init__(self, plane: ControlPlane, lines: Lines | None = None) -> None:
        self.requests = 0
        self._plane = plane
        self._written: dict[str, list[Line]] = defaultdict(list)
        self._lines = lines or (lambda pod: self._written[pod])
        self._runner: web.AppRunner | None = None
        self._port = 0

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._respond)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        pair = self._plane.authority.issue("log-server", "system:node:logs", hosts=["127.0.0.1"])
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(pair.certificate, pair.key)
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=tls).start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    def create_node(self, name: str) -> None:
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        self._plane.kubectl("create", "-f", "-", input=json.dumps(node))
        self.serve_node(name)

    def serve_node(self, name: str) -> None:
        """Have the API server ask here for the logs of pods on this node."""
        status: dict[str, Any] = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._port}},
        }
        patch = json.dumps({"status": status})
        self._plane.kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p", patch)

    def write(self, pod: str, text: str) -> None:
        self._written[pod].append((datetime.now(UTC), text))

    async def _respond(self, request: web.Request) -> web.Response:
        self.requests += 1
        return web.Response(text=log_text(self._lines(request.match_info["pod"]), request.query))
