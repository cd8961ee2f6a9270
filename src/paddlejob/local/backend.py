"""The Backend over processes: jobs come from the store, pods from a kubelet for each job."""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import Callable

from paddlejob import contract
from paddlejob.api.types import PaddleJob, Status
from paddlejob.engine.backend import Key, Outdated, View
from paddlejob.local.changes import mark_for_deletion
from paddlejob.local.kubelet import Kubelet
from paddlejob.local.store import at_rest
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

FULL = (errno.ENOSPC, errno.EDQUOT)


class LocalBackend:
    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.kubelets: dict[Key, Kubelet] = {}
        self.keeps_ended = False
        """Somebody looks on and wants to know how the job ended, however short its time to live is."""
        self._clock = clock

    async def observe(self, key: Key) -> View | None:
        kubelet = self.kubelets.get(key)
        job = kubelet.folder.job() if kubelet else None
        if kubelet is None or job is None:
            return None
        if not at_rest(job):
            job = _at_its_ports(job, kubelet)
        kubelet.place(job)
        return View(job, _world(job, kubelet))

    async def report(self, job: PaddleJob, status: Status) -> None:
        folder = self._kubelet(job).folder
        document = folder.document()
        if document is None or document["metadata"]["generation"] != job.metadata.generation:
            raise Outdated
        await _with_patience(lambda: folder.write_status(status))

    async def perform(self, job: PaddleJob, action: Action) -> None:
        kubelet = self._kubelet(job)
        match action:
            case Create(Kind.POD, _, manifest):
                kubelet.create(job, manifest)
            case Create(Kind.ENVIRONMENT, name, manifest):
                kubelet.publish(name, _attempt(name), manifest["data"])
            case Create(Kind.SERVICE, name):
                kubelet.services.add(name)
            case Delete(Kind.POD, name, uid, _, force):
                kubelet.delete(name, uid, force)
            case Delete(Kind.ENVIRONMENT, name):
                kubelet.environments.pop(_attempt(name), None)
            case Delete(Kind.SERVICE, name):
                kubelet.services.discard(name)
            case Wake(pod, times_, at):
                if pod.name in kubelet.pods:
                    kubelet.pods[pod.name].change(woken=times_, woken_at=at)
            case Stop(pod):
                kubelet.stop(pod.name, pod.uid)
            case RecordEvent():
                self._announce(kubelet, action)
            case DropFinalizer(name):
                _drop_finalizer(kubelet, name)
            case DeleteJob():
                if not self.keeps_ended:
                    mark_for_deletion(kubelet.folder, self._clock())

    def _kubelet(self, job: PaddleJob) -> Kubelet:
        return self.kubelets[(job.namespace, job.name)]

    def _announce(self, kubelet: Kubelet, said: RecordEvent) -> None:
        event = {"time": times.format(self._clock()), "reason": said.reason, "message": said.message}
        try:
            kubelet.folder.add_event(event | ({"warning": True} if said.warning else {}))
        except OSError as error:
            if error.errno not in FULL:
                raise


def _at_its_ports(job: PaddleJob, kubelet: Kubelet) -> PaddleJob:
    """The planner is told where pods listen here; what the user wrote down stays as it is."""
    annotations = {**job.metadata.annotations, contract.ANNOTATION_PORT: str(kubelet.share.first_port)}
    return job.model_copy(update={"metadata": job.metadata.model_copy(update={"annotations": annotations})})


def _world(job: PaddleJob, kubelet: Kubelet) -> World:
    """Pod groups are always admitted: a job is placed here as a whole or not at all."""
    return World(
        pods=tuple(pod.seen for pod in kubelet.pods.values()),
        environments=dict.fromkeys(kubelet.environments, ""),
        services=dict.fromkeys(kubelet.services, ""),
        pod_groups=(PodGroup(job.name, "", ours=False, phase="Running"),),
    )


def _attempt(name: str) -> int:
    return int(name.rsplit("-", 1)[-1])


def _drop_finalizer(kubelet: Kubelet, name: str) -> None:
    with kubelet.folder.changing():
        document = kubelet.folder.document()
        if document:
            metadata = document["metadata"]
            left = [one for one in metadata.get("finalizers") or [] if one != name]
            kubelet.folder.write_document({**document, "metadata": {**metadata, "finalizers": left}})


async def _with_patience(write: Callable[[], None], tries: int = 5) -> None:
    """A full disk may have room again in a moment."""
    for left in range(tries, 0, -1):
        try:
            write()
            return
        except OSError as error:
            if error.errno not in FULL or left == 1:
                raise
        await asyncio.sleep(0.2)
