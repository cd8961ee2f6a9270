"""A cluster as plain data: enough of an API server and a kubelet to simulate a job's whole life in microseconds.

It is a Backend like the real ones, so stories and laws run on it through the real loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from paddlejob import contract
from paddlejob.api.types import PaddleJob, Role, Status
from paddlejob.engine.backend import Key, Outdated, Rejected, View
from paddlejob.engine.reconcile import Reconciler
from paddlejob.plan import (
    Action,
    Create,
    Delete,
    DeleteJob,
    DropFinalizer,
    Kind,
    Pod,
    PodGroup,
    PodPhase,
    ReadLog,
    RecordEvent,
    Stop,
    Wake,
    World,
)
from paddlejob.plan.manifests import network
from paddlejob.plan.ranks import nodes_to_look_up
from paddlejob.plan.world import LogReading
from tests.support.builders import NOON, job

UNMOUNTING = 2.0
"""Seconds that a kubelet takes to unmount the volumes of a pod whose containers have ended."""


class Crash(Exception):
    """The engine is killed here."""


class Model:
    def __init__(self, job: PaddleJob, now: float = NOON) -> None:
        self.job: PaddleJob | None = job
        self.now = now
        self.pods: dict[str, Pod] = {}
        self.manifests: dict[str, dict[str, Any]] = {}
        self.environments: dict[int, dict[str, str]] = {}
        self.agent_configs: set[str] = set()
        self.services: set[str] = set()
        self.groups: dict[str, PodGroup] = {}
        self.events: list[RecordEvent] = []
        self.done: list[Action] = []
        self.graces: dict[str, int | None] = {}
        """The grace period with which each pod was last deleted; None for its own."""
        self.rejects: dict[str, Rejected] = {}
        self.gang_scheduler = True
        self.logs: LogReading | None = None
        self.unread_until = now
        """When it is given up to read what worker 0 has printed since its log was last read."""
        self.read_log: Callable[[], LogReading | None] | None = None
        """Reads it when the planner asks for that; None: it cannot be read."""
        self.crash_after: int | None = None
        self.crashes = 0
        self.kubelet_runs = True
        self.capacity: int | None = None
        """How many pods fit on the nodes; None: all of them."""
        self.nodes: dict[str, str] = {}
        """The nodes on which pods are placed, by the pod's name; by default all on the same."""
        self.domains: dict[str, str] = {}
        """The domains of nodes in the topology of the job."""
        self.removed_per_tick: int | None = None
        """How many of the pods that are being deleted the kubelets remove at a time; None: all of them."""
        self.unmounts: dict[str, float] = {}
        """Pods that were removed before their kubelet had unmounted their volumes, by uid, and when it has."""
        self._uids = 0
        self._loop = Reconciler(self, clock=lambda: self.now)

    @property
    def key(self) -> Key:
        return ("default", "mnist")

    @property
    def status(self) -> Status:
        assert self.job is not None
        return self.job.status

    # The backend

    async def observe(self, key: Key) -> View | None:
        if self.job is None:
            return None
        return View(self.job, self.world())

    def world(self) -> World:
        return World(
            pods=tuple(self.pods.values()),
            environments=dict.fromkeys(self.environments, ""),
            services=dict.fromkeys(self.services, ""),
            pod_groups=tuple(self.groups.values()),
            agent_configs=frozenset(self.agent_configs),
            gang_scheduler=self.gang_scheduler,
            logs=self.logs,
            log_unread=self.now < self.unread_until,
            domains=self._looked_up(),
        )

    def _looked_up(self) -> dict[str, str]:
        assert self.job is not None
        nodes = nodes_to_look_up(self.job, self.pods.values())
        return {node: self.domains[node] for node in nodes if node in self.domains}

    async def report(self, job: PaddleJob, status: Status) -> None:
        self._count_down()
        if self.job is None or job.status != self.job.status:
            raise Outdated
        self.job = self.job.model_copy(update={"status": status})

    def is_current(self, job: PaddleJob) -> bool:
        return self.job is not None and self.job.metadata == job.metadata

    async def perform(self, job: PaddleJob, action: Action) -> None:
        self._count_down()
        self.done.append(action)
        match action:
            case Create(kind, name):
                self._create(kind, name, action.manifest)
            case Delete(Kind.POD, name, uid, _, force, grace):
                self._delete_pod(name, uid, force)
                self.graces[name] = grace
            case Delete(Kind.ENVIRONMENT, name):
                self.environments.pop(int(name.rsplit("-", 1)[-1]), None)
            case Delete(Kind.SERVICE, name):
                self.services.discard(name)
            case Delete(Kind.POD_GROUP, name):
                self.groups.pop(name, None)
            case Wake(pod, times, at):
                self.change(pod.name, woken=times, woken_at=at)
            case Stop(pod):
                self._stop(pod)
            case ReadLog():
                self._read_once_more()
            case RecordEvent():
                self.events.append(action)
            case DropFinalizer(name):
                assert self.job is not None
                left = tuple(one for one in self.job.metadata.finalizers if one != name)
                self.job = self.job.model_copy(
                    update={"metadata": self.job.metadata.model_copy(update={"finalizers": left})}
                )
            case DeleteJob():
                self.job = None
                self.pods.clear()

    def _count_down(self) -> None:
        if self.crash_after is not None:
            if self.crash_after == 0:
                self.crash_after = None
                raise Crash
            self.crash_after -= 1

    def _create(self, kind: Kind, name: str, manifest: dict[str, Any]) -> None:
        if name in self.rejects:
            raise self.rejects[name]
        self.manifests[name] = manifest
        match kind:
            case Kind.POD:
                self._create_pod(name, manifest)
            case Kind.ENVIRONMENT if contract.LABEL_ATTEMPT not in manifest["metadata"]["labels"]:
                self.agent_configs.add(name)
            case Kind.ENVIRONMENT:
                self.environments.setdefault(int(name.rsplit("-", 1)[-1]), manifest["data"])
            case Kind.SERVICE:
                self.services.add(name)
            case Kind.POD_GROUP:
                self.groups.setdefault(
                    name, PodGroup(name, f"uid-of-{name}", owned=True, members=manifest["spec"]["minMember"])
                )

    def _create_pod(self, name: str, manifest: dict[str, Any]) -> None:
        labels, annotations = manifest["metadata"]["labels"], manifest["metadata"]["annotations"]
        if found := self.pods.get(name):
            if found.deleting or found.attempt != int(labels[contract.LABEL_ATTEMPT]):
                raise Outdated
            return
        self._uids += 1
        self.pods[name] = Pod(
            name=name,
            uid=f"uid-{self._uids}",
            role=Role(labels[contract.LABEL_ROLE]),
            index=int(labels[contract.LABEL_INDEX]),
            attempt=int(labels[contract.LABEL_ATTEMPT]),
            created=self.now,
            build=annotations[contract.ANNOTATION_BUILD],
            dns_name=network.dns_name(manifest["spec"]),
            replacement=int(annotations.get(contract.ANNOTATION_REPLACEMENT, "0")),
        )

    def _delete_pod(self, name: str, uid: str, force: bool) -> None:
        pod = self.pods.get(name)
        if pod is None or pod.uid != uid:
            return
        if force or pod.containers_ended:
            # The API server waits for no kubelet once the containers have ended, whatever grace period is given.
            del self.pods[name]
            self.unmounts[uid] = self.now + UNMOUNTING
        else:
            self.change(name, deletion_due=self.now + 30)

    def _stop(self, pod: Pod) -> None:
        """A kubelet enforces activeDeadlineSeconds; a pod without a node has none and stays Pending."""
        self.change(pod.name, stopping=True)
        if pod.ended:
            self.change(pod.name, lingers=False, containers_ended=True)
        elif pod.node:
            self.change(pod.name, phase=PodPhase.FAILED, reason="DeadlineExceeded")

    def _read_once_more(self) -> None:
        if self.read_log is not None:
            self.logs, self.unread_until = self.read_log(), self.now
        else:
            self.unread_until = min(self.unread_until, self.now + 10)

    # The kubelet, and users

    def change(self, name: str, **changes: Any) -> None:
        if name in self.pods:
            self.pods[name] = replace(self.pods[name], **changes)

    def tick(self) -> None:
        """Remove pods that are being deleted, give new ones an address, and start those that have an environment."""
        ending = [pod for pod in self.pods.values() if pod.deleting]
        removed = {pod.uid for pod in ending[: self.removed_per_tick]}
        for pod in list(self.pods.values()):
            if pod.deleting:
                if self.kubelet_runs and pod.uid in removed:
                    del self.pods[pod.name]
                elif self.kubelet_runs and pod.phase is PodPhase.RUNNING:
                    self.end(pod.name, 143)
            elif self.capacity is not None and not pod.node and not pod.ended and not self._has_room():
                if pod.reason != "Unschedulable":
                    self.fits_nowhere(pod.name)
            elif not pod.address and (not pod.reason or self.capacity is not None):
                number = int(pod.uid.rsplit("-", 1)[-1])
                self.schedule(pod.name)
                self.change(pod.name, address=f"10.1.0.{number}", phase=PodPhase.WAITING)
            elif pod.phase is PodPhase.WAITING and pod.attempt in self.environments:
                self.change(pod.name, phase=PodPhase.RUNNING)

    def _has_room(self) -> bool:
        assert self.capacity is not None
        return sum(bool(pod.node) and not pod.ended for pod in self.pods.values()) < self.capacity

    def lose_node(self, name: str) -> None:
        """The node of a pod dies, and there is room for one pod less."""
        if self.capacity is not None:
            self.capacity = max(0, self.capacity - 1)
        self.change(name, phase=PodPhase.FAILED, disrupted=True, reason="NodeLost")

    def schedule(self, name: str) -> None:
        """The scheduler finds a node for the pod."""
        node = self.nodes.get(name, "node-1")
        self.change(name, node=node, scheduling_since=self.now, reason="", message="", nominated=False)

    def fits_nowhere(self, name: str, message: str = "0/1 nodes are available: 1 Insufficient cpu.") -> None:
        """The scheduler finds no node for the pod."""
        self.change(name, reason="Unschedulable", message=message, scheduling_since=self.now)

    def end(self, name: str, code: int, **more: Any) -> None:
        phase = PodPhase.SUCCEEDED if code == 0 else PodPhase.FAILED
        if name in self.pods and self.pods[name].phase is PodPhase.RUNNING:
            more.setdefault("containers_ended", not more.get("lingers"))
            self.change(name, phase=phase, exit_code=code, **more)

    def edit(self, **spec: Any) -> None:
        """A user changes the spec."""
        assert self.job is not None
        metadata = self.job.metadata.model_copy(update={"generation": self.job.metadata.generation + 1})
        self.job = job(self.job.name, **spec).model_copy(update={"metadata": metadata, "status": self.status})

    def crash(self) -> None:
        """The engine starts again without its memory; the cluster is as it was."""
        self.crashes += 1
        self._loop = Reconciler(self, clock=lambda: self.now)

    async def step(self) -> float | None:
        return await self._loop.step(self.key)

    async def settle_until_created(self) -> None:
        """Run until every pod exists. Nothing happens to them yet."""
        assert self.job is not None
        while len(self.pods) < self.job.spec.pods_wanted:
            await self.step()
            self.now += 1.0
        await self.step()

    async def settle(self, limit: int = 60) -> None:
        """Run until nothing changes any more, letting time pass when the plan waits for it."""
        for _ in range(limit):
            before = (self.job, dict(self.pods), dict(self.environments), len(self.done))
            try:
                wake_at = await self.step()
            except Crash:
                self.crash()
                continue
            self.tick()
            if before == (self.job, self.pods, self.environments, len(self.done)):
                if wake_at is None or self.job is None or self.status.finished or wake_at > self.now + 400:
                    return
                self.now = max(self.now, wake_at) + 0.001
            else:
                self.now += 1.0
        raise AssertionError(f"never settled: {self.status}")
