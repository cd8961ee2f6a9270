"""Programs that print epochs only, and time that is not counted as productive."""

from __future__ import annotations

from paddlejob.api.types import Condition, PaddleJob, Phase, Progress
from paddlejob.plan import PodPhase, plan, times
from paddlejob.plan.progress import with_reading
from paddlejob.plan.world import LogReading
from tests.support.builders import NOON, all_pods, having, job, pod, running, world


def failed_after(seconds: float, progress: Progress, **status: object) -> PaddleJob:
    made = running(job(workers=2, backoffLimit=3))
    began = Condition(type=Phase.RUNNING, status="True", lastTransitionTime=times.format(NOON - seconds))
    return having(made, made.status.model_copy(update={"progress": progress, "conditions": (began,), **status}))


def decided(made: PaddleJob):
    failed = pod(made, "worker", 1, PodPhase.FAILED, exit_code=1)
    return plan(made, world(all_pods(made)[0], failed, environments={1: "uid"}), NOON).status


def test_an_epoch_that_rose_is_progress():
    made = failed_after(100, Progress(epoch=4, highestEpoch=4, epochAtStart=3), restarts=9, failuresWithoutProgress=1)
    status = decided(made)
    assert (status.phase, status.failuresWithoutProgress, status.nextRestartTime) == (Phase.RESTARTING, 1, "")
    assert status.progress is not None
    assert status.progress.epochAtStart == 4


def test_the_same_epoch_again_is_none_and_ends_at_the_limit():
    made = failed_after(1000, Progress(epoch=4, highestEpoch=4, epochAtStart=4), restarts=9, failuresWithoutProgress=3)
    status = decided(made)
    assert (status.phase, status.reason) == (Phase.FAILED, "BackoffLimitExceeded")
    assert "since epoch 4 was reached" in status.message


def test_steps_that_begin_anew_with_each_epoch_do_not_hide_the_epochs():
    progress = Progress(step=20, highestStep=20, stepAtStart=20, epoch=3, highestEpoch=3, epochAtStart=2)
    assert decided(failed_after(100, progress, failuresWithoutProgress=3)).phase is Phase.RESTARTING


def test_the_highest_epoch_never_falls():
    made = failed_after(100, Progress(highestEpoch=5))
    after = with_reading(made.status, LogReading(1, epoch=2), NOON)
    assert after.progress is not None
    assert (after.progress.epoch, after.progress.highestEpoch) == (2, 5)


def test_time_in_which_nobody_read_the_log_is_not_productive():
    before = Progress(highestStep=10, highestStepTime=times.format(NOON - 60), productiveSeconds=5)
    made = failed_after(100, before)
    late = LogReading(1, step=20, highest=20, step_at=NOON - 1, ahead_since=NOON - 3)
    after = with_reading(made.status, late, NOON).progress
    assert after is not None
    assert after.productiveSeconds == 7
