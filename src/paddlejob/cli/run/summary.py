"""How a job ended, in a few lines."""

from __future__ import annotations

from pathlib import Path

from paddlejob.api.types import PaddleJob, Phase
from paddlejob.client.describe.humanize import restarts, run_time
from paddlejob.client.describe.progress import position, progress_line
from paddlejob.logs.files import last_lines
from paddlejob.progress import Parser
from paddlejob.targets.views import JobView

LOG_LINES = 3


def _result(job: PaddleJob, log: Path | None) -> list[str]:
    """How far training came, and the last lines of the log that are not about progress."""
    lines = last_lines(log, LOG_LINES, without_noise=True) if log else []
    progress = progress_line(job)
    if not progress:
        return lines
    parser = Parser(job.spec.progress)
    samples = ((line, parser.parse(line)) for line in lines)
    return [progress, *(line for line, sample in samples if not sample or not sample.has_position)]


def summarize(view: JobView) -> str:
    """Print how the job ended; returns why it did not complete, or an empty string."""
    job = view.job
    if job.status.phase is Phase.COMPLETED:
        worker = next((pod for pod in view.pods if pod.role == "worker"), None)
        log = Path(worker.log) if worker and worker.log else None
        where = f"logs: {log.parent}" if log else f"logs: `pdj logs {job.name}{view.flags}`"
        print(f"{view.title} completed in {run_time(job)}{restarts(job)}; {where}")
        print("".join(f"  {line}\n" for line in _result(job, log)), end="")
        return ""
    if job.status.phase is Phase.FAILED:
        reached = f" at {position(job)}" if position(job) else ""
        command = f"pdj why {job.name}{view.flags}"
        print(f"{view.title} failed after {run_time(job)}{reached}{restarts(job)}; for details run `{command}`")
        return f"{view.title} failed: {job.status.reason}: {job.status.message}"
    if job.status.phase is Phase.SUSPENDED:
        return f"{view.title} is suspended; run `pdj resume {job.name}{view.flags}` to continue"
    return f"{view.title}: {view.note or view.phase}"
