"""The checks of a job file that `pdj validate` and `pdj run` share: every finding once, with its line."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from paddlejob.api.checks.launcher import launcher_warnings
from paddlejob.api.checks.objects import check_object
from paddlejob.api.checks.pods import check_job
from paddlejob.api.checks.references import missing_keys
from paddlejob.api.fault import Fault, Severity, line_of
from paddlejob.api.types import PaddleJob
from paddlejob.client.files import is_paddle_job

Object = dict[str, Any]
LARGE_JOB = 1000
"""Replicas below which the environment of a job always fits into a ConfigMap."""


@dataclass(frozen=True)
class Finding:
    message: str
    path: str = ""
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


@dataclass
class Report:
    """What is wrong with one file."""

    file: str
    valid: bool = True
    jobs: list[str] = field(default_factory=list)
    errors: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)

    def lines(self, findings: list[Finding]) -> list[str]:
        return [f"{self.file}:{one.line}: {one}" if one.line else f"{self.file}: {one}" for one in findings]


def check_objects(source: str, objects: list[Object], cluster: bool = True) -> Report:
    """The findings about the jobs and other objects of a file, with those that only concern a cluster or without."""
    jobs = [one for one in objects if is_paddle_job(one)]
    report = Report(source, jobs=[_name(job) for job in jobs])
    for one in objects:
        if is_paddle_job(one):
            _check_job(one, [other for other in objects if other is not one], report, cluster)
        else:
            report.errors += [_finding(one, fault) for fault in check_object(one)]
    report.errors += _duplicates(jobs)
    report.valid = not report.errors
    return report


def _check_job(job: Object, others: list[Object], report: Report, cluster: bool) -> None:
    faults = check_job(job)
    if not any(fault.severity is Severity.ERROR for fault in faults):
        faults += missing_keys(job, others)
    for fault in faults:
        if fault.severity is Severity.ERROR:
            report.errors.append(_finding(job, fault))
        elif cluster or fault.severity is Severity.WARNING:
            report.warnings.append(_finding(job, fault))
    if any(fault.severity is Severity.ERROR for fault in faults):
        return
    parsed = PaddleJob.model_validate(job)
    report.warnings += [Finding(warning) for warning in launcher_warnings(parsed)]
    if message := _too_large(parsed):
        report.errors.append(Finding(f"job {parsed.name}: {message}"))


def _finding(document: Object, fault: Fault) -> Finding:
    return Finding(fault.message, fault.where, line_of(document, fault.path) or None)


def _duplicates(jobs: list[Object]) -> list[Finding]:
    counts = Counter((_metadata(job).get("namespace") or "default", _name(job)) for job in jobs)
    return [Finding(f"two jobs are named {name}; rename one") for (_, name), count in counts.items() if count > 1]


def _name(job: Object) -> str:
    return str(_metadata(job).get("name"))


def _metadata(job: Object) -> Object:
    return job.get("metadata") or {}


def _too_large(job: PaddleJob) -> str:
    """Why no target can run a job that the API server accepts."""
    if job.spec.pods_wanted < LARGE_JOB:
        return ""
    from paddlejob.plan.objects.environment import too_large

    return too_large(job)
