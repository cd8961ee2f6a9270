"""The planner: the first policy that applies decides."""

from __future__ import annotations

from paddlejob.api.types import PaddleJob
from paddlejob.plan.actions import Plan
from paddlejob.plan.chores import drop_old_finalizer, with_chores
from paddlejob.plan.diagnosis.rejections import hold_back
from paddlejob.plan.policies.changed_spec import rebuild_changed
from paddlejob.plan.policies.deadline import fail_overdue
from paddlejob.plan.policies.disruption import settle_disruption
from paddlejob.plan.policies.elastic.grow import grow
from paddlejob.plan.policies.elastic.shrink import shrink_to_fit
from paddlejob.plan.policies.failure import settle_failure
from paddlejob.plan.policies.finished import tidy_finished
from paddlejob.plan.policies.incomplete import fail_incomplete
from paddlejob.plan.policies.live.workers import keep_live_workers
from paddlejob.plan.policies.oversized import fail_oversized
from paddlejob.plan.policies.queue.admission import wait_for_quota
from paddlejob.plan.policies.stalled import restart_stalled
from paddlejob.plan.policies.startup.foreign_environment import rebuild_foreign
from paddlejob.plan.policies.startup.gang import wait_for_gang
from paddlejob.plan.policies.startup.missing_pods import fill_missing
from paddlejob.plan.policies.startup.release import release_half_created, release_half_scheduled
from paddlejob.plan.policies.startup.replacement import replace_rejected
from paddlejob.plan.policies.startup.restart_delay import wait_for_restart
from paddlejob.plan.policies.startup.stale_pods import clear_stale
from paddlejob.plan.policies.startup.start_barrier import open_start_barrier
from paddlejob.plan.policies.startup.startup_deadline import restart_overdue
from paddlejob.plan.policies.success import settle_success
from paddlejob.plan.policies.suspended import hold_suspended
from paddlejob.plan.policies.training import watch_training
from paddlejob.plan.snapshot import Snapshot, look
from paddlejob.plan.world import World


def plan(job: PaddleJob, world: World, now: float) -> Plan:
    """The status to report, the actions to carry out, and when to plan again even if nothing happens."""
    if job.metadata.deletionTimestamp:
        return hold_back(Plan(job.status, tuple(drop_old_finalizer(job))), world, now)
    s = look(job, world, now)
    return hold_back(with_chores(s, _decide(s)), world, now)


def _decide(s: Snapshot) -> Plan:
    return (
        tidy_finished(s)
        or fail_incomplete(s)
        or rebuild_foreign(s)
        or settle_success(s)
        or hold_suspended(s)
        or fail_oversized(s)
        or wait_for_quota(s)
        or fail_overdue(s)
        or rebuild_changed(s)
        or replace_rejected(s)
        or restart_stalled(s)
        or keep_live_workers(s)
        or settle_disruption(s)
        or settle_failure(s)
        or clear_stale(s)
        or wait_for_restart(s)
        or wait_for_gang(s)
        or shrink_to_fit(s)
        or release_half_created(s)
        or fill_missing(s)
        or release_half_scheduled(s)
        or restart_overdue(s)
        or open_start_barrier(s)
        or grow(s)
        or watch_training(s)
    )
