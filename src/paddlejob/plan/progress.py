"""The progress that a status reports, from what the logs of the current attempt tell."""

from __future__ import annotations

from math import ceil, floor

from paddlejob.api.types import Phase, Progress, Status
from paddlejob.plan import times
from paddlejob.plan.world import LogReading

OUTPUT_APART = 300.0
"""A new time of the last output alone is not worth a write until it is this many seconds newer."""
LONGEST_TO_FIRST_READING = 120.0
"""Seconds: the log of a job that had trained longer than this when it was first read could not be read before."""
GOODPUT_STEP = 5
"""Points by which goodput must have changed to be news by itself."""
ETA_STEPS = ((120.0, 1), (1200.0, 10))
"""Seconds left, and the seconds to which the expected end is rounded up below that; else to a minute."""


def with_reading(status: Status, reading: LogReading | None, now: float) -> Status:
    """The status with what the logs tell about the attempt that it names."""
    if reading is None or reading.attempt != status.attempt or status.finished:
        return status
    before = status.progress or Progress()
    after = _advanced(before, reading).model_copy(update=_as_read(before, reading, now))
    if reading.epoch is not None:
        after = after.model_copy(update={"highestEpoch": max(reading.epoch, before.highestEpoch or reading.epoch)})
    if not after.countedSince and after.highestStep is not None:
        after = after.model_copy(update={"countedSince": _first_counted(status, reading)})
    if not _is_news(before, after):
        return status
    return status.model_copy(update={"progress": after})


def _as_read(before: Progress, reading: LogReading, now: float) -> dict[str, object]:
    """The fields that simply show the newest values. What a new reader has not seen yet stays.

    The first position of an attempt takes the place of the metrics of the previous one, which belong to other steps.
    """
    position = (reading.step, reading.epoch) != (None, None)
    first = position and before.step is None and before.epoch is None
    found: dict[str, object] = {
        "step": reading.step,
        "totalSteps": reading.total_steps,
        "epoch": reading.epoch,
        "totalEpochs": reading.total_epochs,
        "checkpointStep": reading.checkpoint,
        **({"metrics": reading.metrics, "nonFinite": reading.non_finite} if reading.has_metrics or first else {}),
        "lastOutputTime": times.format(reading.last_output) if reading.last_output is not None else None,
    }
    eta = _eta(reading, now) if reading.step not in (None, before.step) else before.eta
    return {name: value for name, value in found.items() if value is not None} | {"eta": eta}


def _eta(reading: LogReading, now: float) -> str:
    if not reading.steps_per_second or reading.steps_left is None:
        return ""
    left = reading.steps_left / reading.steps_per_second
    step = next((step for below, step in ETA_STEPS if left < below), 60)
    return times.format(ceil(min(now + left, times.LATEST) / step) * step)


def _advanced(before: Progress, reading: LogReading) -> Progress:
    """Count the time since the highest step last rose in this attempt, or since the attempt reached it."""
    highest, at = reading.highest, reading.step_at
    if highest is None or at is None or (before.highestStep is not None and highest <= before.highestStep):
        return before
    # A reader that began later, as after a crash of the engine, does not know what happened before.
    known = times.parse(before.highestStepTime) if before.highestStepTime else None
    since = max(known, reading.ahead_since or known) if known is not None else reading.ahead_since
    gained = max(0, floor(at) - floor(since)) if since is not None else 0
    return before.model_copy(
        update={
            "highestStep": highest,
            "highestStepTime": times.format(at),
            "productiveSeconds": before.productiveSeconds + gained,
        }
    )


def _first_counted(status: Status, reading: LogReading) -> str:
    """How long training made progress before its log was ever read is not known, so that time is left out."""
    running = status.condition(Phase.RUNNING)
    first = reading.ahead_since
    if first is None or running is None or running.status != "True" or not status.startTime:
        return status.startTime
    late = first - times.parse(running.lastTransitionTime) > LONGEST_TO_FIRST_READING
    return times.format(first) if late and status.progress is None else status.startTime


def _is_news(before: Progress, after: Progress) -> bool:
    if before.model_copy(update={"lastOutputTime": ""}) != after.model_copy(update={"lastOutputTime": ""}):
        return True
    if not before.lastOutputTime or not after.lastOutputTime:
        return before != after
    return times.parse(after.lastOutputTime) - times.parse(before.lastOutputTime) >= OUTPUT_APART


def carried_on(before: Status, after: Status, now: float) -> Status:
    """The status that follows `before`, with the progress that belongs to its attempt and phase."""
    progress = reached = after.progress
    if progress is None or reached is None or before.finished:
        return after
    if after.attempt != before.attempt:
        progress = _next_attempt(progress)
    if after.phase is Phase.SUSPENDED:
        # Until the next attempt begins, the position of the last one shows how far training is.
        progress = progress.model_copy(update={"step": reached.step, "epoch": reached.epoch})
    elif before.phase is Phase.SUSPENDED:
        progress = progress.model_copy(update={"step": None, "epoch": None})
    if before.phase is Phase.SUSPENDED and after.phase is not Phase.SUSPENDED and progress.countedSince:
        suspended = before.condition(Phase.SUSPENDED)
        paused = now - times.parse(suspended.lastTransitionTime) if suspended else 0.0
        since = times.format(times.parse(progress.countedSince) + max(0.0, paused))
        progress = progress.model_copy(update={"countedSince": since})
    after = after.model_copy(update={"progress": progress, "goodput": before.goodput})
    current = before.goodput if after.phase is Phase.SUSPENDED else goodput(after, now)
    # It falls by itself while training makes no progress, and that alone is rarely worth a write.
    is_news = after != before or before.goodput is None or abs((current or 0) - before.goodput) >= GOODPUT_STEP
    return after.model_copy(update={"goodput": current}) if is_news else after


def _next_attempt(progress: Progress) -> Progress:
    """What is true of the job stays; what is true of an attempt begins anew."""
    ends: dict[str, object] = {"step": None, "epoch": None, "eta": "", "highestStepTime": ""}
    return progress.model_copy(
        update={**ends, "stepAtStart": progress.highestStep, "epochAtStart": progress.highestEpoch}
    )


def goodput(status: Status, now: float) -> int | None:
    """Percent of the job's time, until now, in which it went beyond its highest step; None if no step is known."""
    progress = status.progress
    if progress is None or progress.highestStep is None or not progress.countedSince:
        return None
    active = now - times.parse(progress.countedSince)
    return min(100, int(100 * progress.productiveSeconds / active)) if active >= 1 else None
