"""When the planner wants to be asked again, although nothing may have happened by then."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from paddlejob.api.types import PaddleJob, Phase
from paddlejob.plan import Create, Delete, Kind, Plan, PodGroup, PodPhase, RecordEvent, Wake, names, plan, times
from paddlejob.plan.world import Pod, Rejection
from tests.support.builders import NOON, all_pods, job, running, world

STARTING = {"phase": "Pending", "reason": "PodsNotReady", "attempt": 1, "startTime": times.format(NOON - 5)}


def gang(**more: Any) -> PaddleJob:
    return job(status=STARTING, **{"schedulingPolicy": {}} | more)


def kinds(decided: Plan, action: type) -> list[Kind]:
    return [one.kind for one in decided.actions if isinstance(one, action)]


def test_without_volcano_a_gang_is_looked_at_every_thirty_seconds():
    decided = plan(gang(), world(gang_scheduler=False), NOON)
    assert (decided.status.reason, decided.wake_at, decided.actions[:-1]) == ("VolcanoMissing", NOON + 30, ())


def test_a_pod_group_is_created_and_looked_for_five_seconds_later():
    decided = plan(gang(), world(), NOON)
    assert (kinds(decided, Create), decided.wake_at) == ([Kind.POD_GROUP], NOON + 5)
    assert (decided.status.phase, decided.status.reason) == (Phase.PENDING, "Created")


def test_a_pod_group_of_another_size_is_replaced():
    group = PodGroup(names.pod_group(gang()), "u-1", owned=True, members=7)
    decided = plan(gang(), world(pod_groups=(group,)), NOON)
    assert (kinds(decided, Delete), kinds(decided, Create), decided.wake_at) == ([Kind.POD_GROUP], [], NOON + 1)
    for right in (replace(group, members=2), replace(group, members=None)):
        assert kinds(plan(gang(), world(pod_groups=(right,)), NOON), Create) == [Kind.POD, Kind.POD]


def test_a_group_of_the_user_may_follow_the_job_in_its_file():
    made = job(status=STARTING)
    made.spec.worker.template["spec"]["schedulerName"] = "volcano"  # type: ignore[union-attr]
    created = times.parse(made.metadata.creationTimestamp or "")
    early = plan(made, world(), created + 4)
    assert (early.status.reason, early.wake_at, kinds(early, Create)) == ("WaitingForPodGroup", created + 5, [])
    assert kinds(plan(made, world(), created + 5), Create) == [Kind.POD_GROUP]
    mine = PodGroup("mnist", "u", owned=False)
    assert kinds(plan(made, world(pod_groups=(mine,)), created), Create) == [Kind.POD, Kind.POD]


def test_a_gang_that_has_all_its_pods_needs_no_group():
    made = gang()
    assert kinds(plan(made, world(*all_pods(made, PodPhase.PENDING)), NOON), Create) == []


def test_pods_that_wait_are_woken_twice_three_seconds_apart():
    made = running(job())
    first, second = all_pods(made)

    def decide(**waiting: Any) -> Plan:
        one = replace(second, phase=PodPhase.WAITING, **waiting)
        return plan(made, world(first, one, environments={1: "uid"}), NOON)

    def wakes(decided: Plan) -> list[tuple[int, float]]:
        return [(one.times, one.at) for one in decided.actions if isinstance(one, Wake)]

    assert (wakes(decide()), decide().wake_at) == ([(1, NOON)], NOON + 3)
    recent = decide(woken=1, woken_at=NOON - 2)
    assert (wakes(recent), recent.wake_at) == ([], NOON + 1)
    assert wakes(decide(woken=1, woken_at=NOON - 3)) == [(2, NOON)]
    assert (wakes(decide(woken=2, woken_at=NOON - 3)), decide(woken=2, woken_at=NOON - 3).wake_at) == ([], None)


def test_pods_of_which_many_do_not_start_are_woken_once_unless_their_kubelet_asks():
    """A second wake would only delay kubelets that are busy; one that could not read ConfigMaps has tried in vain."""
    made = running(job())

    def again(*pods: Pod) -> list[str]:
        decided = plan(made, world(*pods, environments={1: "uid"}), NOON)
        return [one.pod.name for one in decided.actions if isinstance(one, Wake)]

    first, second = all_pods(made, PodPhase.WAITING, woken=1, woken_at=NOON - 3)
    assert again(first, second) == []
    assert again(replace(first, woken=0), replace(second, woken=0)) == ["mnist-worker-0", "mnist-worker-1"]
    assert again(replace(first, phase=PodPhase.PENDING, unsure=True), second) == ["mnist-worker-0"]
    assert again(replace(first, phase=PodPhase.RUNNING), second) == ["mnist-worker-1"]
    made = running(job(workers=20))
    started, late = all_pods(made), all_pods(made, PodPhase.WAITING, woken=1, woken_at=NOON - 3)
    assert len(again(*started[2:], *late[:2])) == 2
    assert again(*started[3:], *late[:3]) == []


def test_without_its_environment_no_pod_is_woken_by_the_watch_over_training():
    made = running(job())
    pods = [replace(one, phase=PodPhase.WAITING, address="") for one in all_pods(made)]
    decided = plan(made, world(*pods), NOON)
    assert [one for one in decided.actions if isinstance(one, Wake)] == []


def test_an_object_that_is_being_deleted_is_tried_again_after_a_second():
    made = job(workers=1, status=STARTING)
    rejection = Rejection("mnist-worker-0", "BeingDeleted", "it still exists", NOON, 9)
    decided = plan(made, world(rejections=(rejection,)), NOON)
    assert (decided.status.reason, decided.wake_at) == ("WaitingForOldPods", NOON + 1)


def test_a_job_that_restarts_later_waits_until_then():
    later = {**STARTING, "phase": "Restarting", "attempt": 2, "nextRestartTime": times.format_exact(NOON + 8)}
    decided = plan(job(status=later), world(), NOON)
    assert (kinds(decided, Create), decided.wake_at, decided.status.phase) == ([], NOON + 8, Phase.RESTARTING)
    assert len(kinds(plan(job(status=later), world(), NOON + 8), Create)) == 2


@pytest.mark.parametrize(("seconds", "waits"), [(600, True), (3600, False)])
def test_a_clock_that_was_set_back_during_a_delay_postpones_no_restart_for_longer_than_any_delay(
    seconds: float, waits: bool
):
    due = {**STARTING, "phase": "Restarting", "attempt": 2, "nextRestartTime": times.format_exact(NOON)}
    assert (kinds(plan(job(status=due), world(), NOON - seconds), Create) == []) is waits


@pytest.mark.parametrize(
    ("ttl", "seconds", "gone"), [(None, 10**6, False), (100, 99, False), (100, 100, True), (0, 0, True)]
)
def test_a_finished_job_is_deleted_when_its_time_to_live_is_over(ttl: int | None, seconds: float, gone: bool):
    ended = {"phase": "Completed", "attempt": 1, "completionTime": times.format(NOON)}
    decided = plan(job(status=ended, ttlSecondsAfterFinished=ttl), world(), NOON + seconds)
    assert [type(one).__name__ for one in decided.actions] == ["DeleteJob"] * gone
    assert decided.wake_at == (NOON + ttl if ttl and not gone else None)


@pytest.mark.parametrize(("seconds", "fails"), [(94, False), (95, True)])
def test_a_job_fails_when_its_deadline_is_over_and_is_looked_at_then(seconds: float, fails: bool):
    made = running(job(activeDeadlineSeconds=100))
    begun = made.model_copy(update={"status": made.status.model_copy(update={"startTime": times.format(NOON - 5)})})
    decided = plan(begun, world(*all_pods(made), environments={1: "uid"}), NOON + seconds)
    assert (decided.status.phase is Phase.FAILED) is fails
    if not fails:
        assert decided.wake_at == NOON + 95
    else:
        assert [one.warning for one in decided.actions if isinstance(one, RecordEvent)] == [True]


def test_a_job_that_a_quota_leaves_half_created_is_looked_at_when_it_gives_up():
    made = job(status=STARTING, scheduleTimeoutSeconds=12)
    first, _ = all_pods(made, PodPhase.WAITING, created=NOON - 10)
    rejection = Rejection("mnist-worker-1", "Forbidden", "exceeded quota: pods", NOON, 9)
    early = plan(made, world(first, rejections=(rejection,)), NOON)
    assert early.wake_at is not None
    assert NOON + 2 <= early.wake_at <= NOON + 8, "before the pod is tried again"
    assert early.status.reason == "QuotaExceeded"
    decided = plan(made, world(first, rejections=(rejection,)), early.wake_at)
    assert (decided.status.phase, decided.status.reason) == (Phase.RESTARTING, "PartiallyCreated")
    assert [one.name for one in decided.actions if isinstance(one, Delete)] == ["mnist-worker-0"]
