"""After the end: which pods stay (cleanPodPolicy), which stop, and when the job itself goes (ttl)."""

from __future__ import annotations

from paddlejob.api.types import CleanPodPolicy, Phase
from paddlejob.plan import gang, times
from paddlejob.plan.actions import Action, Delete, DeleteJob, Kind, Plan, Stop
from paddlejob.plan.report import reported
from paddlejob.plan.snapshot import Snapshot

DELETES = {
    Phase.COMPLETED: (CleanPodPolicy.ALWAYS, CleanPodPolicy.ON_COMPLETION),
    Phase.FAILED: (CleanPodPolicy.ALWAYS, CleanPodPolicy.ON_FAILURE),
}


def tidy_finished(s: Snapshot) -> Plan | None:
    """A finished job stays finished, whatever happens to its pods."""
    if not s.status.finished:
        return None
    assert s.status.phase is not None
    status = reported(s, s.status.phase, s.status.reason, s.status.message)
    ttl = s.job.spec.ttlSecondsAfterFinished
    if ttl is None:
        return Plan(status, clean_up(s, s.status.phase))
    ends = times.parse(s.status.completionTime) + ttl
    if s.now >= ends:
        return Plan(s.job.status, (DeleteJob(f"it ended more than {ttl} s ago (ttlSecondsAfterFinished)"),))
    return Plan(status, clean_up(s, s.status.phase), ends)


def clean_up(s: Snapshot, phase: Phase) -> tuple[Action, ...]:
    """Delete what the policy says. What stays of a failed job, or where none may run on, is stopped but kept."""
    leave_gang = tuple(gang.leave(s))
    if s.job.spec.clean in DELETES[phase]:
        because = f"cleanPodPolicy {s.job.spec.clean} after {phase.lower()}"
        doomed = s.world.pods
        kept: list[Action] = []
    else:
        because = "of an earlier attempt"
        doomed = tuple(s.stale)
        stops = phase is Phase.FAILED or s.world.stop_when_finished
        kept = [
            Stop(pod, "the job has failed" if phase is Phase.FAILED else "the job has completed")
            for pod in s.current.values()
            if stops and (not pod.ended or pod.lingers) and not pod.stopping and not pod.deleting
        ]
    deletes = [Delete(Kind.POD, pod.name, pod.uid, because) for pod in doomed if not pod.deleting]
    return (*deletes, *kept, *leave_gang)
