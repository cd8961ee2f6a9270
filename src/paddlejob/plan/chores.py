"""Chores that go with every decision, whichever policy made it."""

from __future__ import annotations

from dataclasses import replace

from paddlejob import contract
from paddlejob.api.reasons import is_routine
from paddlejob.api.types import PaddleJob, Phase
from paddlejob.plan import names, times
from paddlejob.plan.actions import Action, Delete, DropFinalizer, Kind, Plan, RecordEvent
from paddlejob.plan.conditions import agents_late_at
from paddlejob.plan.diagnosis import terminating
from paddlejob.plan.finish import end_sidecars
from paddlejob.plan.policies.deadline import deadline
from paddlejob.plan.policies.elastic.shrink import shrinks_at
from paddlejob.plan.policies.queue.upkeep import keep_workload
from paddlejob.plan.policies.startup.missing_pods import missing_services, services
from paddlejob.plan.snapshot import Snapshot


def with_chores(s: Snapshot, decided: Plan) -> Plan:
    chores = [
        *_force_terminating(s),
        *_remove_leftovers(s, decided),
        *_restore_services(s, decided),
        *_end_sidecars(s, decided),
        *keep_workload(s, decided),
        *drop_old_finalizer(s.job),
        *_record_reason(s, decided),
    ]
    wake_at = times.earliest(decided.wake_at, deadline(s), terminating.look_again(s), shrinks_at(s), _agents_late_at(s))
    return replace(decided, actions=(*decided.actions, *chores), wake_at=wake_at)


def drop_old_finalizer(job: PaddleJob) -> list[Action]:
    return [DropFinalizer(name) for name in job.metadata.finalizers if name == contract.OLD_FINALIZER]


def _force_terminating(s: Snapshot) -> list[Action]:
    return [
        Delete(Kind.POD, pod.name, pod.uid, "its node does not respond", force=True)
        for pod in s.world.pods
        if terminating.must_be_forced(s, pod)
    ]


def _remove_leftovers(s: Snapshot, decided: Plan) -> list[Action]:
    """Environments of earlier attempts, and Services that no pod needs any more."""
    gone: list[Action] = [
        Delete(Kind.ENVIRONMENT, names.environment(s.job, attempt), uid, "of an earlier attempt")
        for attempt, uid in sorted(s.world.environments.items())
        if attempt < decided.status.attempt
    ]
    wanted = {} if _is_at_rest(decided) else services(s)
    gone += [
        Delete(Kind.SERVICE, name, uid, "no pod needs it")
        for name, uid in sorted(s.world.services.items())
        if name not in wanted
    ]
    return gone


def _restore_services(s: Snapshot, decided: Plan) -> list[Action]:
    """Services that someone deleted. While pods are missing, those are created with them."""
    return [] if _is_at_rest(decided) or s.missing or s.stale else missing_services(s)


def _agents_late_at(s: Snapshot) -> float | None:
    late = agents_late_at(s)
    return late if late is not None and late > s.now else None


def _end_sidecars(s: Snapshot, decided: Plan) -> list[Action]:
    """Of workers that have succeeded while others train. When an attempt or the job ends, their pods go with it."""
    goes_on = decided.status.attempt == s.status.attempt and not _is_at_rest(decided)
    return end_sidecars(s) if goes_on else []


def _is_at_rest(decided: Plan) -> bool:
    """Whether the job has no pods that train: it has ended or is suspended."""
    return decided.status.finished or decided.status.phase is Phase.SUSPENDED


def _record_reason(s: Snapshot, decided: Plan) -> list[Action]:
    """A new reason why the job does not run is also an event, unless the policy records one itself."""
    reason = decided.status.reason
    recorded = any(isinstance(action, RecordEvent) and action.reason == reason for action in decided.actions)
    if recorded or reason == s.job.status.reason or is_routine(reason) or decided.status.finished:
        return []
    return [RecordEvent(reason, decided.status.message, warning=True)]
