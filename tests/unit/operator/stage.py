"""The operator's backend on a scripted API server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from paddlejob.api.types import PaddleJob, Role
from paddlejob.engine.backend import View
from paddlejob.kube.client import Client
from paddlejob.kube.events import EventRecorder
from paddlejob.operator.backend import KubeBackend
from paddlejob.operator.informers import Informers
from paddlejob.plan import Pod
from paddlejob.plan.manifests.pod import pod_manifest
from tests.support.builders import document, job
from tests.support.scripted_cluster import JOB, Object, ScriptedCluster, Serve

KEY = ("default", "mnist")
POD = "default/pods/mnist-worker-0"
UID = "uid-of-mnist"


def stored_job(**options: Any) -> tuple[str, Object]:
    made = document(**options)
    made["metadata"] |= {"uid": UID, "generation": 1}
    return JOB, made


def stored_pod(attempt: int = 1, **metadata: Any) -> tuple[str, Object]:
    made = pod_manifest(job(), Role.WORKER, 0, attempt, "build")
    made["metadata"] |= metadata
    made["spec"]["nodeName"] = "node-1"
    return POD, made | {"status": {"phase": "Running"}}


class Stage:
    def __init__(self, api: ScriptedCluster, client: Client) -> None:
        self.api = api
        self.client = client
        self.informers = Informers(client, None)
        self.recorder = EventRecorder(client, "paddlejob")
        self.backend = KubeBackend(client, self.informers, self.recorder)

    async def view(self) -> View:
        view = await self.backend.observe(KEY)
        assert view is not None
        return view

    async def job(self) -> PaddleJob:
        return (await self.view()).job

    async def pods(self) -> tuple[Pod, ...]:
        return (await self.view()).world.pods

    async def perform(self, action: Any) -> None:
        await self.backend.perform(await self.job(), action)

    async def events(self) -> list[tuple[str, str, str]]:
        await self.recorder.flush()
        bodies = [one.body for one in self.api.written("POST", "events")]
        return [(one["type"], one["reason"], one["message"]) for one in bodies]


@contextlib.asynccontextmanager
async def staged(serve: Serve, *objects: tuple[str, Object], kueue: str = "") -> AsyncIterator[Stage]:
    """`kueue`: the versions of its API that are served."""
    api = ScriptedCluster(*objects)
    api.kueue = set(kueue.split())
    async with Client(await serve(api.respond)) as client:
        stage = Stage(api, client)
        task = asyncio.create_task(stage.informers.run())
        try:
            async with asyncio.timeout(30):
                await stage.informers.wait_for_sync()
            yield stage
        finally:
            task.cancel()
            await asyncio.wait([task])
