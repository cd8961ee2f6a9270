"""A fake kubelet against a real API server: it writes pod statuses as a kubelet would, and runs nothing."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

from paddlejob.errors import ApiError, Conflict, NotFound
from paddlejob.kube.client import Client
from paddlejob.kube.resource import CONFIGMAPS, PODS

Object = dict[str, Any]
POLL = 0.1


class Kubelet:
    """Gives pods addresses, starts them once their environment exists, and removes them when they are deleted.

    Pods named in `hold` keep the status they have.
    """

    def __init__(self, client: Client, namespace: str) -> None:
        self.hold: set[str] = set()
        self.capacity: int | None = None
        """How many pods fit; None: all of them."""
        self.frozen = False
        self._syncing = asyncio.Lock()
        self._client = client
        self._namespace = namespace
        self._addresses = itertools.count(1)
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Kubelet:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def freeze(self) -> None:
        """Write no pod status from now on; returns when the writes in progress are done."""
        async with self._syncing:
            self.frozen = True

    async def pods(self) -> list[Object]:
        return await self._client.list(PODS, self._namespace)

    async def pod(self, name: str) -> Object:
        return await self._client.get(PODS, name, self._namespace)

    async def exit(self, name: str, code: int, *, reason: str = "", message: str = "") -> None:
        """End the training container."""
        terminated = {"exitCode": code, "reason": reason or ("Completed" if code == 0 else "Error"), "message": message}
        phase = "Succeeded" if code == 0 else "Failed"
        await self.write(name, {"phase": phase, **_state(await self.pod(name), {"terminated": terminated})})

    async def fail(self, name: str, reason: str, message: str, condition: str = "") -> None:
        """Fail the whole pod, as an eviction does."""
        status: Object = {"phase": "Failed", "reason": reason, "message": message}
        if condition:
            status["conditions"] = [
                {"type": "DisruptionTarget", "status": "True", "reason": condition, "message": message}
            ]
        await self.write(name, status)

    async def wait_with(self, name: str, reason: str, message: str) -> None:
        """Report that the training container cannot start."""
        pod = await self.pod(name)
        self.hold.add(name)
        await self.write(name, _state(pod, {"waiting": {"reason": reason, "message": message}}))

    async def unschedulable(self, name: str, message: str) -> None:
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        self.hold.add(name)
        await self.write(name, {"conditions": [condition]})

    async def write(self, name: str, status: Object, uid: str = "") -> None:
        """With a uid it fails on another pod of the same name."""
        changes = {"status": status, **({"metadata": {"uid": uid}} if uid else {})}
        await self._client.patch(PODS, name, self._namespace, changes, subresource="status")

    async def _run(self) -> None:
        while True:
            if not self.frozen:
                try:
                    async with self._syncing:
                        await self._sync()
                except (ApiError, OSError):
                    pass
                except Exception as error:
                    if type(error).__name__ != "Unreachable":
                        raise
            await asyncio.sleep(POLL)

    async def _sync(self) -> None:
        environments = {one["metadata"]["name"] for one in await self._client.list(CONFIGMAPS, self._namespace)}
        for pod in await self.pods():
            try:
                await self._sync_pod(pod, environments)
            except (NotFound, Conflict):
                continue

    async def _has_room(self) -> bool:
        return self.capacity is None or sum(map(_holds, await self.pods())) < self.capacity

    async def _sync_pod(self, pod: Object, environments: set[str]) -> None:
        name, uid, status = pod["metadata"]["name"], pod["metadata"]["uid"], pod.get("status") or {}
        if pod["metadata"].get("deletionTimestamp"):
            await self._client.delete(PODS, name, self._namespace, uid=uid, grace_seconds=0)
            return
        if name in self.hold or status.get("phase") in ("Running", "Succeeded", "Failed"):
            if pod["spec"].get("activeDeadlineSeconds") == 1 and status.get("phase") == "Running":
                await self.fail(name, "DeadlineExceeded", "Pod was active longer than specified deadline")
            return
        wanted = pod["spec"]["containers"][0]["envFrom"][0]["configMapRef"]["name"]
        if wanted in environments:
            await self.write(name, {"phase": "Running", **self._address(status), **_state(pod, {"running": {}})}, uid)
        elif not status.get("podIP") and not await self._has_room():
            if not status.get("conditions"):
                condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
                await self.write(name, {"conditions": [condition]}, uid)
        elif not status.get("podIP"):
            message = f'configmap "{wanted}" not found'
            waiting = {"waiting": {"reason": "CreateContainerConfigError", "message": message}}
            await self.write(name, {"phase": "Pending", **self._address(status), **_state(pod, waiting)}, uid)

    def _address(self, status: Object) -> Object:
        """A pod that joins a running attempt starts as soon as it has an address."""
        if status.get("podIP"):
            return {}
        number = next(self._addresses)
        address = f"10.9.{number // 250}.{number % 250 + 1}"
        return {"podIP": address, "podIPs": [{"ip": address}]}


def _holds(pod: Object) -> bool:
    status = pod.get("status") or {}
    return bool(status.get("podIP")) and status.get("phase") not in ("Succeeded", "Failed")


def _state(pod: Object, state: Object) -> Object:
    """A status with all containers of the pod in one state."""
    return {
        "containerStatuses": [
            {
                "name": one["name"],
                "image": one["image"],
                "imageID": "",
                "ready": "running" in state,
                "restartCount": 0,
                "state": state,
            }
            for one in pod["spec"]["containers"]
        ]
    }
