"""Agents that speak the protocol with the token of a pod, and whose program is a few fields."""

from __future__ import annotations

import asyncio
import json
import ssl
from types import TracebackType
from typing import Any, Self

import aiohttp

from paddlejob import contract
from testbed.controlplane import ControlPlane

Object = dict[str, Any]


def token_of(plane: ControlPlane, namespace: str, pod: Object, audience: str = contract.AGENT_AUDIENCE) -> str:
    """As a kubelet requests it for a projected volume."""
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    bound = ("--bound-object-kind=Pod", f"--bound-object-name={name}", f"--bound-object-uid={uid}")
    done = plane.kubectl("create", "token", "default", "-n", namespace, f"--audience={audience}", *bound)
    return done.stdout.strip()


def trusting(certificate: str) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=certificate)


class StubAgent:
    """`state` and `attempt` are what it reports; orders are obeyed at once and kept in `orders`."""

    def __init__(self, url: str, token: str, certificate: str, attempt: int = 1) -> None:
        self.attempt = attempt
        self.state = "running"
        self.status: int | None = None
        self.orders: list[Object] = []
        self.codes: list[int] = []
        self._url, self._token, self._tls = url, token, trusting(certificate)
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def fail(self, status: int = 1) -> None:
        self.state, self.status = "exited", status
        self._changed.set()

    @property
    def report(self) -> Object:
        return {"version": 1, "attempt": self.attempt, "state": self.state, "exitStatus": self.status, "output": "oops"}

    async def post(self, report: Object | None = None, token: str = "") -> tuple[int, str]:
        """One request. Returns the code and the text of the response."""
        headers = {"Authorization": f"Bearer {token or self._token}"}
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                f"{self._url}/v1/agent", ssl=self._tls, headers=headers, data=json.dumps(report or self.report)
            ) as response,
        ):
            return response.status, await response.text()

    async def _run(self) -> None:
        while True:
            self._changed.clear()
            asking = asyncio.create_task(self.post())
            changing = asyncio.create_task(self._changed.wait())
            await asyncio.wait({asking, changing}, return_when=asyncio.FIRST_COMPLETED)
            changing.cancel()
            if not asking.done():
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)
                continue
            await self._obey(asking)

    async def _obey(self, asking: asyncio.Task[tuple[int, str]]) -> None:
        try:
            code, text = asking.result()
        except aiohttp.ClientError:
            code, text = 0, ""
        self.codes.append(code)
        if code != 200:
            await asyncio.sleep(0.2)
            return
        order = json.loads(text)
        if order["order"] == "none":
            return
        self.orders.append(order)
        match order["order"]:
            case "stop":
                self.state, self.status = "stopped", 143
            case "start":
                self.state, self.status, self.attempt = "running", None, order["attempt"]
