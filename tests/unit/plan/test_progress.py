"""What is worth a write of the status while a job trains, and from which moment its time counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from paddlejob.api.types import PaddleJob, Phase, Progress, Status
from paddlejob.plan import PodPhase, plan, times
from paddlejob.plan.world import LogReading
from tests.support.builders import NOON, all_pods, having, job, pod, recorded, running, world


def training(*, began: float = -1000, ran: float | None = -1000, progress: dict[str, Any] | None = None, **status: Any):
    """A job that was begun and has run since then, in seconds from now."""
    made = running(job(workers=1))
    since = times.format(NOON + (ran if ran is not None else 0))
    more: dict[str, Any] = {
        "startTime": times.format(NOON + began),
        "conditions": [{"type": "Running", "status": "True", "lastTransitionTime": since}] if ran is not None else [],
        **({"progress": progress} if progress is not None else {}),
        **status,
    }
    return having(made, Status.model_validate(made.status.model_dump(mode="json") | more))


def after(made: PaddleJob, reading: LogReading | None, now: float = NOON) -> Status:
    return plan(made, world(*all_pods(made), environments={1: "uid"}, logs=reading), now).status


def progress_of(made: PaddleJob, reading: LogReading, now: float = NOON) -> Progress:
    found = after(made, reading, now).progress
    assert found is not None
    return found


def test_a_pattern_that_is_not_used_any_more_is_the_reason_of_the_job_until_it_is_corrected():
    made = running(job())
    view = world(*all_pods(made), environments={1: "uid"}, logs=LogReading(1, pattern_too_slow=True))
    slow = plan(made, view, NOON)
    assert (slow.status.phase, slow.status.reason) == (Phase.RUNNING, "PatternTooSlow")
    assert "shows no progress; simplify it" in slow.status.message
    assert [(one.reason, one.warning) for one in recorded(slow)] == [("PatternTooSlow", True)]
    made = having(made, slow.status)
    assert recorded(plan(made, view, NOON + 60)) == [], "it is said once"
    corrected = plan(made, replace(view, logs=LogReading(1, step=1)), NOON + 60).status
    assert corrected.reason == "Running"


def test_everything_that_was_read_is_shown():
    reading = LogReading(
        attempt=1, step=5, total_steps=9, epoch=2, total_epochs=3, checkpoint=4, metrics={"loss": 0.5},
        non_finite={"auc": "nan"}, last_output=NOON - 1.5,
    )  # fmt: skip
    seen = progress_of(training(), reading)
    assert (seen.step, seen.totalSteps, seen.epoch, seen.totalEpochs, seen.checkpointStep) == (5, 9, 2, 3, 4)
    assert (dict(seen.metrics), dict(seen.nonFinite)) == ({"loss": 0.5}, {"auc": "nan"})
    assert (seen.lastOutputTime, seen.highestEpoch) == (times.format(NOON - 1.5), 2)


def test_what_a_new_reader_has_not_seen_yet_stays():
    before = {"step": 5, "totalSteps": 9, "metrics": {"loss": 0.5}, "checkpointStep": 4, "highestEpoch": 3}
    seen = progress_of(training(progress=before), LogReading(attempt=1, epoch=2))
    assert (seen.step, seen.totalSteps, seen.checkpointStep, seen.epoch, seen.highestEpoch) == (5, 9, 4, 2, 3)
    assert dict(seen.metrics) == {"loss": 0.5}


@pytest.mark.parametrize("attempt", [0, 2])
def test_the_log_of_another_attempt_says_nothing(attempt: int):
    assert after(training(), LogReading(attempt=attempt, step=5)).progress is None


def test_the_log_of_a_finished_job_changes_nothing():
    made = training(phase="Completed", completionTime=times.format(NOON - 5))
    assert after(made, LogReading(attempt=1, step=5)).progress is None


@pytest.mark.parametrize(("later", "written"), [(299, False), (300, True)])
def test_output_alone_is_written_every_five_minutes(later: float, written: bool):
    before = {"step": 5, "lastOutputTime": times.format(NOON - 1000)}
    seen = progress_of(training(progress=before), LogReading(attempt=1, step=5, last_output=NOON - 1000 + later))
    assert (seen.lastOutputTime == times.format(NOON - 1000 + later)) is written


def test_the_first_output_is_written_at_once():
    seen = progress_of(training(progress={"step": 5}), LogReading(attempt=1, step=5, last_output=NOON - 7))
    assert seen.lastOutputTime == times.format(NOON - 7)


@pytest.mark.parametrize(
    ("left", "speed", "seconds"),
    [(0, 1.0, 0), (59, 1.0, 59), (120, 2.0, 60), (119, 1.0, 119), (123, 1.0, 130), (3_601, 1.0, 3_660)],
)
def test_the_further_the_expected_end_the_coarser_it_is_and_it_is_never_too_early(
    left: int, speed: float, seconds: int
):
    reading = LogReading(attempt=1, step=5, steps_per_second=speed, steps_left=left)
    assert progress_of(training(), reading).eta == times.format(NOON + seconds)


@pytest.mark.parametrize("about", [{"steps_per_second": None}, {"steps_left": None}, {"steps_per_second": 0.0}])
def test_without_a_speed_or_a_total_no_end_is_expected(about: dict[str, Any]):
    given = {"steps_per_second": 2.0, "steps_left": 10} | about
    assert progress_of(training(), LogReading(attempt=1, step=5, **given)).eta == ""


def test_an_end_in_the_far_future_can_still_be_written():
    reading = LogReading(attempt=1, step=5, steps_per_second=1e-9, steps_left=10**9)
    assert progress_of(training(), reading).eta.startswith("9999-12-31")


def test_the_expected_end_changes_only_with_the_step():
    before = {"step": 5, "eta": times.format(NOON + 600)}
    same = LogReading(attempt=1, step=5, epoch=1, steps_per_second=1.0, steps_left=10)
    assert progress_of(training(progress=before), same).eta == times.format(NOON + 600)
    unknown = LogReading(attempt=1, epoch=1, steps_per_second=1.0, steps_left=10)
    assert progress_of(training(progress=before), unknown).eta == times.format(NOON + 600)


def rising(highest: int = 20, at: float = 0.0, ahead: float | None = -50.0) -> LogReading:
    since = None if ahead is None else NOON + ahead
    return LogReading(attempt=1, step=highest, highest=highest, step_at=NOON + at, ahead_since=since)


@pytest.mark.parametrize(
    ("before", "ahead", "gained"),
    [
        ({}, -50, 50),
        ({}, None, 0),
        ({"highestStep": 10, "highestStepTime": times.format(NOON - 30)}, -50, 30),
        ({"highestStep": 10, "highestStepTime": times.format(NOON - 30)}, -20, 20),
        ({"highestStep": 10, "highestStepTime": times.format(NOON - 30)}, None, 30),
        ({"highestStep": 10, "highestStepTime": times.format(NOON + 30)}, -20, 0),
        ({"highestStep": 20, "highestStepTime": times.format(NOON - 30)}, -20, 0),
        ({"highestStep": 21, "highestStepTime": times.format(NOON - 30)}, -20, 0),
    ],
)
def test_time_counts_as_productive_from_the_last_rise_or_from_when_the_attempt_was_ahead(
    before: dict[str, Any], ahead: float | None, gained: int
):
    seen = progress_of(training(progress={"productiveSeconds": 100, **before}), rising(ahead=ahead))
    assert seen.productiveSeconds == 100 + gained
    assert seen.highestStep == max(20, before.get("highestStep", 0))


@pytest.mark.parametrize(
    ("ran", "ahead", "progress", "late"),
    [
        (-1000, -880, None, False),
        (-1000, -879, None, True),
        (-1000, -500, {"step": 1}, False),
        (None, -500, None, False),
        (-1000, None, None, False),
    ],
)
def test_time_before_the_log_was_ever_read_is_left_out(
    ran: float | None, ahead: float | None, progress: dict[str, Any] | None, late: bool
):
    seen = progress_of(training(began=-1100, ran=ran, progress=progress), rising(ahead=ahead))
    assert seen.countedSince == times.format(NOON + (ahead or 0) if late else NOON - 1100)


@pytest.mark.parametrize(
    ("productive", "began", "percent"),
    [(50, -100, 50), (99, -1000, 9), (200, -100, 100), (1, -1, 100), (0, 0, None)],
)
def test_goodput_is_the_share_of_productive_time(productive: int, began: float, percent: int | None):
    progress = {"highestStep": 5, "countedSince": times.format(NOON + began), "productiveSeconds": productive}
    assert after(training(progress=progress), None).goodput == percent


@pytest.mark.parametrize(("before", "written"), [(54, 54), (55, 50), (45, 50), (46, 46), (None, 50)])
def test_goodput_alone_is_worth_a_write_when_it_changed_by_five_points(before: int | None, written: int):
    made = training(
        progress={"highestStep": 5, "countedSince": times.format(NOON - 100), "productiveSeconds": 50}, goodput=before
    )
    settled = having(made, after(made, None).model_copy(update={"goodput": before}))
    assert after(settled, None).goodput == written


def test_without_a_step_there_is_no_goodput():
    assert after(training(progress={"highestEpoch": 5}), None).goodput is None


def test_the_time_for_which_a_job_was_suspended_does_not_count():
    progress = {"highestStep": 5, "countedSince": times.format(NOON - 1000), "productiveSeconds": 50}
    suspended = [{"type": "Suspended", "status": "True", "lastTransitionTime": times.format(NOON - 300)}]
    made = training(progress=progress, phase="Suspended", attempt=2, conditions=suspended, goodput=33)
    seen = plan(made, world(), NOON).status
    assert seen.progress is not None
    assert (seen.progress.countedSince, seen.goodput) == (times.format(NOON - 700), 7)
    still = having(job(workers=1, suspend=True), made.status)
    assert plan(still, world(), NOON).status.goodput == 33


def test_a_suspended_job_shows_how_far_it_is_until_it_begins_again():
    made = training(
        progress={"step": 9, "totalSteps": 12, "epoch": 2, "highestStep": 9, "eta": times.format(NOON + 60)}
    )
    suspended = having(job(workers=1, suspend=True), made.status)
    paused = plan(suspended, world(), NOON).status
    assert paused.progress is not None and paused.attempt == 2
    assert (paused.phase, paused.progress.summary, paused.progress.eta) == (Phase.SUSPENDED, "9/12", "")
    still = plan(having(suspended, paused), world(), NOON + 1).status
    assert still.progress is not None and still.progress.summary == "9/12"
    resumed = plan(having(job(workers=1), still), world(), NOON + 2).status
    assert resumed.progress is not None and (resumed.progress.step, resumed.progress.epoch) == (None, None)


def test_with_the_next_attempt_only_what_is_true_of_the_job_stays():
    progress = {
        "step": 9, "epoch": 2, "eta": times.format(NOON + 60), "highestStep": 12, "highestEpoch": 3,
        "highestStepTime": times.format(NOON - 5), "metrics": {"loss": 0.5}, "productiveSeconds": 50,
    }  # fmt: skip
    made = training(progress=progress)
    pods = all_pods(made, disrupted=True)
    status = plan(made, world(*pods, environments={1: "uid"}), NOON).status
    seen = status.progress
    assert seen is not None
    assert status.attempt == 2
    assert (seen.step, seen.epoch, seen.eta, seen.highestStepTime) == (None, None, "", "")
    assert (seen.highestStep, seen.highestEpoch, seen.stepAtStart, seen.epochAtStart) == (12, 3, 12, 3)
    assert (dict(seen.metrics), seen.productiveSeconds) == ({"loss": 0.5}, 50)


@pytest.mark.parametrize("position", [{"step": 3}, {"epoch": 1}])
def test_the_first_position_of_an_attempt_is_not_shown_with_the_loss_of_the_previous_one(position: dict[str, int]):
    made = training(progress={"highestStep": 12, "metrics": {"loss": 0.5}, "nonFinite": {"acc": "nan"}})
    assert progress_of(made, LogReading(attempt=1, total_steps=50)).metrics == {"loss": 0.5}
    found = progress_of(made, LogReading(attempt=1, **position))
    assert (found.metrics, found.nonFinite) == ({}, {})


def test_goodput_is_written_with_whatever_else_changed():
    progress = {"highestStep": 5, "countedSince": times.format(NOON - 100), "productiveSeconds": 50}
    made = training(progress=progress, goodput=52)
    assert after(made, LogReading(attempt=1, epoch=3)).goodput == 50


def reading(step: int, at: float, **more: Any) -> LogReading:
    return LogReading(attempt=1, step=step, highest=step, step_at=at, ahead_since=NOON, last_output=at, **more)


def begun(**status: Any) -> PaddleJob:
    """A job that started at noon."""
    made = running(job(**status.pop("spec", {})))
    return having(made, made.status.model_copy(update={"startTime": times.format(NOON), **status}))


def seen(made: PaddleJob, logs: LogReading | None, now: float) -> Status:
    return plan(made, world(*all_pods(made), environments={made.status.attempt: "uid"}, logs=logs), now).status


def progress(status: Status) -> Progress:
    assert status.progress is not None
    return status.progress


def test_a_job_without_a_reading_keeps_its_progress():
    made = begun(progress=Progress(step=5, highestStep=5))
    assert progress(seen(made, None, NOON + 60)).step == 5


def test_time_counts_while_steps_go_beyond_the_highest():
    made, goodput = begun(), []
    for second in (10, 20, 30, 40, 50, 60):
        step = second if second <= 30 else 30
        status = seen(made, reading(step, NOON + min(second, 30)), NOON + second)
        made = having(made, status)
        goodput.append(status.goodput)
    assert progress(made.status).productiveSeconds == 30
    assert goodput == [100, 100, 100, 75, 60, 50]


def test_a_new_attempt_keeps_the_highest_step_and_counts_only_beyond_it():
    made = begun()
    made = having(made, seen(made, reading(100, NOON + 50), NOON + 50))
    failed = all_pods(made, PodPhase.FAILED, exit_code=1)
    status = plan(made, world(*failed, environments={1: "uid"}), NOON + 60).status
    found = progress(status)
    assert (found.step, found.stepAtStart, found.highestStep, found.productiveSeconds) == (None, 100, 100, 50)
    made = having(made, status.model_copy(update={"publishedAttempt": 2}))
    behind = replace(reading(80, NOON + 75), attempt=2, ahead_since=None)
    found = progress(seen(made, behind, NOON + 80))
    assert (found.step, found.highestStep, found.productiveSeconds) == (80, 100, 50)
    ahead = replace(reading(130, NOON + 95), attempt=2, ahead_since=NOON + 85)
    status = seen(made, ahead, NOON + 100)
    assert (progress(status).highestStep, progress(status).productiveSeconds) == (130, 60)
    assert status.goodput == 60


def test_a_failure_right_after_a_reading_still_counts_the_steps_that_were_read():
    made = begun()
    failed = all_pods(made, PodPhase.FAILED, exit_code=1)
    status = plan(made, world(*failed, environments={1: "uid"}, logs=reading(9, NOON + 5)), NOON + 6).status
    assert (progress(status).highestStep, progress(status).stepAtStart) == (9, 9)


def test_a_finished_job_keeps_its_goodput():
    made = begun()
    made = having(made, seen(made, reading(100, NOON + 50), NOON + 50))
    done = world(*all_pods(made, PodPhase.SUCCEEDED), environments={1: "uid"})
    made = having(made, plan(made, done, NOON + 100).status)
    assert (made.status.phase, made.status.goodput) == (Phase.COMPLETED, 50)
    assert plan(made, world(pod(made, "worker", 0, PodPhase.SUCCEEDED)), NOON + 1000).status.goodput == 50
