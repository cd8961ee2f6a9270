"""The plan: the first policy that has something to say decides, and a few chores go with every decision."""

from __future__ import annotations

from dataclasses import replace

from paddlejob import contract
from paddlejob.api.types import Intranet, PaddleJob, Phase
from paddlejob.plan import names, times
from paddlejob.plan.actions import Action, Delete, DropFinalizer, Kind, Plan, RecordEvent
from paddlejob.plan.build import (
    clear_stale,
    fill_missing,
    missing_services,
    open_start_barrier,
    rebuild_changed,
    refuse_incomplete,
    refuse_oversized,
    wait_for_restart,
    watch_training,
)
from paddlejob.plan.finish import tidy_finished
from paddlejob.plan.gang import wait_for_gang
from paddlejob.plan.release import release_half_created, release_half_placed
from paddlejob.plan.settle import deadline, end_overdue, settle_disruption, settle_failure, settle_success
from paddlejob.plan.snapshot import Snapshot, look
from paddlejob.plan.suspend import hold_suspended
from paddlejob.plan.world import World

UNEVENTFUL = {
    "Created", "Resumed", "PodsNotReady", "WaitingForPodGroup", "WaitingForOldPods", "Starting", "Running"
}  # fmt: skip
FORCE_AFTER = 30.0
"""Seconds after a pod should have been gone; then its node is taken for lost, and the pod is removed by force."""


def plan(job: PaddleJob, world: World, now: float) -> Plan:
    if job.metadata.deletionTimestamp:
        return Plan(job.status, tuple(_drop_old_finalizer(job)))
    s = look(job, world, now)
    decided = (
        tidy_finished(s)
        or refuse_incomplete(s)
        or settle_success(s)
        or hold_suspended(s)
        or refuse_oversized(s)
        or end_overdue(s)
        or rebuild_changed(s)
        or settle_disruption(s)
        or settle_failure(s)
        or clear_stale(s)
        or wait_for_restart(s)
        or wait_for_gang(s)
        or release_half_created(s)
        or fill_missing(s)
        or release_half_placed(s)
        or open_start_barrier(s)
        or watch_training(s)
    )
    return _with_chores(s, decided)


def _with_chores(s: Snapshot, decided: Plan) -> Plan:
    overdue = [pod.deletion_due + FORCE_AFTER for pod in s.world.pods if pod.deletion_due is not None]
    chores = [
        *_force_overdue(s),
        *_remove_leftovers(s, decided),
        *_restore_services(s, decided),
        *_drop_old_finalizer(s.job),
        *_announce_trouble(s, decided),
    ]
    wake_at = times.earliest(decided.wake_at, deadline(s), *(due for due in overdue if due > s.now))
    return replace(decided, actions=(*decided.actions, *chores), wake_at=wake_at)


def _announce_trouble(s: Snapshot, decided: Plan) -> list[Action]:
    """A new reason why the job does not run is an event too, unless the decision has told it already."""
    reason = decided.status.reason
    told = any(isinstance(action, RecordEvent) and action.reason == reason for action in decided.actions)
    if told or reason == s.job.status.reason or reason in UNEVENTFUL or decided.status.finished:
        return []
    return [RecordEvent(reason, decided.status.message, warning=True)]


def _force_overdue(s: Snapshot) -> list[Action]:
    return [
        Delete(Kind.POD, pod.name, pod.uid, "its node does not answer", force=True)
        for pod in s.world.pods
        if pod.deletion_due is not None and s.now >= pod.deletion_due + FORCE_AFTER
    ]


def _remove_leftovers(s: Snapshot, decided: Plan) -> list[Action]:
    """Environments of earlier attempts, and Services of replicas that are no longer wanted."""
    old = [attempt for attempt in sorted(s.world.environments) if attempt < decided.status.attempt]
    gone: list[Action] = [
        Delete(
            Kind.ENVIRONMENT, names.environment(s.job, attempt), s.world.environments[attempt], "of an earlier attempt"
        )
        for attempt in old
    ]
    if s.job.spec.intranet is Intranet.SERVICE:
        wanted = {names.pod(s.job, *slot) for slot in s.slots}
        gone += [
            Delete(Kind.SERVICE, name, uid, "its replica is no longer wanted")
            for name, uid in sorted(s.world.services.items())
            if name not in wanted
        ]
    return gone


def _restore_services(s: Snapshot, decided: Plan) -> list[Action]:
    """One that somebody deleted; while pods are missing they are made anyway."""
    ends = decided.status.finished or decided.status.phase is Phase.SUSPENDED
    return [] if ends or s.missing or s.stale else missing_services(s)


def _drop_old_finalizer(job: PaddleJob) -> list[Action]:
    return [DropFinalizer(name) for name in job.metadata.finalizers if name == contract.OLD_FINALIZER]
