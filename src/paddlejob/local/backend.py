"""The Backend over processes on this machine: reads and writes the objects of jobs; the kubelet ends pods."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable
from dataclasses import replace

from paddlejob import contract
from paddlejob.api.types import PaddleJob, Status
from paddlejob.engine.backend import Key, Outdated, View
from paddlejob.local.kubelet import Kubelet
from paddlejob.local.objects import JobObjects
from paddlejob.local.pod import Manifest, new_pod
from paddlejob.local.state.changes import mark_for_deletion, remove_finalizer
from paddlejob.local.state.files import DISK_FULL
from paddlejob.plan import (
    Action,
    Create,
    Delete,
    DeleteJob,
    DropFinalizer,
    Kind,
    PodGroup,
    RecordEvent,
    Stop,
    Wake,
    World,
    times,
)
from paddlejob.plan.world import LogReading


class LocalBackend:
    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.kubelets: dict[Key, Kubelet] = {}
        self.readings: dict[Key, LogReading] = {}
        """What the logs of each job tell."""
        self.keep_finished = False
        """A command waits for the result: finished jobs stay, however short their time to live is."""
        self._clock = clock

    async def observe(self, key: Key) -> View | None:
        kubelet = self.kubelets.get(key)
        job = kubelet.objects.folder.job() if kubelet else None
        if kubelet is None or job is None:
            return None
        world = _world(job, kubelet.objects)
        return View(_with_port(job, kubelet.objects), replace(world, logs=self.readings.get(key)))

    def is_current(self, job: PaddleJob) -> bool:
        document = self._kubelet(job).objects.folder.document()
        return document is not None and document["metadata"]["generation"] == job.metadata.generation

    async def report(self, job: PaddleJob, status: Status) -> None:
        folder = self._kubelet(job).objects.folder
        if not self.is_current(job):
            raise Outdated
        await _retry_while_disk_is_full(lambda: folder.write_status(status))

    async def perform(self, job: PaddleJob, action: Action) -> None:
        kubelet = self._kubelet(job)
        objects = kubelet.objects
        match action:
            case Create(Kind.POD):
                self._create_pod(objects, action.manifest)
            case Create(Kind.ENVIRONMENT, name):
                objects.publish(_attempt(name), name, action.manifest["data"])
            case Create(Kind.SERVICE, name):
                objects.services.add(name)
            case Delete(Kind.POD, name, uid, _, force, grace):
                kubelet.delete(name, uid, 0.0 if force else grace)
            case Delete(Kind.ENVIRONMENT, name):
                objects.unpublish(_attempt(name))
            case Delete(Kind.SERVICE, name):
                objects.services.discard(name)
            case Wake(pod, times_, at):
                if pod.name in objects.pods:
                    objects.pods[pod.name].change(woken=times_, woken_at=at)
            case Stop(pod):
                kubelet.stop(pod.name, pod.uid)
            case RecordEvent():
                self._record_event(objects, action)
            case DropFinalizer(name):
                remove_finalizer(objects.folder, name)
            case DeleteJob():
                if not self.keep_finished:
                    mark_for_deletion(objects.folder, self._clock())

    def _kubelet(self, job: PaddleJob) -> Kubelet:
        return self.kubelets[(job.namespace, job.name)]

    def _create_pod(self, objects: JobObjects, manifest: Manifest) -> None:
        """The scheduler binds it later. Without a port its environment would be wrong: look at the job again."""
        if objects.allocation.port is None:
            raise Outdated
        uid = str(uuid.uuid4())
        objects.add(new_pod(objects.key, uid, manifest, objects.folder.path / "pods" / uid, self._clock()))

    def _record_event(self, objects: JobObjects, action: RecordEvent) -> None:
        event = {"time": times.format(self._clock()), "reason": action.reason, "message": action.message}
        try:
            objects.folder.add_event(event | ({"warning": True} if action.warning else {}))
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise


def _with_port(job: PaddleJob, objects: JobObjects) -> PaddleJob:
    """The job as the planner sees it, with the port that is reserved for it; the stored job does not change."""
    if objects.allocation.port is None:
        return job
    annotations = {**job.metadata.annotations, contract.ANNOTATION_PORT: str(objects.allocation.port)}
    return job.model_copy(update={"metadata": job.metadata.model_copy(update={"annotations": annotations})})


def _world(job: PaddleJob, objects: JobObjects) -> World:
    """Pod groups are always admitted: the scheduler binds a job as a whole or not at all."""
    return World(
        pods=tuple(pod.seen for pod in objects.pods.values()),
        environments=dict.fromkeys(objects.environments, ""),
        services=dict.fromkeys(objects.services, ""),
        pod_groups=(PodGroup(job.name, "", owned=False, phase="Running"),),
        stop_when_finished=True,
        one_machine=True,
    )


def _attempt(name: str) -> int:
    return int(name.rsplit("-", 1)[-1])


async def _retry_while_disk_is_full(write: Callable[[], None], tries: int = 5) -> None:
    for left in range(tries, 0, -1):
        try:
            write()
            return
        except OSError as error:
            if error.errno not in DISK_FULL or left == 1:
                raise
        await asyncio.sleep(0.2)
