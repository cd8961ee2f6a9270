"""The last read: an attempt is judged, and its pods deleted, only after its log was read to the end or given up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from paddlejob.api.types import PaddleJob, Phase, Role
from paddlejob.plan import Plan, PodPhase, ReadLog, World, plan
from paddlejob.plan.world import LogReading
from tests.support.builders import NOON, all_pods, having, job, pod, running, world

SILENT = LogReading(1, silent_seconds=61.0)


def unread(made: PaddleJob, *pods: Any, **more: Any) -> World:
    return world(*(pods or all_pods(made)), environments={1: "uid"}, log_unread=True, **more)


def ending(name: str) -> tuple[PaddleJob, World]:
    made = running(job(workers=2, stallSeconds=60, suspend=name == "suspended"))
    others = pod(made, "worker", 1)
    match name:
        case "completed":
            return made, unread(made, *all_pods(made, PodPhase.SUCCEEDED))
        case "failed":
            return made, unread(made, pod(made, "worker", 0, PodPhase.FAILED, exit_code=1), others)
        case "a peer failed":
            return made, unread(made, pod(made, "worker", 0), pod(made, "worker", 1, PodPhase.FAILED, exit_code=1))
        case "evicted":
            return made, unread(made, pod(made, "worker", 0, PodPhase.FAILED, disrupted=True, reason="Evicted"), others)
        case "stalled":
            return made, unread(made, logs=SILENT)
    return made, unread(made)


@pytest.mark.parametrize("name", ["completed", "failed", "a peer failed", "evicted", "stalled", "suspended"])
def test_however_an_attempt_ends_its_log_is_read_first_and_nothing_else_happens(name: str):
    made, view = ending(name)
    first = plan(made, view, NOON)
    assert first.actions == (ReadLog(1),)
    assert first.status.model_copy(update={"worker": made.status.worker}) == made.status
    assert first.wake_at is not None and first.wake_at <= NOON + 1
    then = plan(made, replace(view, log_unread=False), NOON)
    assert then.status.phase != made.status.phase and then.actions


def test_a_success_is_on_record_before_the_log_is_read_whatever_happens_to_its_pods_meanwhile():
    made, view = ending("completed")
    first = plan(made, view, NOON)
    assert first.status.role(Role.WORKER).finished == "0-1"
    then = plan(having(made, first.status), replace(view, pods=(), log_unread=False), NOON + 1)
    assert then.status.phase is Phase.COMPLETED


def plans_to_read(decided: Plan) -> bool:
    return any(isinstance(action, ReadLog) for action in decided.actions)


def test_a_job_that_trains_on_or_has_ended_or_never_began_is_not_read_for_that():
    made = running(job(workers=2))
    assert not plans_to_read(plan(made, unread(made), NOON))
    ended = made.status.model_copy(update={"phase": "Completed", "completionTime": "2027-01-15T08:00:00Z"})
    assert not plans_to_read(plan(having(made, ended), unread(made), NOON))
    unpublished = made.status.model_copy(update={"publishedAttempt": 0})
    failed = pod(made, "worker", 0, PodPhase.FAILED, exit_code=1)
    assert not plans_to_read(plan(having(made, unpublished), unread(made, failed, pod(made, "worker", 1)), NOON))


def test_a_first_worker_that_is_replaced_alone_is_read_first():
    made = running(job(ps=1, workers=2, elastic=1, withGloo=0))
    lost = pod(made, "worker", 0, PodPhase.FAILED, disrupted=True, reason="Evicted")
    trained = LogReading(1, step=5, metrics={"loss": 0.5})
    view = unread(made, pod(made, "ps", 0), lost, pod(made, "worker", 1), logs=trained)
    assert plan(made, view, NOON).actions == (ReadLog(1),)
    then = plan(made, replace(view, log_unread=False), NOON)
    assert (then.status.attempt, then.status.disruptions) == (1, 1)
