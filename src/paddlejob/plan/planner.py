"""The planner: the first policy that applies decides."""

from __future__ import annotations

from paddlejob.api.types import PaddleJob
from paddlejob.plan.actions import Plan
from paddlejob.plan.chores import drop_old_finalizer, with_chores
from paddlejob.plan.diagnosis.rejections import hold_back
from paddlejob.plan.last_read import read_before_end
from paddlejob.plan.policies.changed_spec import rebuild_changed
from paddlejob.plan.policies.deadline import fail_past_deadline
from paddlejob.plan.policies.disruption import settle_disruption
from paddlejob.plan.policies.elastic.grow import grow
from paddlejob.plan.policies.elastic.shrink import shrink_to_fit
from paddlejob.plan.policies.failure import settle_failure
from paddlejob.plan.policies.finished import tidy_finished
from paddlejob.plan.policies.in_place import continue_in_place
from paddlejob.plan.policies.incomplete import fail_incomplete
from paddlejob.plan.policies.live.workers import keep_live_workers
from paddlejob.plan.policies.oversized import fail_oversized
from paddlejob.plan.policies.queue.admission import wait_for_quota
from paddlejob.plan.policies.stalled import restart_stalled
from paddlejob.plan.policies.startup.foreign_environment import rebuild_foreign
from paddlejob.plan.policies.startup.gang import wait_for_gang
from paddlejob.plan.policies.startup.missing_pods import fill_missing
from paddlejob.plan.policies.startup.release import release_partially_created, release_partially_scheduled
from paddlejob.plan.policies.startup.restart_delay import wait_for_restart
from paddlejob.plan.policies.startup.stale_pods import clear_stale
from paddlejob.plan.policies.startup.start_barrier import open_start_barrier
from paddlejob.plan.policies.startup.startup_deadline import restart_late_start
from paddlejob.plan.policies.startup.unstarted_pods import replace_unstarted
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
    return hold_back(with_chores(s, read_before_end(s, _decide(s))), world, now)


def _decide(s: Snapshot) -> Plan:
    return (
        tidy_finished(s)  # how a job ended outlasts whatever happens to it later
        or fail_incomplete(s)  # all that follows counts workers
        or rebuild_foreign(s)  # what such a pod computed is wrong, even if it succeeded
        or settle_success(s)  # before suspension, quota and deadline, which a job that is done no longer needs
        or hold_suspended(s)  # nothing below may create a pod for it
        or fail_oversized(s)  # before it waits for a quota that it can never use
        or wait_for_quota(s)  # no pod without quota
        or fail_past_deadline(s)  # whatever the job would do next; waiting for quota does not count
        or rebuild_changed(s)  # failures of pods that are no longer wanted do not count
        or continue_in_place(s)  # its pods live, so what follows about starting does not apply
        or replace_unstarted(s)  # before the whole job is judged by a pod that never started
        or restart_stalled(s)  # only while every pod runs, so no cause below is hidden
        or keep_live_workers(s)  # these are replaced alone; what it leaves concerns the whole job
        or settle_disruption(s)  # before failures: peers of a lost pod fail too
        or settle_failure(s)  # from here on every pod of the attempt is healthy or missing
        or clear_stale(s)  # old pods have the names that new ones need; nothing starts beside them
        or wait_for_restart(s)  # old pods end during the delay
        or wait_for_gang(s)  # Volcano needs the group before the first pod
        or shrink_to_fit(s)  # before the job gives up what it holds, or creates what cannot run
        or release_partially_created(s)  # before another try at what the quota rejects
        or fill_missing(s)  # what follows needs all pods
        or release_partially_scheduled(s)  # before the deadline of pods that have a node
        or restart_late_start(s)  # as long as the barrier is closed
        or open_start_barrier(s)
        or grow(s)  # only a job that trains looks for room
        or watch_training(s)
    )
