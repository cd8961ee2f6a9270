"""The conditions of a job, by Kubernetes' conventions: one for each phase that it was in, and how far its start is.

Each says why it is as it is now, and for which generation of the spec. `kubectl wait` works on all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from paddlejob.api.reasons import Reason
from paddlejob.api.types import Condition, Phase, Status
from paddlejob.plan import times
from paddlejob.plan.manifests import agent
from paddlejob.plan.manifests.pod_group import ADMITTED_LATER, group_in_use, is_gang
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.workload import QUOTA_RESERVED
from paddlejob.plan.world import GATED, UNSCHEDULABLE, Pod, PodPhase

PHASES = (Phase.RUNNING, Phase.RESTARTING, Phase.SUSPENDED, Phase.COMPLETED, Phase.FAILED)
RESTARTS_IN_PLACE = "RestartsInPlace"
CONNECT_SECONDS = 60.0
"""After which a job says that its agents do not connect."""
PODS_CREATED, GANG_ADMITTED = "PodsCreated", "GangAdmitted"
PODS_SCHEDULED, START_BARRIER_OPEN = "PodsScheduled", "StartBarrierOpen"


@dataclass(frozen=True)
class State:
    """What a condition says now."""

    type: str
    true: bool
    reason: str
    message: str


def conditions(s: Snapshot) -> tuple[Condition, ...]:
    """The conditions of the status so far. A job that had ended before keeps those that it has."""
    if s.job.status.finished:
        return tuple(_of_this_generation(s, one) for one in s.job.status.conditions)
    states = [*_of_phases(s.status), *_of_start(s), *_of_agents(s)]
    return tuple(_condition(s, state) for state in states)


def _condition(s: Snapshot, state: State) -> Condition:
    before, value = s.status.condition(state.type), "True" if state.true else "False"
    since = before.lastTransitionTime if before and before.status == value else times.format(s.now)
    return Condition(
        type=state.type,
        status=value,
        observedGeneration=s.job.metadata.generation,
        reason=state.reason,
        message=state.message,
        lastTransitionTime=since,
    )


def _of_this_generation(s: Snapshot, condition: Condition) -> Condition:
    """`kubectl wait` ignores a condition of an earlier generation, but how a job ended outlasts every change of it."""
    if not condition.observedGeneration:
        return condition
    return condition.model_copy(update={"observedGeneration": s.job.metadata.generation})


def _of_phases(status: Status) -> Iterator[State]:
    """Only the condition that the phase names is true. One that was never true is not listed."""
    for type_ in PHASES:
        if status.phase is type_:
            yield State(type_, True, status.reason, status.message)
        elif status.condition(type_) is not None:
            yield State(type_, False, status.reason, status.headline)


def _of_start(s: Snapshot) -> Iterator[State]:
    """How far the current attempt is on its way to training; only its quota if there is none."""
    if s.status.queue and not s.status.finished and not s.job.spec.suspend:
        yield _quota_reserved(s)
    if s.status.finished or s.status.phase is Phase.SUSPENDED:
        return
    yield _created(s)
    if is_gang(s.job):
        yield _admitted(s)
    yield _scheduled(s)
    yield _opened(s)


def _quota_reserved(s: Snapshot) -> State:
    if s.held:
        return State(QUOTA_RESERVED, False, s.status.reason, s.status.headline)
    return State(QUOTA_RESERVED, True, "Admitted", f"queue {s.status.queue} admitted the job")


def _created(s: Snapshot) -> State:
    """Quotas and admission webhooks keep pods from being created; the reason of the job is theirs then."""
    if not s.missing:
        return State(PODS_CREATED, True, "AllCreated", f"all {len(s.slots)} pods were created")
    return State(PODS_CREATED, False, s.status.reason, s.status.headline)


def _admitted(s: Snapshot) -> State:
    group = group_in_use(s.job, s.world.pod_groups)
    if not s.missing and not s.unscheduled:
        return State(GANG_ADMITTED, True, "Admitted", "the scheduler admitted the pod group")
    if group is None:
        return State(GANG_ADMITTED, False, s.status.reason, s.status.headline)
    if group.phase in ADMITTED_LATER:
        message = group.message or f"pod group {group.name} is not admitted"
        return State(GANG_ADMITTED, False, Reason.GANG_NOT_ADMITTED, message)
    return State(GANG_ADMITTED, True, "Admitted", "the scheduler admitted the pod group")


def _scheduled(s: Snapshot) -> State:
    total, placed = len(s.slots), sum(pod.placed for pod in s.current.values())
    if not s.missing and placed == len(s.current):
        return State(PODS_SCHEDULED, True, "AllScheduled", "all pods have a node")
    gated = any(pod.reason == GATED for pod in s.current.values())
    reason = UNSCHEDULABLE if s.unscheduled else GATED if gated else "Scheduling"
    why = f": {s.unscheduled[0].message}" if s.unscheduled and s.unscheduled[0].message else ""
    return State(PODS_SCHEDULED, False, reason, f"{placed} of {total} pods have a node{why}")


def _opened(s: Snapshot) -> State:
    if s.published:
        return State(START_BARRIER_OPEN, True, "EnvironmentPublished", "the pods were given their environment")
    ready = sum(bool(pod.address) and pod.phase is not PodPhase.PENDING for pod in s.current.values())
    message = f"{ready} of {len(s.slots)} pods are ready to start; the program starts when all of them are"
    return State(START_BARRIER_OPEN, False, Reason.PODS_NOT_READY, message)


def _of_agents(s: Snapshot) -> Iterator[State]:
    """Whether restarts in place work, for a job that asks for them."""
    if not s.job.spec.wants_agents or s.world.one_machine or s.status.finished:
        return
    known = s.status.condition(RESTARTS_IN_PLACE)
    if why := agent.unavailable(s.job, s.world):
        yield State(RESTARTS_IN_PLACE, False, agent.UNAVAILABLE, why)
    elif s.status.phase is Phase.RUNNING and not _without_agent(s):
        yield State(RESTARTS_IN_PLACE, True, "AgentsConnected", "agents start the program again if it fails")
    elif (late := agents_late_at(s)) is not None and s.now >= late:
        message = (
            f"{len(_without_agent(s))} of {len(s.slots)} pods have no agent that is connected, so the job restarts "
            "with new pods; check that its image has Python 3.8 or newer, and that pods may connect to the operator"
        )
        yield State(RESTARTS_IN_PLACE, False, "AgentsNotConnected", message)
    elif known:
        yield State(RESTARTS_IN_PLACE, known.status == "True", known.reason, known.message)


def _without_agent(s: Snapshot) -> list[Pod]:
    return [pod for pod in s.current.values() if not pod.ended and pod.uid not in s.world.agents]


def agents_late_at(s: Snapshot) -> float | None:
    """When agents of a job that runs should have connected; None if all have, or none is expected to."""
    running = s.status.condition(Phase.RUNNING)
    if not s.job.spec.wants_agents or s.world.channel is None or s.status.phase is not Phase.RUNNING or not running:
        return None
    if running.status != "True" or not _without_agent(s):
        return None
    return max(times.parse(running.lastTransitionTime), s.world.channel.since) + CONNECT_SECONDS
