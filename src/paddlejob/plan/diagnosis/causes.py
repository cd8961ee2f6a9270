"""Why an attempt ended, judged from its pods: a disruption from outside, or the program itself."""

from __future__ import annotations

from dataclasses import dataclass, replace

from paddlejob.api.types import Role, Slot
from paddlejob.plan import names
from paddlejob.plan.diagnosis import evictions, permanent
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import Pod, PodPhase

OUTPUT_LIMIT = 1200
START_LIMIT = 300


@dataclass(frozen=True)
class Cause:
    reason: str
    message: str
    """One sentence, followed on lines of their own by the last output of the container."""
    permanent: bool = False
    """Whether another attempt would end in the same way."""


def disruption(s: Snapshot) -> Cause | None:
    """An eviction, a lost node, a deletion by someone else. It outranks failures: peers of a lost pod fail too."""
    for pod in _unfinished(s):
        if found := disruption_of(s, pod):
            return found
    gone = [slot for slot in s.missing if slot not in s.joining]
    return lost(s, gone[0]) if s.published and gone else None


def disruption_of(s: Snapshot, pod: Pod) -> Cause | None:
    if pod.disrupted and (s.published or pod.phase is PodPhase.FAILED):
        return Cause(pod.reason or "Evicted", _disrupted(pod))
    if pod.deleting and s.published:
        return Cause("PodDeleted", f"pod {pod.name} was deleted by someone else")
    return None


def lost(s: Snapshot, slot: Slot) -> Cause:
    return Cause("PodLost", f"pod {names.pod(s.job, *slot)} was deleted by someone else")


def _unfinished(s: Snapshot) -> list[Pod]:
    """All pods but those of workers that have succeeded, to which nothing can happen that matters."""
    done = s.succeeded_workers
    return [pod for pod in s.current.values() if pod.role is not Role.WORKER or pod.index not in done]


def _disrupted(pod: Pod) -> str:
    match pod.reason:
        case "Evicted":
            return f"pod {pod.name} was evicted from node {pod.node}: {pod.message or 'no reason given'}"
        case "Preempted":
            return f"pod {pod.name} was preempted by a pod of higher priority: {pod.message}"
        case "NodeLost":
            # Kubernetes does not tell a node that does not respond from one that somebody tainted.
            return f"node {pod.node} was lost, or has a taint that pod {pod.name} does not tolerate: {pod.message}"
    return f"pod {pod.name} was disrupted ({pod.reason}): {pod.message}"


def failure(s: Snapshot) -> Cause | None:
    """A program that failed, or a server that exited at all while workers still train."""
    failed = [pod for pod in _unfinished(s) if pod.phase is PodPhase.FAILED]
    for pod in failed:
        if permanent.is_permanent(s, pod):
            return failure_of(s, pod)
    if failed:
        return _failed(min(failed, key=_by_relevance))
    for pod in s.current.values():
        if pod.role is Role.PS and pod.phase is PodPhase.SUCCEEDED:
            message = f"server {pod.name} exited with status 0 while workers were still training; see its log"
            return Cause("ServerExited", message + _quoted(pod.message))
    return None


def failure_of(s: Snapshot, pod: Pod) -> Cause:
    """Why the program of a pod that failed did so."""
    return replace(_failed(pod), permanent=permanent.is_permanent(s, pod))


def _by_relevance(pod: Pod) -> tuple[bool, bool, int, int]:
    """Out of memory and evictions sort first, then pods with output; exit status 250 echoes the failure of a peer."""
    return (
        pod.reason not in ("OOMKilled", evictions.REASON),
        pod.exit_code in (250, 247) or not pod.message,
        pod.role is Role.PS,
        pod.index,
    )


def _failed(pod: Pod) -> Cause:
    if pod.reason == "OOMKilled":
        message = (
            f"{pod.name} ran out of memory and was killed; raise resources.limits.memory in the template of "
            f"{pod.role}, or use a smaller batch"
        )
        return Cause("OutOfMemory", message + _quoted(pod.message))
    if pod.reason == evictions.REASON:
        remedy = evictions.remedy(pod.message)
        reported = pod.message.strip().removesuffix(".")[:START_LIMIT]
        return Cause("UsageExceeded", f"{pod.name} was evicted for what it used; {remedy}: {reported}")
    if pod.reason == permanent.INVALID_TEMPLATE:
        return Cause(pod.reason, f"{pod.name} cannot start: {pod.message[:START_LIMIT]}")
    if pod.reason == permanent.HOOK_FAILED:
        how, _, output = pod.message.partition("\n")
        return Cause(pod.reason, f"{pod.name} was killed: {how[:START_LIMIT]}; correct the hook" + _quoted(output))
    if pod.reason in permanent.START_REASONS:
        remedy = "correct its command or image" if permanent.is_wrong_command(pod) else "check its volumes and its node"
        remedy = f"install it, or {remedy}" if permanent.needs_another(pod) else remedy
        return Cause("StartError", f"{pod.name} could not start: {pod.message[:START_LIMIT]}; {remedy}")
    if permanent.is_not_found(pod):
        message = f"{pod.name} failed with exit status {pod.exit_code}: a command does not exist or cannot be executed"
        return Cause("CommandNotFound", f"{message}; correct its command or image" + _quoted(pod.message))
    status = f"exit status {pod.exit_code}" if pod.exit_code is not None else pod.reason or "no exit status"
    return Cause("ProgramFailed", f"{pod.name} failed with {status}; see its log" + _quoted(pod.message))


def _quoted(output: str) -> str:
    tail = output.strip()[-OUTPUT_LIMIT:]
    return f"\n{tail}" if tail else ""
