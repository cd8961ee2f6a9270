"""A stage on a real API server, with a real operator and a fake kubelet."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any

from paddlejob.errors import NotFound
from paddlejob.kube.client import Client
from paddlejob.kube.resource import CONFIGMAPS, PODS
from paddlejob.objects.resources import PADDLEJOBS
from tests.support import expecting
from tests.support.builders import document
from tests.support.kubelet import Kubelet

Object = dict[str, Any]


class OperatorStage:
    def __init__(self, client: Client, kubelet: Kubelet, namespace: str, name: str = "story") -> None:
        self.client = client
        self.kubelet = kubelet
        self.namespace = namespace
        self.name = name

    async def submit(self, **options: Any) -> None:
        made = document(self.name, **options)
        made["metadata"]["namespace"] = self.namespace
        await self.client.create(PADDLEJOBS, made)

    async def job(self) -> Object:
        return await self.client.get(PADDLEJOBS, self.name, self.namespace)

    async def status(self) -> Object:
        status: Object = (await self.job()).get("status") or {}
        return status

    async def until(self, **expected: Any) -> Object:
        return await expecting.until(self.status, expected)

    async def pods(self) -> dict[str, str]:
        found = await self.client.list(PODS, self.namespace)
        return {
            one["metadata"]["name"]: one["metadata"]["uid"]
            for one in found
            if one["metadata"]["name"].startswith(f"{self.name}-") and not one["metadata"].get("deletionTimestamp")
        }

    async def exit(self, pod: str, code: int, message: str = "") -> None:
        await self.kubelet.exit(pod, code, message=message)

    async def environment(self, pod: str) -> dict[str, str]:
        """The environment that a kubelet would compute."""
        found = await self.client.get(PODS, pod, self.namespace)
        container = found["spec"]["containers"][0]
        config = await self.client.get(CONFIGMAPS, container["envFrom"][0]["configMapRef"]["name"], self.namespace)
        seen: dict[str, str] = dict(config["data"])
        for one in container["env"]:
            source = one.get("valueFrom") or {}
            if "configMapKeyRef" in source:
                assert source["configMapKeyRef"]["name"] == config["metadata"]["name"]
                value = config["data"][source["configMapKeyRef"]["key"]]
            else:
                value = found["status"]["podIP"] if source else one.get("value", "")
            seen[one["name"]] = re.sub(r"\$\((\w+)\)", lambda name: seen[name[1]], value)
        return seen

    async def room(self, pods: int) -> None:
        self.kubelet.capacity = pods

    async def change(self, **fields: Any) -> None:
        workers = fields.pop("workers", None)
        if workers is not None:
            fields["worker"] = {"replicas": workers}
        await self.client.patch(PADDLEJOBS, self.name, self.namespace, {"spec": fields})

    async def until_gone(self, *pods: str) -> None:
        ends = time.monotonic() + 60
        while left := [pod for pod in pods if await self._exists(pod)]:
            assert time.monotonic() < ends, f"still there: {left}"
            await asyncio.sleep(0.1)

    async def _exists(self, pod: str) -> bool:
        try:
            await self.client.get(PODS, pod, self.namespace)
        except NotFound:
            return False
        return True
