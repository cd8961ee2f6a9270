"""Inject random faults until the time is up, and measure how long the jobs need to run again after each."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from tools.chaos.faults import Fault, Hit
from tools.chaos.jobs import Object
from tools.chaos.stage import Stage, name_of, say, status_of

PATIENCE = 180.0
TWO_AT_ONCE = 0.25
"""The share of faults that come together with a second one."""


@dataclass
class Record:
    """Recovery times by kind of fault, and the faults that the jobs did not recover from."""

    times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    problems: list[str] = field(default_factory=list)


def faults_until(stage: Stage, faults: Sequence[Fault], deadline: float) -> Record:
    """Inject faults until `deadline`, each after the jobs have recovered from the one before."""
    record = Record()
    while time.monotonic() < deadline:
        count = 2 if stage.random.random() < TWO_AT_ONCE else 1
        chosen = [stage.random.choice(faults) for _ in range(count)]
        hits = [(fault.__name__.replace("_", " "), fault(stage)) for fault in chosen]
        _recover(stage, record, {kind: hit for kind, hit in hits if hit is not None})
        time.sleep(stage.random.uniform(0, 3))
    return record


def _recover(stage: Stage, record: Record, hits: dict[str, Hit]) -> None:
    if not hits:
        return
    text = " and ".join(f"{kind} {hit.text}".strip() for kind, hit in hits.items())
    started = time.monotonic()
    while problem := _not_recovered(stage, hits):
        if time.monotonic() - started > PATIENCE:
            record.problems.append(f"not recovered after {PATIENCE:.0f} s from {text}: {problem}")
            say(record.problems[-1])
            return
        time.sleep(0.5)
    took = time.monotonic() - started
    say(f"{text}: recovered in {took:.1f} s")
    for kind in hits:
        record.times[kind].append(took)


def _not_recovered(stage: Stage, hits: dict[str, Hit]) -> str:
    """Return what is still wrong, or an empty string."""
    for kind, hit in hits.items():
        if not hit.seen():
            return f"{kind} was not noticed"
    return not_running(stage)


def not_running(stage: Stage) -> str:
    """Return a job that should run but does not, with its reason; or an empty string."""
    jobs, pods = stage.jobs(), stage.pods()
    for shape in stage.shapes:
        if not shape.steady:
            continue
        job = jobs.get(shape.name)
        if job is None:
            return f"{shape.name} is gone"
        own = [pod for pod in pods if name_of(pod).startswith(f"{shape.name}-")]
        if not _runs(job, own):
            status = status_of(job)
            return f"{shape.name} is {status.get('phase')} {status.get('reason', '')} {status.get('message', '')}"
    return ""


def _runs(job: Object, pods: list[Object]) -> bool:
    """Whether exactly the pods of the current attempt run, and the status says so."""
    status, spec = status_of(job), job["spec"]
    wanted = sum(spec[role].get("replicas", 1) for role in ("ps", "worker", "heter") if role in spec)
    running = [pod for pod in pods if pod["status"].get("phase") == "Running"]
    ready = all(
        status.get(role, {}).get("ready") == f"{spec[role].get('replicas', 1)}/{spec[role].get('replicas', 1)}"
        for role in ("ps", "worker", "heter")
        if role in spec
    )
    settled = status.get("observedGeneration") == job["metadata"]["generation"]
    return settled and status.get("phase") == "Running" and ready and len(running) == len(pods) == wanted
