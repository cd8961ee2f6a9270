"""The Backend over processes on this machine: reads and writes the objects of jobs; the kubelet ends pods."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable

from paddlejob import contract
from paddlejob.api.types import PaddleJob, Status
from paddlejob.engine.backend import Key, Outdated, View
from paddlejob.local.job import JobRegistry, LocalJob
from paddlejob.local.kubelet import Kubelet
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
)


class LocalBackend:
    def __init__(self, jobs: JobRegistry, kubelet: Kubelet, clock: Callable[[], float]) -> None:
        self._jobs = jobs
        self._kubelet = kubelet
        self.keep_finished = False
        """A command waits for the result: finished jobs stay, however short their time to live is."""
        self._clock = clock

    async def observe(self, key: Key) -> View | None:
        local = self._jobs.get(key)
        job = local.folder.job() if local else None
        if local is None or job is None:
            return None
        return View(_with_port(job, local), _world(job, local))

    def is_current(self, job: PaddleJob) -> bool:
        document = self._local(job).folder.document()
        return document is not None and document["metadata"]["generation"] == job.metadata.generation

    async def report(self, job: PaddleJob, status: Status) -> None:
        folder = self._local(job).folder
        if not self.is_current(job):
            raise Outdated
        await _retry_while_disk_is_full(lambda: folder.write_status(status))

    async def perform(self, job: PaddleJob, action: Action) -> None:
        local = self._local(job)
        match action:
            case Create(Kind.POD):
                self._create_pod(local, action.manifest)
            case Create(Kind.ENVIRONMENT, name):
                local.publish(_attempt(name), name, action.manifest["data"])
            case Create(Kind.SERVICE, name):
                local.services.add(name)
            case Delete(Kind.POD, name, uid, _, force, grace):
                self._kubelet.delete(local, name, uid, 0.0 if force else grace)
            case Delete(Kind.ENVIRONMENT, name):
                local.unpublish(_attempt(name))
            case Delete(Kind.SERVICE, name):
                local.services.discard(name)
            case Wake(pod, times_, at):
                if pod.name in local.pods:
                    local.pods[pod.name].change(woken=times_, woken_at=at)
            case Stop(pod):
                self._kubelet.stop(local, pod.name, pod.uid)
            case RecordEvent():
                self._record_event(local, action)
            case DropFinalizer(name):
                remove_finalizer(local.folder, name)
            case DeleteJob():
                if not self.keep_finished:
                    mark_for_deletion(local.folder, self._clock())

    def _local(self, job: PaddleJob) -> LocalJob:
        return self._jobs[(job.namespace, job.name)]

    def _create_pod(self, local: LocalJob, manifest: Manifest) -> None:
        """The scheduler binds it later. Without a port its environment would be wrong: look at the job again."""
        if local.allocation.port is None:
            raise Outdated
        uid = str(uuid.uuid4())
        local.add(new_pod(uid, manifest, local.folder.path / "pods" / uid, self._clock()))

    def _record_event(self, local: LocalJob, action: RecordEvent) -> None:
        try:
            local.folder.add_event(self._clock(), action.reason, action.message, warning=action.warning)
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise


def _with_port(job: PaddleJob, local: LocalJob) -> PaddleJob:
    """The job as the planner sees it, with the port that is reserved for it; the stored job does not change."""
    if local.allocation.port is None:
        return job
    annotations = {**job.metadata.annotations, contract.ANNOTATION_PORT: str(local.allocation.port)}
    return job.model_copy(update={"metadata": job.metadata.model_copy(update={"annotations": annotations})})


def _world(job: PaddleJob, local: LocalJob) -> World:
    """Pod groups are always admitted: the scheduler binds a job as a whole or not at all."""
    return World(
        pods=tuple(pod.seen for pod in local.pods.values()),
        environments=dict.fromkeys(local.environments, ""),
        services=dict.fromkeys(local.services, ""),
        pod_groups=(PodGroup(job.name, "", owned=False, phase="Running"),),
        stop_when_finished=True,
        one_machine=True,
        logs=local.reading,
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
