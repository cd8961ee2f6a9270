"""While the job trains: make sure that every pod starts, and report progress."""

from __future__ import annotations

from paddlejob.api.reasons import Reason
from paddlejob.api.types import Phase, Role
from paddlejob.plan import names, times
from paddlejob.plan.actions import Plan, Wake
from paddlejob.plan.cause import Cause
from paddlejob.plan.diagnosis.waiting import why_waiting
from paddlejob.plan.policies.stalled import about_to_stall
from paddlejob.plan.policies.startup.startup_deadline import startup_deadline
from paddlejob.plan.report import reported
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import Pod, PodPhase

WAKE_AGAIN = 3.0
MOST_WAKES = 2
FEW = 0.1
"""Share of the pods of a job."""
PATTERN_TOO_SLOW = (
    "spec.progress.pattern takes the operator too long, so it is no longer used and the job shows no progress",
    "simplify it: avoid repetitions of repetitions and large counts such as {0,500}",
)


def watch_training(s: Snapshot) -> Plan:
    pods = s.current.values()
    unfinished = [pod for pod in pods if not pod.ended]
    if all(pod.phase is PodPhase.RUNNING for pod in unfinished):
        cause = _note(s) or Cause(Reason.RUNNING, _progress(s))
        return Plan(reported(s, Phase.RUNNING, cause))
    phase = s.status.phase if s.status.phase is Phase.RUNNING else Phase.STARTING
    started = sum(pod.phase is PodPhase.RUNNING for pod in pods)
    cause = why_waiting(s) or Cause(Reason.STARTING, f"{started} of {len(s.slots)} pods are running")
    can_start = s.status.attempt in s.world.environments
    waiting = _waiting(unfinished) if can_start else []
    due = [pod for pod in waiting if may_be_woken(pod, s.now)]
    wakes = tuple(Wake(pod, pod.woken + 1, s.now) for pod in due)
    wake_at = times.earliest(*(max(pod.woken_at, s.now if pod in due else 0) + WAKE_AGAIN for pod in waiting))
    return Plan(reported(s, phase, cause), wakes, times.earliest(wake_at, startup_deadline(s)))


def _note(s: Snapshot) -> Cause | None:
    """What its user should know about a job although it trains."""
    if s.scale_rejected:
        return Cause(Reason.SCALE_REJECTED, s.scale_rejected)
    if s.world.logs and s.world.logs.pattern_too_slow and s.world.logs.attempt == s.status.attempt:
        return Cause(Reason.PATTERN_TOO_SLOW, *PATTERN_TOO_SLOW)
    return about_to_stall(s)


def _waiting(unfinished: list[Pod]) -> list[Pod]:
    """Those that one more wake may help: a pod waits on if the wake reached its kubelet before the environment did.

    If many pods wait on, it is kubelets that are busy, and more wakes would delay them further.
    """
    pods = [pod for pod in unfinished if pod.woken < MOST_WAKES and (pod.phase is PodPhase.WAITING or pod.unsure)]
    few = sum(pod.woken > 0 for pod in pods) <= max(1, FEW * len(unfinished))
    return [pod for pod in pods if few or not pod.woken or pod.unsure]


def may_be_woken(pod: Pod, now: float) -> bool:
    """Each wake patches the pod, so there is at most one in WAKE_AGAIN seconds once there is an environment."""
    return (pod.phase is PodPhase.WAITING or pod.unsure) and (pod.woken == 0 or now >= pod.woken_at + WAKE_AGAIN)


def _progress(s: Snapshot) -> str:
    if s.succeeded_workers:
        return f"{len(s.succeeded_workers)} of {len(s.members)} workers have finished"
    wanted = s.job.spec.roles[Role.WORKER].replicas
    if s.lacking or s.most_workers < wanted:
        return f"training with {len(s.members)} of {wanted} workers{_why_not_all(s)}"
    return "all pods are running"


def _why_not_all(s: Snapshot) -> str:
    """Why an elastic job does not have all the workers that it asks for, as far as that is known at the moment."""
    if not s.lacking:
        return f"; queue {s.status.queue} has quota for {s.most_workers}"
    rejected = (s.world.rejection_of(names.pod(s.job, Role.WORKER, index)) for index in s.lacking)
    found = [pod.message for pod in s.spares.values() if pod.message] + [one.message for one in rejected if one]
    return f": {found[0]}" if found else "; the others are added when there is room for them"
