"""Check: everything that is wrong or doubtful about what a user names, on any target; each finding once.

`pdj run`, `validate`, `plan`, `submit`, `rerun` and the Python API all call it. They only decide how to show findings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from paddlejob import contract
from paddlejob.api.checks.objects import check_object
from paddlejob.api.checks.pods import check_job
from paddlejob.api.checks.references import missing_keys
from paddlejob.api.fault import Fault, Severity, line_of
from paddlejob.api.types import PaddleJob
from paddlejob.client.files import is_paddle_job
from paddlejob.client.start.load import CLUSTER_SCOPED, Loaded
from paddlejob.errors import InvalidJob, located, sentence

Object = dict[str, Any]
LARGE_JOB = 1000
"""Replicas below which the environment of a job always fits into a ConfigMap."""


@dataclass(frozen=True)
class Finding:
    """`message` says what is wrong with the field at `path`, and what to change."""

    source: str
    message: str
    path: str = ""
    line: int | None = None
    severity: Severity = Severity.ERROR
    column: int = 0

    def __str__(self) -> str:
        problem = sentence(self.path, self.message) if self.path else self.message
        return located(self.source, problem, self.line or 0, self.column)


@dataclass(frozen=True)
class Checked:
    """What a user names, without errors. Only `check` makes it, and only it can be placed."""

    loaded: tuple[Loaded, ...]
    warnings: tuple[str, ...]


def check(loaded: Sequence[Loaded], cluster: Severity | None, namespace: str = "") -> Checked:
    """Raises InvalidJob with all errors. `cluster` says how to take what is wrong only there; None: not at all."""
    taken: dict[Severity | None, list[str]] = {Severity.ERROR: [], Severity.WARNING: [], None: []}
    for one in findings(loaded, namespace):
        taken[cluster if one.severity is Severity.CLUSTER else one.severity].append(str(one))
    if taken[Severity.ERROR]:
        raise InvalidJob(taken[Severity.ERROR])
    return Checked(tuple(loaded), tuple(dict.fromkeys(taken[Severity.WARNING])))


def findings(loaded: Sequence[Loaded], namespace: str = "") -> list[Finding]:
    """`namespace` is that which the user chose; an object of another one is an error."""
    found: list[Finding] = []
    for one in loaded:
        if one.error:
            error = one.error
            found.append(Finding(one.source, error.problem, line=error.line or None, column=error.column))
        for document in one.objects:
            faults = [*_faults(document, one.objects), *_other_namespace(document, namespace)]
            found += [_finding(one.source, document, fault) for fault in faults]
    return [*found, *_duplicates(loaded)]


def _finding(source: str, document: Object, fault: Fault) -> Finding:
    return Finding(source, fault.message, fault.where, line_of(document, fault.path) or None, fault.severity)


def _faults(document: Object, objects: Sequence[Object]) -> list[Fault]:
    if not is_paddle_job(document):
        return [*check_object(document)]
    found = check_job(document)
    if any(fault.severity is Severity.ERROR for fault in found):
        return found
    return [*found, *missing_keys(document, [*objects]), *_too_large(document)]


def _too_large(document: Object) -> Iterator[Fault]:
    """Why no target can run a job that the API server accepts."""
    job = PaddleJob.model_validate(document)
    if job.spec.pods_wanted < LARGE_JOB:
        return
    from paddlejob.plan.manifests.environment import too_large

    if message := too_large(job):
        yield Fault(("spec",), message)


def _other_namespace(document: Object, namespace: str) -> Iterator[Fault]:
    own = _metadata(document).get("namespace")
    if namespace and own and own != namespace and document.get("kind") not in CLUSTER_SCOPED:
        message = f"{_title(document)} is in namespace {own}, not {namespace}; change it, or choose namespace {own}"
        yield Fault(("metadata", "namespace"), message)


def _duplicates(loaded: Sequence[Loaded]) -> list[Finding]:
    """Objects without a namespace are in the default one, which is known by now if another was chosen."""
    seen: set[tuple[str, str, str]] = set()
    found: list[Finding] = []
    for one in loaded:
        for document in one.objects:
            metadata = _metadata(document)
            if not metadata.get("name"):
                continue
            namespace = str(metadata.get("namespace") or contract.DEFAULT_NAMESPACE)
            key = (str(document.get("kind")), namespace, str(metadata["name"]))
            if key in seen:
                fault = Fault(("metadata", "name"), f"{_title(document)} is defined twice; rename one")
                found.append(_finding(one.source, document, fault))
            seen.add(key)
    return found


def _title(document: Object) -> str:
    kind = "job" if is_paddle_job(document) else document.get("kind")
    return f"{kind} {_metadata(document).get('name')}"


def _metadata(document: Object) -> Object:
    return document.get("metadata") or {}
