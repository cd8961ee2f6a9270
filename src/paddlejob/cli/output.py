"""Jobs as text: columns as kubectl prints them, JSON or YAML."""

from __future__ import annotations

import json
from typing import Any

from paddlejob.api.types import Role
from paddlejob.cli.humanize import age, lasted
from paddlejob.cli.options import Output
from paddlejob.cli.targets.target import JobView, PodView
from paddlejob.cli.yaml_text import to_yaml


def columns(header: list[str], rows: list[list[str]]) -> str:
    """Left-aligned, three spaces apart."""
    widths = [max(len(row[place]) for row in [header, *rows]) for place in range(len(header))]
    lines = ["   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [header, *rows]]
    return "\n".join(line.rstrip() for line in lines)


def job_table(views: list[JobView], wide: bool = False, namespaces: bool = False) -> str:
    header = ["NAME", "STATUS", "MODE", "PS", "WORKER", "AGE"] + (["REASON"] if wide else [])
    rows = []
    for view in views:
        job = view.job
        ready = [job.status.role(role).ready if role in job.spec.roles else "" for role in (Role.PS, Role.WORKER)]
        row = [job.name, view.phase, str(job.mode), *ready, age(job)]
        rows.append(row + ([view.note or job.status.headline] if wide else []))
    if namespaces:
        header.insert(0, "NAMESPACE")
        rows = [[view.job.namespace, *row] for view, row in zip(views, rows, strict=True)]
    return columns(header, rows)


def pod_table(pods: list[PodView]) -> str:
    rows = [
        [
            f"{pod.role}-{pod.index}",
            pod.state,
            str(pod.attempt),
            pod.address,
            "" if pod.exit_code is None else str(pod.exit_code),
            pod.log,
        ]
        for pod in sorted(pods, key=lambda pod: (pod.role != Role.PS, pod.role, pod.index))
    ]
    return columns(["REPLICA", "STATE", "ATTEMPT", "ADDRESS", "EXIT", "LOG"], rows)


def job_page(view: JobView) -> str:
    """A job and its replicas, for people."""
    job = view.job
    status = job.status
    lines = [
        f"{job.name}: {view.phase} ({job.mode}), {lasted(job)}, attempt {status.attempt}, "
        f"restarts {status.restarts} of {job.spec.backoff_limit}, disruptions {status.disruptions}"
    ]
    if view.note or status.message:
        lines.append(view.note or f"{status.reason}: {status.message}")
    return "\n".join([*lines, "", pod_table(view.pods)]) if view.pods else "\n".join(lines)


def documents(objects: list[dict[str, Any]], output: Output, many: bool) -> str:
    whole: Any = {"apiVersion": "v1", "kind": "List", "items": objects} if many else objects[0]
    return json.dumps(whole, indent=2, ensure_ascii=False) if output is Output.json else to_yaml(whole).rstrip()
