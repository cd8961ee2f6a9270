"""What the operator watches: jobs, and what they own. A change to any of it is a change to its job."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from paddlejob import contract
from paddlejob.api.types import PaddleJob
from paddlejob.engine.backend import Key
from paddlejob.kube.cache import Cache
from paddlejob.kube.client import Client
from paddlejob.kube.resource import CONFIGMAPS, PODS, SERVICES, Resource
from paddlejob.operator import transform as digest
from paddlejob.operator.resources import PADDLEJOBS, POD_GROUPS
from paddlejob.operator.transform import Owned
from paddlejob.plan import Pod, PodGroup


def _by_owner(owned: Owned[Any]) -> tuple[str]:
    return (owned.owner,)


def _by_owner_and_name(owned: Owned[PodGroup]) -> tuple[str, tuple[str, str]]:
    """A group of the user's own has no owner; it is found by its name, which is the job's."""
    return (owned.owner, (owned.namespace, owned.value.name))


class Caches:
    def __init__(self, client: Client, namespace: str | None) -> None:
        ours = contract.LABEL_JOB
        self.jobs: Cache[PaddleJob | None] = Cache(client, PADDLEJOBS, digest.job, namespace=namespace)
        self.pods: Cache[Owned[Pod | None]] = Cache(
            client, PODS, digest.pod, namespace=namespace, label_selector=ours, index=_by_owner
        )
        self.environments: Cache[Owned[tuple[int, str]]] = Cache(
            client, CONFIGMAPS, digest.environment, namespace=namespace, label_selector=ours, index=_by_owner
        )
        self.services: Cache[Owned[tuple[str, str]]] = Cache(
            client, SERVICES, digest.service, namespace=namespace, label_selector=ours, index=_by_owner
        )
        self.groups: Cache[Owned[PodGroup]] = Cache(
            client, POD_GROUPS, digest.pod_group, namespace=namespace, index=_by_owner_and_name
        )
        self._by_resource: dict[Resource, Cache[Any]] = {
            cache.resource: cache for cache in (self.jobs, self.pods, self.environments, self.services, self.groups)
        }

    @property
    def all(self) -> tuple[Cache[Any], ...]:
        return tuple(self._by_resource.values())

    async def run(self) -> None:
        async with asyncio.TaskGroup() as watches:
            for cache in self.all:
                watches.create_task(cache.run())

    async def synced(self) -> None:
        for cache in self.all:
            await cache.synced.wait()

    def learn(self, resource: Resource, obj: dict[str, Any]) -> None:
        self._by_resource[resource].learn(obj)

    def forget(self, resource: Resource, namespace: str, name: str, uid: str) -> None:
        self._by_resource[resource].forget(namespace, name, uid)

    def on_change(self, changed: Callable[[Key], None]) -> None:
        """Call `changed` with the key of each job that something happened to."""

        def job_changed(old: PaddleJob | None, new: PaddleJob | None) -> None:
            job = new or old
            if job is not None:
                changed((job.namespace, job.name))

        def owned_changed(old: Owned[Any] | None, new: Owned[Any] | None) -> None:
            owned = new or old
            if owned is not None and owned.job:
                changed((owned.namespace, owned.job))

        def group_changed(old: Owned[PodGroup] | None, new: Owned[PodGroup] | None) -> None:
            owned = new or old
            if owned is not None:
                changed((owned.namespace, owned.job or owned.value.name))

        self.jobs.on_change(job_changed)
        for cache in (self.pods, self.environments, self.services):
            cache.on_change(owned_changed)
        self.groups.on_change(group_changed)
