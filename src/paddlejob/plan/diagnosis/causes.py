"""Why an attempt ended, judged from its pods: a disruption from outside, or the program itself."""

from __future__ import annotations

from dataclasses import replace

from paddlejob.api.reasons import Reason
from paddlejob.api.types import Role, Slot
from paddlejob.plan import names
from paddlejob.plan.cause import Cause
from paddlejob.plan.diagnosis import error_line, evictions, permanent
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import OUT_OF_TIME, Pod, PodPhase

OUTPUT_LIMIT = 1200
START_LIMIT = 300
KILLED = (130, 135, 136, 137, 139, 143)
"""Exit statuses of SIGINT, SIGBUS, SIGFPE, SIGKILL, SIGSEGV and SIGTERM."""


def disruption(s: Snapshot) -> Cause | None:
    """An eviction, a lost node, a deletion by someone else. It outranks failures: peers of a lost pod fail too."""
    for pod in _unfinished(s):
        if found := disruption_of(s, pod):
            return found
    gone = [slot for slot in s.missing if slot not in s.joining]
    return lost(s, gone[0]) if s.published and gone else None


def disruption_of(s: Snapshot, pod: Pod) -> Cause | None:
    if pod.disrupted and (s.published or pod.phase is PodPhase.FAILED):
        return Cause(pod.reason or Reason.EVICTED, _disrupted(pod))
    if pod.deleting and s.published:
        return Cause(Reason.POD_DELETED, f"pod {pod.name} was deleted by someone else")
    return None


def lost(s: Snapshot, slot: Slot) -> Cause:
    return Cause(Reason.POD_LOST, f"pod {names.pod(s.job, *slot)} was deleted by someone else")


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
            fact = f"server {pod.name} exited with status 0 while workers were still training"
            return Cause(Reason.SERVER_EXITED, fact, "see its log", _tail(pod.message))
    return None


def failure_of(s: Snapshot, pod: Pod) -> Cause:
    """Why the program of a pod that failed did so."""
    return replace(_failed(pod), permanent=permanent.is_permanent(s, pod))


def _by_relevance(pod: Pod) -> tuple[bool, bool, bool, bool, int]:
    """Out of memory and evictions sort first, then pods with output; exit status 250 echoes the failure of a peer.

    An error that is the program's own comes before one that the end of a peer may have caused.
    """
    return (
        pod.reason not in ("OOMKilled", evictions.REASON),
        pod.exit_code in (250, 247) or not pod.message,
        error_line.may_pass(error_line.find(pod.message)),
        pod.role is Role.PS,
        pod.index,
    )


def _failed(pod: Pod) -> Cause:
    output = _tail(pod.message)
    if pod.reason == "OOMKilled":
        remedy = f"raise resources.limits.memory in the template of {pod.role}, or use a smaller batch"
        return Cause(Reason.OUT_OF_MEMORY, f"{pod.name} ran out of memory and was killed", remedy, output)
    if pod.reason == evictions.REASON:
        remedy = f"{evictions.remedy(pod.message)}: {pod.message.strip().removesuffix('.')[:START_LIMIT]}"
        return Cause(Reason.USAGE_EXCEEDED, f"{pod.name} was evicted for its own usage", remedy)
    if pod.reason == permanent.INVALID_TEMPLATE:
        return Cause(pod.reason, f"{pod.name} cannot start: {pod.message[:START_LIMIT]}")
    if pod.reason == permanent.HOOK_FAILED:
        how, _, printed = pod.message.partition("\n")
        return Cause(pod.reason, f"{pod.name} was killed: {how[:START_LIMIT]}", "correct the hook", _tail(printed))
    if pod.reason in permanent.START_REASONS:
        remedy = "correct its command or image" if permanent.is_wrong_command(pod) else "check its volumes and its node"
        remedy = f"install it, or {remedy}" if permanent.needs_another(pod) else remedy
        return Cause(Reason.START_ERROR, f"{pod.name} could not start: {pod.message[:START_LIMIT]}", remedy)
    if permanent.is_not_found(pod):
        fact = f"{pod.name} failed with exit status {pod.exit_code}: a command does not exist or cannot be executed"
        return Cause(Reason.COMMAND_NOT_FOUND, fact, "correct its command or image", output)
    if pod.reason == OUT_OF_TIME:
        remedy = "raise it, or limit the whole job with spec.activeDeadlineSeconds instead"
        return Cause(Reason.PROGRAM_FAILED, f"{pod.name} reached activeDeadlineSeconds of its template", remedy, output)
    return _program_failed(pod, output)


def _program_failed(pod: Pod, output: str) -> Cause:
    """The error that the program printed is the headline, unless a signal ended it, of which it knew nothing."""
    status = f"exit status {pod.exit_code}" if pod.exit_code is not None else pod.reason or "no exit status"
    line = error_line.find(pod.message) if pod.exit_code not in KILLED else ""
    fact = f"{line} ({pod.role} {pod.index}, {status})" if line else f"{pod.name} failed with {status}"
    own = line if permanent.chose_status(pod) and not error_line.may_pass(line) else ""
    return Cause(Reason.PROGRAM_FAILED, fact, "see its log", output, own)


def _tail(output: str) -> str:
    return output.strip()[-OUTPUT_LIMIT:]
