"""The tables of `pdj list` and `pdj get`, in columns as kubectl prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paddlejob import contract
from paddlejob.api.types import PaddleJob, Phase, Role
from paddlejob.client.describe.humanize import age, restart_note, run_time, size
from paddlejob.client.describe.progress import progress_page, summary
from paddlejob.plan.restarts import replacement_counts
from paddlejob.plan.size import is_resizable
from paddlejob.targets.log_views import LastOutput
from paddlejob.targets.views import JobView, PodView

if TYPE_CHECKING:
    from paddlejob.client.runs import Run

MOST_REPLACED = 8


def columns(header: list[str], rows: list[list[str]]) -> str:
    """Left-aligned, three spaces apart."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    lines = ["   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [header, *rows]]
    return "\n".join(line.rstrip() for line in lines)


def job_table(views: list[JobView], wide: bool = False, expected: str = "") -> str:
    """One row per job, with a column for the namespace if it is not the expected one or if there are several."""
    header = ["NAME", "STATUS", "MODE", "PS", "WORKER", "PROGRESS", "AGE"] + (["REASON"] if wide else [])
    rows = [_job_row(view, wide) for view in views]
    namespaces = {view.job.namespace for view in views}
    if len(namespaces) > 1 or (expected and namespaces != {expected}):
        header.insert(0, "NAMESPACE")
        rows = [[view.job.namespace, *row] for view, row in zip(views, rows, strict=True)]
    return columns(header, rows)


def _job_row(view: JobView, wide: bool) -> list[str]:
    job = view.job
    ready = [job.status.role(role).ready if role in job.spec.roles else "" for role in (Role.PS, Role.WORKER)]
    state = f"{view.phase} on {view.host}" if view.host else view.phase
    row = [job.name, state, str(job.mode), *ready, summary(job), age(job)]
    return [*row, view.headline] if wide else row


def run_table(runs: list[Run]) -> str:
    """One row per run; the logs of each are read with its number."""
    header = ["NAME", "RUN", "STATUS", "PROGRESS", "STARTED", "DURATION", "SIZE"]
    rows = [
        [
            run.key[1],
            str(run.number),
            run.phase,
            summary(run.job) if run.job else "",
            str(run.job.metadata.creationTimestamp or "") if run.job else "",
            run_time(run.job) if run.job and run.job.status.completionTime else "",
            size(run.size),
        ]
        for run in runs
    ]
    if {run.key[0] for run in runs} != {contract.DEFAULT_NAMESPACE}:
        header.insert(0, "NAMESPACE")
        rows = [[run.key[0], *row] for run, row in zip(runs, rows, strict=True)]
    return columns(header, rows)


def run_data(run: Run) -> dict[str, Any]:
    """For programs."""
    status = run.job.status.model_dump(mode="json", exclude_defaults=True) if run.job else {}
    known = {"namespace": run.key[0], "name": run.key[1], "run": run.number, "phase": run.phase, "bytes": run.size}
    return {**known, "status": status}


def pod_table(pods: list[PodView]) -> str:
    """One row per replica, parameter servers first."""
    shown = sorted(pods, key=lambda pod: (pod.role != Role.PS, pod.role, pod.index))
    rows = [[pod.replica, pod.state, str(pod.attempt), pod.address, pod.exit_text] for pod in shown]
    header = ["REPLICA", "STATE", "ATTEMPT", "ADDRESS", "EXIT"]
    if any(pod.pid for pod in shown):
        header.insert(2, "PID")
        for pod, row in zip(shown, rows, strict=True):
            row.insert(2, str(pod.pid or ""))
    return columns([*header, "LOG"], [[*row, pod.log] for pod, row in zip(shown, rows, strict=True)])


def _restarts(job: PaddleJob) -> str:
    """Where steps are known, backoffLimit counts only the failures since the job last came further."""
    status, limit = job.status, job.spec.backoff_limit
    furthest = status.progress.furthest if status.progress else ""
    if not furthest or status.failuresWithoutProgress == status.restarts:
        return f"restarts {status.restarts} of {limit}"
    since = "in this attempt" if job.spec.live_workers else f"since {furthest}"
    return f"restarts {status.restarts} ({status.failuresWithoutProgress} of {limit} {since})"


def _size(job: PaddleJob) -> str:
    """The actual and the wanted size of an elastic job, and its bounds."""
    worker = job.spec.roles[Role.WORKER]
    most = f", limits {worker.limits}" if worker.limits else ""
    actual = 0 if job.status.phase is Phase.SUSPENDED else job.status.role(Role.WORKER).replicas
    return f"workers: {actual} of {worker.replicas} wanted (requests {worker.requests}{most})"


def job_page(view: JobView, output: LastOutput | None = None) -> str:
    """A job, its progress and its replicas, which last wrote this output."""
    job = view.job
    status = job.status
    lines = [
        f"{view.title}: {view.phase} ({job.mode}), {run_time(job)}, attempt {status.attempt}, "
        f"{_restarts(job)}, disruptions {status.disruptions}"
        + (f", ignored failures {status.ignoredFailures}" if status.ignoredFailures else "")
    ]
    if is_resizable(job):
        lines.append(_size(job))
    if view.note or status.message:
        lines.append(view.note or f"{status.reason}: {status.message}")
    lines += progress_page(job, output)
    if note := restart_note(job):
        lines.append(note)
    if status.avoidedNodes:
        lines.append(f"Avoids {', '.join(status.avoidedNodes)}, where this job failed repeatedly.")
    if status.avoidedDomains:
        lines.append(f"Avoids {', '.join(status.avoidedDomains)}, where not all pods fitted.")
    if ranks := status.role(Role.WORKER).ranks:
        lines.append(f"Workers in the order of their ranks: {ranks}")
    if replaced := _replaced(job):
        lines.append(replaced)
    notes = [pod.note for pod in view.pods if pod.note]
    return "\n".join([*lines, *notes, "", pod_table(view.pods)]) if view.pods else "\n".join(lines)


def _replaced(job: PaddleJob) -> str:
    """The replicas of this attempt whose pods were replaced alone, or an empty string."""
    counts = replacement_counts.parse(job.status.replacements)
    found = [f"{role}-{index} ({counts[role, index]})" for role, index in job.spec.slots if counts.get((role, index))]
    more = f" and {len(found) - MOST_REPLACED} more" if len(found) > MOST_REPLACED else ""
    return f"Replaced alone in this attempt: {', '.join(found[:MOST_REPLACED])}{more}" if found else ""
