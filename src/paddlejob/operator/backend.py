"""The Backend over Kubernetes: worlds come from caches, actions become requests with preconditions."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

from paddlejob import contract
from paddlejob.api.types import PaddleJob, Status
from paddlejob.engine.backend import Key, Outdated, Rejected, View
from paddlejob.errors import AlreadyExists, ApiError, Conflict, Invalid, NotFound
from paddlejob.kube.client import Client
from paddlejob.kube.events import Recorder
from paddlejob.kube.resource import CONFIGMAPS, PODS, SERVICES, Resource
from paddlejob.operator import transform as digest
from paddlejob.operator.caches import Caches
from paddlejob.operator.resources import PADDLEJOBS, POD_GROUPS
from paddlejob.plan import (
    Action,
    Create,
    Delete,
    DeleteJob,
    DropFinalizer,
    Kind,
    Pod,
    RecordEvent,
    Stop,
    Wake,
    World,
)
from paddlejob.plan.rejections import BEING_DELETED, NAME_TAKEN

NOT_A_REJECTION = (401, 404, 409, 410, 429, 503, 504)
"""Answers that say nothing about the object: it may well be taken in a moment. 400 and 500 are webhooks'."""
RESOURCES: dict[Kind, Resource] = {
    Kind.POD: PODS,
    Kind.SERVICE: SERVICES,
    Kind.ENVIRONMENT: CONFIGMAPS,
    Kind.POD_GROUP: POD_GROUPS,
}


class KubeBackend:
    def __init__(self, client: Client, caches: Caches, recorder: Recorder) -> None:
        self._client = client
        self._caches = caches
        self._recorder = recorder

    async def observe(self, key: Key) -> View | None:
        job = self._caches.jobs.get(*key)
        if job is None:
            return None
        uid, caches = job.metadata.uid, self._caches
        groups = [*caches.groups.having(uid), *caches.groups.having((job.namespace, job.name))]
        world = World(
            pods=tuple(one.value for one in caches.pods.having(uid) if one.value is not None),
            environments=dict(one.value for one in caches.environments.having(uid)),
            services=dict(one.value for one in caches.services.having(uid)),
            pod_groups=tuple({one.value.name: replace(one.value, ours=one.owner == uid) for one in groups}.values()),
            gang_scheduler=not caches.groups.absent,
        )
        return View(job, world)

    async def report(self, job: PaddleJob, status: Status) -> None:
        body = {
            "apiVersion": contract.API_VERSION,
            "kind": contract.KIND,
            "metadata": {
                "name": job.name,
                "namespace": job.namespace,
                "uid": job.metadata.uid,
                "resourceVersion": job.metadata.resourceVersion,
            },
            "status": status.model_dump(mode="json", exclude_defaults=True),
        }
        try:
            self._caches.jobs.learn(await self._client.replace_status(PADDLEJOBS, body))
        except NotFound as error:
            raise Outdated from error
        except Conflict as error:
            await self._look_again(job)
            raise Outdated from error
        except Invalid as error:
            message = f"the status cannot be written, so nothing is done for the job; correct it: {error.message}"
            self._record(job, "StatusRefused", message, "Warning")
            raise

    async def _look_again(self, job: PaddleJob) -> None:
        """A watch may be silent for minutes before its connection is known to be dead."""
        with suppress(NotFound):
            self._caches.jobs.learn(await self._client.get(PADDLEJOBS, job.name, job.namespace))

    async def perform(self, job: PaddleJob, action: Action) -> None:
        match action:
            case Create():
                await self._create(job, action)
            case Delete():
                await self._delete(job, action)
            case Wake(pod, times, at):
                note = {contract.ANNOTATION_WAKE: f"{times} {at:.3f}"}
                await self._patch_pod(job, pod, {"metadata": {"annotations": note}})
            case Stop(pod):
                await self._patch_pod(job, pod, {"spec": {"activeDeadlineSeconds": 1}})
            case RecordEvent(reason, message, warning):
                self._record(job, reason, message, "Warning" if warning else "Normal")
            case DropFinalizer(name):
                await self._drop_finalizer(job, name)
            case DeleteJob():
                await self._delete_job(job)

    def _record(self, job: PaddleJob, reason: str, message: str, kind: Literal["Normal", "Warning"]) -> None:
        self._recorder.record(
            PADDLEJOBS, job.namespace, job.name, job.metadata.uid, kind=kind, reason=reason, message=message
        )

    async def _create(self, job: PaddleJob, action: Create) -> None:
        resource = RESOURCES[action.kind]
        try:
            self._caches.learn(resource, await self._client.create(resource, action.manifest))
        except AlreadyExists:
            await self._accept_existing(job, action, resource)
        except ApiError as error:
            if error.code not in NOT_A_REJECTION:
                raise Rejected(error.reason, error.message) from error
            raise

    async def _accept_existing(self, job: PaddleJob, action: Create, resource: Resource) -> None:
        """Ours and current is what was wanted; ours and on its way out is waited for; another's is never touched."""
        try:
            found = await self._client.get(resource, action.name, job.namespace)
        except NotFound:
            raise Outdated from None
        if digest.owner_of(found) != job.metadata.uid:
            raise _of_another(job, action, found)
        if (found["metadata"].get("labels") or {}).get(contract.LABEL_JOB) != job.name:
            words = "it was made for this job, but lacks its labels; delete it, and it is made anew"
            raise Rejected(NAME_TAKEN, words)
        self._caches.learn(resource, found)
        wanted = digest.attempt_of(action.manifest)
        if found["metadata"].get("deletionTimestamp") or digest.attempt_of(found) != wanted:
            raise Outdated

    async def _delete(self, job: PaddleJob, action: Delete) -> None:
        resource = RESOURCES[action.kind]
        try:
            answer = await self._client.delete(
                resource, action.name, job.namespace, uid=action.uid, grace_seconds=0 if action.force else None
            )
        except (NotFound, Conflict):
            return
        metadata = answer["metadata"] if answer.get("kind") == resource.kind else {}
        if metadata.get("finalizers") or (metadata.get("deletionTimestamp") and not action.force):
            self._caches.learn(resource, answer)
        else:
            self._caches.forget(resource, job.namespace, action.name, action.uid)

    async def _patch_pod(self, job: PaddleJob, pod: Pod, changes: dict[str, Any]) -> None:
        """The uid in the patch makes it fail on another pod of the same name."""
        changes.setdefault("metadata", {})["uid"] = pod.uid
        try:
            self._caches.learn(PODS, await self._client.patch(PODS, pod.name, job.namespace, changes))
        except (NotFound, Conflict):
            return

    async def _drop_finalizer(self, job: PaddleJob, name: str) -> None:
        left = [one for one in job.metadata.finalizers if one != name]
        changes = {"metadata": {"finalizers": left, "resourceVersion": job.metadata.resourceVersion}}
        try:
            await self._client.patch(PADDLEJOBS, job.name, job.namespace, changes)
        except NotFound:
            return
        except Conflict as error:
            raise Outdated from error

    async def _delete_job(self, job: PaddleJob) -> None:
        try:
            await self._client.delete(
                PADDLEJOBS, job.name, job.namespace, uid=job.metadata.uid, propagation="Background"
            )
        except (NotFound, Conflict):
            return
        except ApiError as error:
            raise Rejected(error.reason, error.message) from error


def _of_another(job: PaddleJob, action: Create, found: dict[str, Any]) -> Rejected:
    """Of an earlier job of the same name, it goes by itself; else somebody has to decide."""
    references = found["metadata"].get("ownerReferences") or []
    former = any(digest.is_ours(one) and one["name"] == job.name for one in references)
    words = f"a {action.kind} {action.name} is there, owned by {_owner_words(found)}"
    return Rejected(BEING_DELETED if former or found["metadata"].get("deletionTimestamp") else NAME_TAKEN, words)


def _owner_words(found: dict[str, Any]) -> str:
    references = found["metadata"].get("ownerReferences") or []
    return ", ".join(f"{one['kind']} {one['name']}" for one in references) or "nobody"
