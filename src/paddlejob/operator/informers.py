"""The operator's informers: for jobs and for the objects they own. A change to any of them is a change to its job."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

from paddlejob import contract
from paddlejob.engine.backend import Key
from paddlejob.kube.client import Client
from paddlejob.kube.informer import Informer
from paddlejob.kube.resource import CONFIGMAPS, PODS, SERVICES, Object, Resource
from paddlejob.objects import transform
from paddlejob.objects.resources import PADDLEJOBS, POD_GROUPS, WORKLOADS
from paddlejob.objects.stored_job import StoredJob
from paddlejob.objects.transform import Owned, UnreadableJob
from paddlejob.objects.workload import workload
from paddlejob.plan import Pod, PodGroup
from paddlejob.plan.workload import Workload

Job = StoredJob | UnreadableJob


def _by_owner(owned: Owned[Any]) -> tuple[tuple[str, str]]:
    """Anybody may write any uid into an owner reference, but owners are always in the namespace of what they own."""
    return ((owned.namespace, owned.owner),)


class Informers:
    def __init__(self, client: Client, namespace: str | None) -> None:
        ours = contract.LABEL_JOB
        self.jobs: Informer[Job] = Informer(client, PADDLEJOBS, transform.stored_job, namespace=namespace)
        self.pods: Informer[Owned[Pod | None]] = Informer(
            client, PODS, transform.pod, namespace=namespace, label_selector=ours, index=_by_owner
        )
        self.config_maps: Informer[Owned[tuple[int, str]]] = Informer(
            client,
            CONFIGMAPS,
            transform.config_map,
            namespace=namespace,
            label_selector=ours,
            index=_by_owner,
            metadata_only=True,
        )
        self.services: Informer[Owned[tuple[str, str]]] = Informer(
            client,
            SERVICES,
            transform.service,
            namespace=namespace,
            label_selector=ours,
            index=_by_owner,
            metadata_only=True,
        )
        self.pod_groups: Informer[Owned[PodGroup]] = Informer(
            client,
            POD_GROUPS,
            transform.pod_group,
            namespace=namespace,
            index=_by_owner,
            optional=True,
            ignore=transform.is_of_another_workload,
        )
        self.workloads: Informer[Owned[Workload]] = Informer(
            client,
            WORKLOADS,
            workload,
            namespace=namespace,
            label_selector=ours,
            index=_by_owner,
            optional=True,
            versions=contract.KUEUE_VERSIONS,
        )
        informers = (self.jobs, self.pods, self.config_maps, self.services, self.pod_groups, self.workloads)
        self._by_name: dict[str, Informer[Any]] = {str(one.resource): one for one in informers}

    def __iter__(self) -> Iterator[Informer[Any]]:
        return iter(self._by_name.values())

    @property
    def last_contact(self) -> float:
        """The time.monotonic() of the last response that any informer got."""
        return max(informer.last_contact for informer in self._by_name.values())

    @property
    def failing(self) -> dict[Resource, float]:
        """The resources whose list or watch fails, and for how many seconds."""
        now = time.monotonic()
        return {
            one.resource: now - one.failing_since for one in self._by_name.values() if one.failing_since is not None
        }

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for informer in self._by_name.values():
                tasks.create_task(informer.run())

    async def wait_for_sync(self) -> None:
        for informer in self._by_name.values():
            await informer.synced.wait()

    def record_write(self, resource: Resource, obj: Object) -> None:
        self._by_name[str(resource)].record_write(obj)

    def record_delete(self, resource: Resource, namespace: str, name: str, uid: str) -> None:
        self._by_name[str(resource)].record_delete(namespace, name, uid)

    def on_unreadable_job(self, handler: Callable[[UnreadableJob], None]) -> None:
        """Call `handler` with each job that cannot be read, once per version of it."""

        def job_changed(old: object, new: Job | None) -> None:
            if isinstance(new, UnreadableJob):
                handler(new)

        self.jobs.add_event_handler(job_changed)

    def enqueue_changes(self, enqueue: Callable[[Key], None]) -> None:
        """Call `enqueue` with the key of each job that changes, or whose objects change."""

        def job_changed(old: Job | None, new: Job | None) -> None:
            job = new or old
            if job is not None:
                enqueue((job.namespace, job.name))

        def owned_changed(old: Owned[Any] | None, new: Owned[Any] | None) -> None:
            owned = new or old
            if owned is not None and owned.job:
                enqueue((owned.namespace, owned.job))

        def pod_group_changed(old: Owned[PodGroup] | None, new: Owned[PodGroup] | None) -> None:
            owned = new or old
            if owned is not None:
                enqueue((owned.namespace, owned.job or owned.value.name))

        self.jobs.add_event_handler(job_changed)
        for informer in (self.pods, self.config_maps, self.services, self.workloads):
            informer.add_event_handler(owned_changed)
        self.pod_groups.add_event_handler(pod_group_changed)
