"""An elastic job that trains with fewer workers than it asks for grows when there is room.

The pods that it lacks are created as pods of the next attempt while the current one trains: only a pod that is
scheduled shows that there is room, and only a pod that waits makes an autoscaler add a node. Once they are ready to
start, the next attempt begins with them. Until then they are neither counted nor part of any reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from paddlejob.api.reasons import Reason
from paddlejob.api.types import Phase, Role
from paddlejob.plan import indexes, names, times
from paddlejob.plan.actions import Action, Delete, Kind, Plan, RecordEvent
from paddlejob.plan.cause import Cause
from paddlejob.plan.policies.startup.missing_pods import create_pods
from paddlejob.plan.policies.training import watch_training
from paddlejob.plan.report import reported
from paddlejob.plan.restarts.rebuild import next_attempt
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import Pod, PodPhase

COST = 60.0
"""Seconds of training that a restart costs at most; growing must save more, where the end of training is known."""
SETTLED = 5.0
"""Seconds after which no other pod is expected to find a node together with the last that did."""


def grow(s: Snapshot) -> Plan | None:
    """The plan of a job that trains, and what growing needs; None if the job has the size that it asks for."""
    if not s.lacking:
        return None
    decided = watch_training(s)
    if decided.status.phase is not Phase.RUNNING:
        return decided
    if not _is_worth_it(s, len(s.members) + len(s.lacking)):
        return replace(decided, actions=(*decided.actions, *_delete(s.spares.values(), "training ends soon")))
    ready = [pod for pod in s.spares.values() if _is_ready(pod)]
    begins = _begins_at(s, ready) if ready else None
    if begins is None or s.now < begins:
        return _look_for_room(s, replace(decided, wake_at=times.earliest(decided.wake_at, begins)))
    if not _is_worth_it(s, len(s.members) + len(ready)):
        return _give_up(s, decided, s.spares.values(), "too few of the lacking workers fit to repay a restart")
    return _begin(s, ready)


def _look_for_room(s: Snapshot, decided: Plan) -> Plan:
    """Create the pods that are lacking when that is due, and give up those that cannot start."""
    spares = s.spares.values()
    useless = [pod for pod in spares if _is_useless(s, pod)]
    if useless:
        return _give_up(s, decided, useless, "it does not start")
    lacking = [index for index in s.lacking if index not in s.spares]
    due = _due(s, lacking) if lacking else None
    if due is None or s.now < due:
        return replace(decided, wake_at=times.earliest(decided.wake_at, due, *(_deadline(s, pod) for pod in spares)))
    slots = [(Role.WORKER, index) for index in lacking]
    return replace(decided, actions=(*decided.actions, *create_pods(s, slots, s.status.attempt + 1)))


def _give_up(s: Snapshot, decided: Plan, pods: Iterable[Pod], because: str) -> Plan:
    """Delete the pods, and look for room again after the interval."""
    status = decided.status.model_copy(update={"lastResizeTime": times.format(s.now)})
    return replace(decided, status=status, actions=(*decided.actions, *_delete(pods, because)))


def _delete(pods: Iterable[Pod], because: str) -> list[Action]:
    return [Delete(Kind.POD, pod.name, pod.uid, because) for pod in pods if not pod.deleting]


def _due(s: Snapshot, lacking: list[int]) -> float:
    """When to look for room: some time after the size last changed, and after a pod was rejected."""
    tries = [s.world.rejection_of(names.pod(s.job, Role.WORKER, index)) for index in lacking]
    last = [one.at for one in tries if one]
    if s.status.lastResizeTime:
        last.append(times.parse(s.status.lastResizeTime))
    return max(last) + s.job.spec.growth_interval if last else s.now


def _is_worth_it(s: Snapshot, size: int) -> bool:
    """Whether growing to this size saves more time than the restart costs; always, if the end is not known."""
    eta = s.status.progress.eta if s.status.progress else ""
    return not eta or (times.parse(eta) - s.now) * (1 - len(s.members) / size) > COST


def _is_ready(pod: Pod) -> bool:
    return pod.phase is PodPhase.WAITING and bool(pod.address) and not pod.deleting and not pod.disrupted


def _is_useless(s: Snapshot, pod: Pod) -> bool:
    """It failed, takes too long to start on its node, or runs with an environment that is not the job's."""
    due = _deadline(s, pod)
    has_started = pod.ended or pod.phase is PodPhase.RUNNING
    return not pod.deleting and (has_started or pod.disrupted or (due is not None and s.now >= due))


def _deadline(s: Snapshot, pod: Pod) -> float | None:
    starting = pod.phase is PodPhase.PENDING and pod.node and not pod.initializing
    if not starting:
        return None
    return max(pod.scheduling_since or pod.created, pod.init_ended) + s.job.spec.startup_deadline


def _begins_at(s: Snapshot, ready: list[Pod]) -> float:
    """At once if all are ready; else when those that have a node are, and no other has found one for a moment."""
    if len(ready) == len(s.lacking):
        return s.now
    placed = [pod for pod in s.spares.values() if pod.placed]
    if len(placed) > len(ready):
        return times.earliest(*(_deadline(s, pod) for pod in placed)) or s.now + SETTLED
    return max(max(pod.scheduling_since, pod.created) for pod in placed) + SETTLED


def _begin(s: Snapshot, ready: list[Pod]) -> Plan:
    """Begin the next attempt, to which these pods already belong; the others are deleted and created again."""
    members = s.members | {pod.index for pod in ready}
    wanted = s.job.spec.roles[Role.WORKER].replicas
    fact = f"growing from {len(s.members)} to {len(members)} of {wanted} workers, because there is room for them"
    cause = Cause(Reason.SCALED_UP, fact, "training continues from its checkpoint")
    kept = {pod.uid for pod in ready}
    worker = s.status.role(Role.WORKER).model_copy(
        update={"finished": "", "members": indexes.format(members), "ranks": ""}
    )
    changes = {**next_attempt(s), "worker": worker, "lastResizeTime": times.format(s.now)}
    status = reported(s, Phase.RESTARTING, cause, **changes)
    deletes = _delete([pod for pod in s.world.pods if pod.uid not in kept], "the job grows")
    return Plan(status, (*deletes, RecordEvent(cause.reason, cause.message)))
