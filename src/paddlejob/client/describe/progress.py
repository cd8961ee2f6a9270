"""How far training is, as people read it: step, epoch, loss, speed, expected end, last output."""

from __future__ import annotations

import time
from collections.abc import Iterator

from paddlejob.api.types import PaddleJob, Phase, Progress
from paddlejob.client.describe.humanize import duration
from paddlejob.plan import times
from paddlejob.targets.log_views import LastOutput

SHORT = {"learning_rate": "lr"}
UNITS = {"samples_per_second": "samples/s"}


def summary(job: PaddleJob) -> str:
    """`1200/5000` or `epoch 3/10`; empty if no progress is known."""
    return job.status.progress.summary if job.status.progress else ""


def position(job: PaddleJob) -> str:
    """`step 1200/5000` or `epoch 3/10`; empty if no progress is known."""
    short = summary(job)
    return f"step {short}" if short[:1].isdigit() else short


def fraction(job: PaddleJob) -> float | None:
    """How much of the training is done, from 0 to 1; None if the end is not known."""
    progress = job.status.progress or Progress()
    for done, total in ((progress.step, progress.totalSteps), (progress.epoch, progress.totalEpochs)):
        if done is not None and total:
            return min(1.0, max(0.0, done / total))
    return None


def progress_line(job: PaddleJob, eta: bool = True) -> str:
    """`step 1200/5000, loss 0.25, 310 samples/s, ETA 4m10s`; empty if no progress is known."""
    progress = job.status.progress
    if progress is None:
        return ""
    left = _time_left(job, progress) if eta else ""
    parts = [position(job), _epoch(progress), *_metrics(progress), f"ETA {left}" if left else ""]
    return ", ".join(part for part in parts if part)


def progress_page(job: PaddleJob, output: LastOutput | None) -> list[str]:
    """The same and how recent it is, in lines of `pdj get`."""
    progress = job.status.progress or Progress()
    lines = [line] if (line := progress_line(job)) else []
    facts = [f"last output {ago(output)}"] if output and job.status.phase is Phase.RUNNING else []
    if progress.checkpointStep is not None:
        facts.append(f"last checkpoint at step {progress.checkpointStep}")
    if job.status.goodput is not None:
        facts.append(f"goodput {job.status.goodput}%")
    return [*lines, ", ".join(facts)] if facts else lines


def reported_output(job: PaddleJob) -> LastOutput | None:
    """The last output by the status, for jobs whose logs cannot be read now."""
    progress = job.status.progress
    return LastOutput("", times.parse(progress.lastOutputTime)) if progress and progress.lastOutputTime else None


def ago(output: LastOutput) -> str:
    """`12s ago`."""
    return f"{duration(time.time() - output.time)} ago"


def _epoch(progress: Progress) -> str:
    """The epoch, unless the summary shows it already."""
    if progress.epoch is None or not progress.totalEpochs or progress.summary.startswith("epoch"):
        return ""
    return f"epoch {progress.epoch}/{progress.totalEpochs}"


def _metrics(progress: Progress) -> Iterator[str]:
    """Loss first and speed last, also where a metric is nan."""
    values = {name: f"{value:.4g}" for name, value in progress.metrics.items()} | progress.nonFinite
    for name in sorted(values, key=lambda name: (name != "loss", name in UNITS)):
        yield f"{_rounded(values[name])} {UNITS[name]}" if name in UNITS else f"{SHORT.get(name, name)} {values[name]}"


def _rounded(value: str) -> str:
    return f"{float(value):,.0f}" if abs(float(value)) >= 100 else value


def _time_left(job: PaddleJob, progress: Progress) -> str:
    """Empty unless the job runs and its end is still ahead."""
    if job.status.phase is not Phase.RUNNING or not progress.eta:
        return ""
    left = times.parse(progress.eta) - time.time()
    return duration(left) if left > 0 else ""
