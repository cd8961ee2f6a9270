"""Restarting in place: the agents of the pods end the program everywhere and then start it again; no pod is deleted.

It helps only if every pod of the attempt lives and its agent is connected. Whatever is missing, the job is rebuilt.
"""

from __future__ import annotations

from collections.abc import Mapping

from paddlejob.api.types import Mode, Phase
from paddlejob.plan import past_attempts, times
from paddlejob.plan.actions import Order, OrderAgents, Plan, RecordEvent
from paddlejob.plan.cause import Cause
from paddlejob.plan.manifests import agent
from paddlejob.plan.report import reported
from paddlejob.plan.restarts.backoff import Delay
from paddlejob.plan.restarts.shutdown import SHORT_GRACE, short_grace
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import Pod, PodPhase

MOST_IN_A_ROW = 2
"""Attempts without progress that are restarted in place; then something in the pods may be broken."""
GRACE = 30
"""Seconds that a program has to end, if its template does not say: as with a pod."""
STOP_PATIENCE = 12.0
"""Seconds beyond the grace period in which all agents have to report that their program ended. An agent that lost its
connection has tried again by then, or has given up."""


def obstacle(s: Snapshot, delay: Delay, changes: Mapping[str, object]) -> str:
    """Why the next attempt needs new pods; empty if it can begin in place."""
    if delay.series > MOST_IN_A_ROW:
        return f"{MOST_IN_A_ROW} attempts in a row made no progress"
    if changes.get("avoidedNodes", s.status.avoidedNodes) != s.status.avoidedNodes:
        return "a node is to be avoided"
    if not s.published:
        return "the attempt had not begun"
    return lost_pod(s) or _without_agent(s)


def lost_pod(s: Snapshot) -> str:
    """Why not all pods of the attempt live; empty if they do."""
    if why := agent.obstacle(s.job):
        return why
    if s.world.channel is None:
        return "the operator has no connection to agents"
    if not len(s.slots) == len(s.current) == len(s.world.pods):
        return "pods are gone, or others than those of the attempt exist"
    ended = [pod for pod in s.current.values() if pod.deleting or pod.disrupted or (pod.ended and not pod.held)]
    return f"pod {ended[0].name} has ended or is about to" if ended else ""


def _without_agent(s: Snapshot) -> str:
    """A program that has not started yet cannot be told to stop."""
    for pod in s.current.values():
        report = s.world.agents.get(pod.uid)
        if report is None:
            return f"the agent of pod {pod.name} is not connected"
        if report.attempt != s.status.attempt or (pod.phase is not PodPhase.RUNNING and not pod.held):
            return f"the program of pod {pod.name} had not started"
    return ""


def begin(s: Snapshot, cause: Cause, updates: Mapping[str, object], begins: float, *, quick: bool) -> Plan:
    """Raise the attempt and have the agents end the program; it starts again when all have, and the delay is over."""
    # The pods keep their nodes, so the workers keep their ranks.
    kept = {"worker": s.status.worker, "builtAttempt": s.status.builtAttempt or s.status.attempt}
    due = times.format_exact(begins) if begins > s.now else ""
    cause = cause.adding("in place")
    status = reported(s, Phase.RESTARTING, cause, **{**updates, **kept, "nextRestartTime": due})
    running = tuple(pod.uid for pod in s.current.values() if not pod.held)
    orders = (OrderAgents(Order.STOP, running, status.attempt, _grace(s, quick)),) if running else ()
    return Plan(status, (*orders, RecordEvent(cause.reason, cause.message, warning=True)), max(begins, s.now))


def _grace(s: Snapshot, quick: bool) -> int:
    given = (_grace_of(s, pod, quick) for pod in s.current.values())
    return max(given, default=GRACE)


def _grace_of(s: Snapshot, pod: Pod, quick: bool) -> int:
    given = s.job.spec.roles[pod.role].template["spec"].get("terminationGracePeriodSeconds")
    return SHORT_GRACE if quick and short_grace(s.job, pod) else GRACE if given is None else int(given)


def stop_again(s: Snapshot) -> OrderAgents | None:
    """For programs of the previous attempt that are not known to have ended; None if all have."""
    left = tuple(pod.uid for pod in s.current.values() if not pod.held)
    return OrderAgents(Order.STOP, left, s.status.attempt, _grace(s, _peers_died(s))) if left else None


def stops_until(s: Snapshot) -> float:
    """When the attempt is rebuilt if not all agents have reported an end."""
    return times.parse(past_attempts.begin(s.status)) + _grace(s, _peers_died(s)) + STOP_PATIENCE


def _peers_died(s: Snapshot) -> bool:
    """Whether those that still run have nothing to save, whichever of them failed."""
    return s.job.mode in (Mode.COLLECTIVE, Mode.SINGLE)
