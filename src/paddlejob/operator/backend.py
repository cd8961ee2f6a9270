"""The Backend over Kubernetes: worlds come from informers, actions become requests with preconditions."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import NoReturn

from paddlejob import contract
from paddlejob.api.reasons import Reason
from paddlejob.api.types import PaddleJob, Status
from paddlejob.engine.backend import Key, Outdated, Rejected, View
from paddlejob.errors import AlreadyExists, ApiError, Conflict, Invalid, NotFound
from paddlejob.kube.client import Client
from paddlejob.kube.events import EventRecorder, EventType
from paddlejob.kube.resource import CONFIGMAPS, PODS, SERVICES, Object, Resource
from paddlejob.objects.resources import PADDLEJOBS, POD_GROUPS, attempt_of, is_paddlejob, job_of, owner_of
from paddlejob.objects.stored_job import StoredJob
from paddlejob.objects.transform import UnreadableJob
from paddlejob.operator.agents.agents import Agents
from paddlejob.operator.domains import Domains
from paddlejob.operator.informers import Informers
from paddlejob.operator.log_reader import LogReader
from paddlejob.operator.nodes import Nodes
from paddlejob.operator.workloads import Workloads
from paddlejob.plan import (
    Action,
    Create,
    Delete,
    DeleteJob,
    DropFinalizer,
    Kind,
    OrderAgents,
    Pod,
    ReadLog,
    RecordEvent,
    Stop,
    UpdateWorkload,
    Wake,
    World,
)
from paddlejob.plan.diagnosis.rejections import BEING_DELETED
from paddlejob.plan.diagnosis.terminating import needs_node
from paddlejob.plan.ranks import nodes_to_look_up

NOT_A_REJECTION = (401, 404, 409, 410, 429, 503, 504)
"""Codes that say nothing about the object: the next attempt may succeed. Webhooks reject with 400 and 500."""
RESOURCES: dict[Kind, Resource] = {
    Kind.POD: PODS,
    Kind.SERVICE: SERVICES,
    Kind.ENVIRONMENT: CONFIGMAPS,
    Kind.POD_GROUP: POD_GROUPS,
}


class KubeBackend:
    def __init__(
        self,
        client: Client,
        informers: Informers,
        recorder: EventRecorder,
        logs: LogReader | None = None,
        agents: Agents | None = None,
    ) -> None:
        self._client = client
        self._logs = logs
        self._agents = agents or Agents()
        self._nodes = Nodes(client)
        self._domains = Domains(client)
        self._workloads = Workloads(client, informers)
        self._informers = informers
        self._recorder = recorder
        informers.on_unreadable_job(self._report_unreadable)

    def _report_unreadable(self, job: UnreadableJob) -> None:
        """Its status cannot be written, because the API server would check all of it."""
        self._recorder.record(
            PADDLEJOBS,
            job.namespace,
            job.name,
            job.uid,
            event_type="Warning",
            reason="UnreadableJob",
            message=job.message,
        )

    async def observe(self, key: Key) -> View | None:
        stored = self._informers.jobs.get(*key)
        if not isinstance(stored, StoredJob) or not stored.spec.is_ours:
            return None
        job = stored.whole()
        uid, informers = job.metadata.uid, self._informers
        owner = (job.namespace, uid)
        # A user's own pod group has no owner; it is found by its name, which is the job's.
        named = informers.pod_groups.get(job.namespace, job.name)
        groups = [*informers.pod_groups.by_index(owner), *([named] if named else [])]
        pods = tuple(one.value for one in informers.pods.by_index(owner) if one.value is not None)
        configs = [one.value for one in informers.config_maps.by_index(owner)]
        now = self._client.server_time()
        world = World(
            pods=pods,
            environments={attempt: uid for attempt, uid in configs if attempt},
            agent_configs=frozenset(name for attempt, name in configs if not attempt),
            services=dict(one.value for one in informers.services.by_index(owner)),
            pod_groups=tuple({one.value.name: replace(one.value, owned=one.owner == uid) for one in groups}.values()),
            gang_scheduler=not informers.pod_groups.absent,
            channel=self._agents.channel,
            agents=self._agents.reports(pod.uid for pod in pods),
            logs=self._logs.readings.get(uid) if self._logs else None,
            log_unread=self._logs is not None and self._logs.is_unread(job),
            queueing=await self._workloads.observe(job),
            nodes=await self._nodes.states(pod.node for pod in pods if pod.node and needs_node(pod, now)),
            domains=await self._domains.of_nodes(job, nodes_to_look_up(job, pods)),
        )
        return View(job, world)

    async def report(self, job: PaddleJob, status: Status) -> None:
        try:
            self._informers.jobs.record_write(await self._client.replace_status(PADDLEJOBS, _with_status(job, status)))
        except NotFound as error:
            raise Outdated from error
        except Conflict as error:
            await self._refresh(job)
            raise Outdated from error
        except Invalid as error:
            message = f"the job is not reconciled, because its status cannot be written; correct it: {error.message}"
            self._record(job, "StatusRejected", message, "Warning")
            raise

    async def _refresh(self, job: PaddleJob) -> None:
        """A dead watch can go unnoticed for minutes, so after a conflict the job is read directly."""
        with suppress(NotFound):
            self._informers.jobs.record_write(await self._client.get(PADDLEJOBS, job.name, job.namespace))

    def is_current(self, job: PaddleJob) -> bool:
        found = self._informers.jobs.get(job.namespace, job.name)
        if not isinstance(found, PaddleJob) or found.metadata.deletionTimestamp != job.metadata.deletionTimestamp:
            return False
        return (found.metadata.uid, found.metadata.generation) == (job.metadata.uid, job.metadata.generation)

    async def perform(self, job: PaddleJob, action: Action) -> None:
        match action:
            case Create():
                await self._create(job, action)
            case Delete():
                await self._delete(job, action)
            case Wake(pod, times, at):
                annotation = {contract.ANNOTATION_WAKE: f"{times} {at:.3f}"}
                await self._patch_pod(job, pod, {"metadata": {"annotations": annotation}})
            case Stop(pod):
                await self._patch_pod(job, pod, {"spec": {"activeDeadlineSeconds": 1}})
            case OrderAgents():
                self._agents.order(action)
            case UpdateWorkload():
                await self._workloads.update(job, action)
            case ReadLog() if self._logs:
                self._logs.read_once_more(job)
            case RecordEvent(reason, message, warning):
                self._record(job, reason, message, "Warning" if warning else "Normal")
            case DropFinalizer(name):
                await self._drop_finalizer(job, name)
            case DeleteJob():
                await self._delete_job(job)

    def _record(self, job: PaddleJob, reason: str, message: str, event_type: EventType) -> None:
        self._recorder.record(
            PADDLEJOBS, job.namespace, job.name, job.metadata.uid, event_type=event_type, reason=reason, message=message
        )

    def _resource(self, kind: Kind) -> Resource:
        """A Workload has the version of Kueue's API that the server serves."""
        return self._informers.workloads.resource if kind is Kind.WORKLOAD else RESOURCES[kind]

    async def _create(self, job: PaddleJob, action: Create) -> None:
        resource = self._resource(action.kind)
        try:
            self._informers.record_write(resource, await self._client.create(resource, action.manifest))
        except AlreadyExists:
            await self._accept_existing(job, action, resource)
        except ApiError as error:
            _reject(error)

    async def _accept_existing(self, job: PaddleJob, action: Create, resource: Resource) -> None:
        """Accept an object of this attempt, wait for an older one of ours, and never touch another owner's."""
        try:
            found = await self._client.get(resource, action.name, job.namespace)
        except NotFound:
            raise Outdated from None
        if owner_of(found) != job.metadata.uid:
            raise _name_taken(job, action, found)
        if job_of(found) != job.name:
            message = "it was created for this job but lacks its labels; delete it to have it created again"
            raise Rejected(Reason.NAME_TAKEN, message)
        self._informers.record_write(resource, found)
        if found["metadata"].get("deletionTimestamp") or attempt_of(found) != attempt_of(action.manifest):
            raise Outdated

    async def _delete(self, job: PaddleJob, action: Delete) -> None:
        resource = self._resource(action.kind)
        grace = 0 if action.force else action.grace
        try:
            response = await self._client.delete(
                resource, action.name, job.namespace, uid=action.uid, grace_seconds=grace
            )
        except (NotFound, Conflict):
            return
        except ApiError as error:
            _reject(error)
        metadata = response["metadata"] if response.get("kind") == resource.kind else {}
        # A pod that has ended, or has no node, is removed at once whatever grace period is given.
        if metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds"):
            self._informers.record_write(resource, response)
        else:
            self._informers.record_delete(resource, job.namespace, action.name, action.uid)

    async def _patch_pod(self, job: PaddleJob, pod: Pod, changes: Object) -> None:
        """The uid in the patch makes it fail on another pod of the same name."""
        changes.setdefault("metadata", {})["uid"] = pod.uid
        try:
            self._informers.record_write(PODS, await self._client.patch(PODS, pod.name, job.namespace, changes))
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


def _with_status(job: PaddleJob, status: Status) -> Object:
    """The body of a status update; its resourceVersion makes it fail if the job has changed since it was read."""
    return {
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


def _reject(error: ApiError) -> NoReturn:
    """A 500 without a webhook comes from the API server or etcd and says nothing about the object."""
    if error.code in NOT_A_REJECTION:
        raise error
    server_error = error.code == 500 and "webhook" not in error.message
    raise Rejected(Reason.API_SERVER_ERROR if server_error else error.reason, error.message) from error


def _name_taken(job: PaddleJob, action: Create, found: Object) -> Rejected:
    """An object of a previous job of the same name is garbage-collected; any other needs a person to decide."""
    references = found["metadata"].get("ownerReferences") or []
    previous = any(is_paddlejob(one) and one["name"] == job.name for one in references)
    owners = ", ".join(f"{one['kind']} {one['name']}" for one in references)
    message = f"{action.kind} {action.name} exists, {f'owned by {owners}' if owners else 'without an owner'}"
    return Rejected(
        BEING_DELETED if previous or found["metadata"].get("deletionTimestamp") else Reason.NAME_TAKEN, message
    )
