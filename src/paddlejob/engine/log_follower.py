"""Follows the logs of one attempt of a job: lines go in, a LogReading comes out. It knows no files and no requests."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from paddlejob.engine.step_counter import StepCounter
from paddlejob.logs.series import LoggedSample
from paddlejob.plan.world import LogReading
from paddlejob.progress import Parser, Sample
from paddlejob.redaction import without_environment

LAST_LINES = 8
LINE_LIMIT = 200
"""Characters of each of the last lines that are kept for a message."""
LAST_BARS = 20
"""Of a line that a progress bar rewrote many times, only the last versions are parsed."""
MOST_METRICS = 30

Line = tuple[float, str]
"""When it was printed, in seconds since the epoch, and its text."""


class LogFollower:
    """`highest` is the highest step of the job when the attempt began."""

    def __init__(self, attempt: int, parser: Parser, highest: int | None) -> None:
        self.attempt = attempt
        self._parser = parser
        self._steps = StepCounter(highest)
        self._metrics: dict[str, float] = {}
        self._non_finite: dict[str, str] = {}
        self._checkpoint: int | None = None
        self._last_output: float | None = None
        self._last_lines: deque[str] = deque(maxlen=LAST_LINES)
        self._draws_bar = False
        self._silent_since: float | None = None
        self._silent_seconds: float | None = None
        self._processes = ""

    def feed(self, lines: Iterable[Line]) -> list[LoggedSample]:
        """Take new lines of worker 0, in order; returns what they tell."""
        found: list[LoggedSample] = []
        for at, text in lines:
            self.printed(at)
            bars = [bar for bar in text.split("\r") if bar.strip()][-LAST_BARS:]
            self._draws_bar = self._draws_bar or len(bars) > 1
            if bars:
                self._last_lines.append(without_environment(bars[-1].rstrip())[:LINE_LIMIT])
            samples = [sample for bar in bars if (sample := self.parse(at, bar))]
            found += [LoggedSample(self.attempt, at, sample) for sample in samples if sample.tells_something]
        return found

    def parse(self, at: float, text: str) -> Sample | None:
        """Take the position and the metrics of a line or of a progress bar, which may not be complete yet."""
        sample = self._parser.parse(text)
        if sample is not None:
            self._take(at, sample)
        return sample

    def printed(self, at: float) -> None:
        """A worker printed a line at this time."""
        self._last_output = max(at, self._last_output or at)

    def _take(self, at: float, sample: Sample) -> None:
        self._steps.count(at, sample)
        self._checkpoint = sample.checkpoint if sample.checkpoint is not None else self._checkpoint
        for name, value in sample.metrics.items():
            self._non_finite.pop(name, None)
            if name in self._metrics or len(self._metrics) < MOST_METRICS:
                self._metrics[name] = float(f"{value:.6g}")
        for name, text in sample.non_finite.items():
            self._metrics.pop(name, None)
            if name in self._non_finite or len(self._non_finite) < MOST_METRICS:
                self._non_finite[name] = text

    # Silence is measured by a clock that stops while the machine sleeps, so its times are not those of lines.

    def hear(self, moment: float) -> None:
        """A worker printed at this moment of the monotonic clock, or all workers have just begun to run."""
        self._silent_since = max(moment, self._silent_since or moment)
        self._silent_seconds = 0.0
        self._processes = ""

    def begin_anew(self) -> None:
        """Not all workers run: silence counts from when they do."""
        self._silent_since = self._silent_seconds = None

    def hear_nothing(self, moment: float) -> None:
        """Every worker that runs was looked at, and none has printed since the last one did."""
        if self._silent_since is not None:
            self._silent_seconds = moment - self._silent_since

    @property
    def silent_since(self) -> float | None:
        return self._silent_since

    def describe_processes(self, text: str) -> None:
        """What the processes do that print nothing."""
        self._processes = text

    @property
    def reading(self) -> LogReading:
        steps = self._steps
        return LogReading(
            attempt=self.attempt,
            step=steps.step,
            total_steps=steps.total_steps,
            epoch=steps.epoch,
            total_epochs=steps.total_epochs,
            checkpoint=self._checkpoint,
            metrics=dict(self._metrics),
            non_finite=dict(self._non_finite),
            highest=steps.highest,
            step_at=steps.rose_at,
            ahead_since=steps.ahead_since,
            last_output=self._last_output,
            steps_per_second=steps.per_second,
            steps_left=steps.left,
            silent_seconds=self._silent_seconds,
            last_lines="\n".join(self._last_lines),
            draws_bar=self._draws_bar,
            processes=self._processes,
        )
