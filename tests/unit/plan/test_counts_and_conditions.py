"""The counts of each role and the conditions in the status that a plan reports."""

from __future__ import annotations

from paddlejob.api.types import Phase, Role
from paddlejob.plan import PodPhase, plan
from paddlejob.plan.conditions import PHASES
from tests.support.builders import NOON, all_pods, having, job, pod, running, world


def test_the_counts_are_those_of_the_pods():
    made = running(job(ps=1, workers=5))
    phases = (PodPhase.RUNNING, PodPhase.RUNNING, PodPhase.SUCCEEDED, PodPhase.PENDING, PodPhase.WAITING)
    pods = [pod(made, "ps", 0), *(pod(made, "worker", index, phase) for index, phase in enumerate(phases))]
    status = plan(made, world(*pods, environments={1: "u"}), NOON).status
    workers, servers = status.role(Role.WORKER), status.role(Role.PS)
    assert (workers.replicas, workers.pending, workers.running, workers.succeeded, workers.failed) == (5, 2, 2, 1, 0)
    assert (workers.ready, workers.finished) == ("2/5", "2")
    assert (servers.replicas, servers.running, servers.ready, servers.finished) == (1, 1, "1/1", "")
    assert status.heter is None
    assert status.selector


def test_a_failed_pod_is_counted():
    made = running(job(workers=2, backoffLimit=0))
    pods = (pod(made, "worker", 0), pod(made, "worker", 1, PodPhase.FAILED, exit_code=1))
    status = plan(made, world(*pods, environments={1: "u"}), NOON).status
    assert status.phase is Phase.FAILED
    assert (status.role(Role.WORKER).failed, status.role(Role.WORKER).running) == (1, 1)


def test_only_the_condition_of_the_phase_is_true_and_keeps_the_time_since_when():
    made = running(job(workers=1))
    first = plan(made, world(*all_pods(made), environments={1: "u"}), NOON).status
    assert [(one.type, one.status) for one in first.conditions if one.type in PHASES] == [("Running", "True")]
    since = first.conditions[0].lastTransitionTime
    later = plan(having(made, first), world(*all_pods(made), environments={1: "u"}), NOON + 100).status
    assert later.conditions[0].lastTransitionTime == since
    ended = all_pods(made, PodPhase.SUCCEEDED, exit_code=0)
    last = plan(having(made, later), world(*ended, environments={1: "u"}), NOON + 200).status
    assert {one.type: one.status for one in last.conditions} == {"Running": "False", "Completed": "True"}
    assert all(one.lastTransitionTime > since for one in last.conditions)


def test_a_long_message_is_cut():
    made = running(job(workers=1, backoffLimit=0))
    failed = pod(made, "worker", 0, PodPhase.FAILED, exit_code=1, message="x" * 5000)
    status = plan(made, world(failed, environments={1: "u"}), NOON).status
    assert 100 < len(status.message) <= 2000
