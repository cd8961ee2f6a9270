"""Inject random faults until the time is up, and measure how long the jobs need to run again after each."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from subprocess import SubprocessError

from paddlejob import contract
from paddlejob.errors import PaddleJobError
from tools.chaos.evidence import keep_evidence
from tools.chaos.faults.hit import Fault, Hit, name_of_fault
from tools.chaos.jobs import Object
from tools.chaos.stage import Stage, is_deleted, job_of, say, status_of

PATIENCE = 120.0
TWO_AT_ONCE = 0.25
"""The share of faults that come together with a second one."""


@dataclass
class Record:
    """Recovery times by kind of fault, and the faults that the jobs did not recover from."""

    times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    problems: list[str] = field(default_factory=list)


def faults_until(stage: Stage, faults: Sequence[Fault], deadline: float) -> Record:
    """Inject faults until `deadline`, each after the jobs have recovered from the one before."""
    record, deck = Record(), Deck(stage, faults)
    while time.monotonic() < deadline:
        count = 2 if stage.random.random() < TWO_AT_ONCE else 1
        hits = [(name_of_fault(fault), _inject(stage, record, fault)) for fault in (deck.draw() for _ in range(count))]
        _recover(stage, record, {kind: hit for kind, hit in hits if hit is not None})
        stage.look()
        stage.settle()
        time.sleep(stage.random.uniform(0, 3))
    return record


@dataclass
class Deck:
    """Every kind comes once, in random order, before one comes again."""

    stage: Stage
    faults: Sequence[Fault]
    _left: list[Fault] = field(default_factory=list)

    def draw(self) -> Fault:
        if not self._left:
            self._left = self.stage.random.sample(self.faults, len(self.faults))
        return self._left.pop()


def _recover(stage: Stage, record: Record, hits: dict[str, Hit]) -> None:
    if not hits:
        return
    text = " and ".join(f"{kind} {hit.text}".strip() for kind, hit in hits.items())
    started = time.monotonic()
    while problem := _not_recovered(stage, hits):
        stage.keep_control_plane()
        if time.monotonic() - started > PATIENCE + _delay(stage):
            record.problems.append(f"not recovered after {time.monotonic() - started:.0f} s from {text}: {problem}")
            say(record.problems[-1])
            keep_evidence(stage, len(record.problems), record.problems[-1])
            _start_again(stage)
            return
        time.sleep(1)
    took = time.monotonic() - started
    say(f"{text}: recovered in {took:.1f} s")
    for kind in hits:
        record.times[kind].append(took)


def _delay(stage: Stage) -> float:
    """Return for how many more seconds a job waits, because attempts before it made no progress."""
    found = [status_of(job).get("nextRestartTime") for job in stage.jobs().values()]
    moments = [datetime.fromisoformat(moment) for moment in found if moment]
    return max([0.0, *((moment - datetime.now(UTC)).total_seconds() + PATIENCE for moment in moments)])


def _inject(stage: Stage, record: Record, fault: Fault) -> Hit | None:
    try:
        hit = fault(stage)
    except (AssertionError, PaddleJobError, OSError, SubprocessError) as error:
        record.problems.append(f"{name_of_fault(fault)} could not be injected: {error}")
        say(record.problems[-1])
        return None
    say(f"{name_of_fault(fault)} {hit.text if hit else 'found no target'}".strip())
    return hit


def _start_again(stage: Stage) -> None:
    """Replace the jobs that did not recover, so that what follows says something about later faults."""
    for name in _problems(stage):
        stage.change("delete", "pods", "-l", f"{contract.LABEL_JOB}={name}", "--force", "--grace-period=0")
        stage.recreate(name, wait=True)
    deadline = time.monotonic() + PATIENCE / 2
    while not_running(stage) and time.monotonic() < deadline:
        time.sleep(1)


def _not_recovered(stage: Stage, hits: dict[str, Hit]) -> str:
    """Return what is still wrong, or an empty string."""
    for kind, hit in hits.items():
        if not hit.seen():
            return f"{kind} was not noticed"
    return not_running(stage)


def not_running(stage: Stage) -> str:
    """Return a job that should run but does not, with its reason; or an empty string."""
    return next(iter(_problems(stage).values()), "")


def _problems(stage: Stage) -> dict[str, str]:
    """Return what is wrong with each job that should run but does not, by the job's name."""
    jobs, pods = stage.jobs(), stage.pods()
    found = {}
    for name in (shape.name for shape in stage.shapes if shape.steady):
        own = [pod for pod in pods if job_of(pod) == name]
        if name not in jobs:
            found[name] = f"{name} is gone"
        elif not _runs(jobs[name], own):
            status = status_of(jobs[name])
            message = status.get("message", "")
            found[name] = f"{name} is {status.get('phase')} {status.get('reason', '')}: {message}"
    return found


def _runs(job: Object, pods: list[Object]) -> bool:
    """Whether exactly the pods of the current attempt run, and the status says so."""
    status, spec = status_of(job), job["spec"]
    wanted = sum(spec[role].get("replicas", 1) for role in ("ps", "worker", "heter") if role in spec)
    running = [pod for pod in pods if pod["status"].get("phase") == "Running" and not is_deleted(pod)]
    ready = all(
        status.get(role, {}).get("ready") == f"{spec[role].get('replicas', 1)}/{spec[role].get('replicas', 1)}"
        for role in ("ps", "worker", "heter")
        if role in spec
    )
    settled = status.get("observedGeneration") == job["metadata"]["generation"]
    return settled and status.get("phase") == "Running" and ready and len(running) == len(pods) == wanted
