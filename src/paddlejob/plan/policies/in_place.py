"""An attempt that began in place: all programs of the one before end, then those of this one start.

The status says that it is such an attempt, and agents say which of its programs run, so nothing else is remembered. If
it cannot go on, the pods are deleted. As long as no program of the attempt was to start, it only gets new pods; later
a new attempt begins, which is counted as a disruption.
"""

from __future__ import annotations

from paddlejob.api.reasons import Reason
from paddlejob.api.types import Phase
from paddlejob.plan import names, times
from paddlejob.plan.actions import Action, Create, Kind, Order, OrderAgents, Plan, RecordEvent
from paddlejob.plan.cause import Cause
from paddlejob.plan.conditions import START_BARRIER_OPEN
from paddlejob.plan.manifests import agent, environment
from paddlejob.plan.policies.startup.restart_delay import LONGEST_DELAY
from paddlejob.plan.policies.startup.start_barrier import variables
from paddlejob.plan.report import reported
from paddlejob.plan.restarts import in_place
from paddlejob.plan.restarts.rebuild import delete_pods, rebuild
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import Pod, PodPhase

START_PATIENCE = 30.0
"""Seconds in which all agents have to report that the program has started."""


def continue_in_place(s: Snapshot) -> Plan | None:
    if not s.status.builtAttempt or s.status.phase is Phase.RUNNING:
        return None
    return _start(s) if s.published else _stop(s)


def _stop(s: Snapshot) -> Plan:
    late = s.now >= in_place.stops_until(s) and not all(pod.held for pod in s.current.values())
    if why := in_place.lost_pod(s) or ("not all agents have reported that the program ended" if late else ""):
        return _recreate(s, why)
    if order := in_place.stop_again(s):
        return Plan(reported(s, Phase.RESTARTING), (order,), in_place.stops_until(s))
    begins = times.parse(s.status.nextRestartTime) if s.status.nextRestartTime else s.now
    if s.now < begins <= s.now + LONGEST_DELAY:
        return Plan(reported(s, Phase.RESTARTING), (), begins)
    s = s.reporting(publishedAttempt=s.status.attempt, nextRestartTime="")
    return _start_programs(s, list(s.current.values()), s.now + START_PATIENCE)


def _recreate(s: Snapshot, why: str) -> Plan:
    """No program of the attempt has started, so it begins with new pods instead."""
    cause = Cause(Reason.IN_PLACE_FAILED, f"attempt {s.status.attempt} begins with new pods, because {why}")
    status = reported(s, Phase.RESTARTING, cause, builtAttempt=0)
    deletes = delete_pods(s, "restarting in place failed", quick=True)
    return Plan(status, (*deletes, RecordEvent(cause.reason, cause.message, warning=True)))


def _start(s: Snapshot) -> Plan | None:
    """None once all programs run, and if a policy for programs or pods that ended has to decide."""
    waiting = [pod for pod in s.current.values() if pod.phase is PodPhase.WAITING]
    gave_up = [pod for pod in s.current.values() if _never_started(s, pod)]
    if gave_up:
        return _begin_anew(s, f"the agent of pod {gave_up[0].name} ended before the program had started")
    if not waiting or s.missing or any(_is_lost(pod) for pod in s.current.values()):
        return None
    opened = s.status.condition(START_BARRIER_OPEN)
    until = (times.parse(opened.lastTransitionTime) if opened else s.now) + START_PATIENCE
    if s.now >= until:
        return _begin_anew(s, f"the program of pod {waiting[0].name} did not start in {START_PATIENCE:.0f} s")
    return _start_programs(s, waiting, until)


def _is_lost(pod: Pod) -> bool:
    return pod.phase is PodPhase.FAILED or pod.deleting or pod.disrupted


def _never_started(s: Snapshot, pod: Pod) -> bool:
    """Whether its container ended without a word that the program of this attempt ran in it."""
    report = s.world.agents.get(pod.uid)
    begun = report is not None and report.attempt >= s.status.attempt
    return bool(pod.built) and pod.phase is PodPhase.FAILED and not pod.held and not pod.disrupted and not begun


def _begin_anew(s: Snapshot, why: str) -> Plan:
    count = s.status.disruptions + 1
    fact = f"attempt {s.status.attempt} did not begin in place, because {why}"
    cause = Cause(Reason.IN_PLACE_FAILED, fact, f"rebuilding the job (disruption {count}, not counted as a failure)")
    return rebuild(s, cause, because=f"disruption {count}", delay=0, quick=True, disruptions=count)


def _start_programs(s: Snapshot, waiting: list[Pod], until: float) -> Plan:
    """The environment is published as in any attempt; pods that are created later need it."""
    attempt, pods = s.status.attempt, [s.current[slot] for slot in s.slots if slot in s.current]
    actions: list[Action] = []
    if attempt not in s.world.environments and len(pods) == len(s.slots):
        data = environment.config_map(s.job, attempt, variables(s, pods))
        actions.append(Create(Kind.ENVIRONMENT, names.environment(s.job, attempt), data))
    for role in s.job.spec.roles:
        uids = tuple(pod.uid for pod in waiting if pod.role is role)
        given = agent.order_environment(s.job, role, attempt)
        actions += [OrderAgents(Order.START, uids, attempt, environment=given)] if uids else []
    begun = len(s.slots) - len(waiting)
    cause = Cause(Reason.STARTING, f"{begun} of {len(s.slots)} programs have started in place")
    return Plan(reported(s, Phase.STARTING, cause), tuple(actions), until)
