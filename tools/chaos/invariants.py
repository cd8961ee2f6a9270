"""What must hold after the faults, whatever they were. Each check returns what is wrong."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable

from paddlejob import contract
from tools.chaos.stage import SYSTEM, Stage, name_of, status_of

END_PATIENCE = 180.0
OVERLAP = 45
"""Seconds that a pod of an old attempt may go on: it is force-deleted 30 s after its deletion was due, and a node that
was cut off stops its containers only when it is connected again."""
QUIET = 15
REQUESTS_WHEN_QUIET = 60
MEMORY_GROWTH = 64 * 2**20
ERRORS = re.compile(r"Traceback|never retrieved|never awaited")


def every_job_ends_as_it_should(stage: Stage) -> list[str]:
    deadline = time.monotonic() + END_PATIENCE
    while wrong := _wrong_endings(stage):
        if time.monotonic() > deadline:
            return wrong
        time.sleep(1)
    return []


def _wrong_endings(stage: Stage) -> list[str]:
    jobs, wrong = stage.jobs(), []
    for shape in stage.shapes:
        status = status_of(jobs.get(shape.name, {}))
        phase, reason = status.get("phase"), status.get("reason", "")
        if phase != shape.ends or (shape.reason and reason != shape.reason):
            expected = f"{shape.ends} {shape.reason}".strip()
            wrong.append(f"{shape.name} is {phase} {reason} instead of {expected}: {status.get('message', '')[:300]}")
    return wrong


def no_two_attempts_train_at_once(stage: Stage) -> list[str]:
    """Two attempts of one life of a job; a job that was created again counts its attempts from 1."""
    wrong = []
    for file in sorted(stage.beats.iterdir()):
        if file.name in stage.recreated or file.name.startswith("."):
            continue
        seen: dict[int, list[int]] = defaultdict(list)
        for line in file.read_text().splitlines():
            parts = line.split()
            if len(parts) == 4 and parts[0].isdigit() and parts[1].isdigit():
                seen[int(parts[1])].append(int(parts[0]))
        for attempt, times in seen.items():
            later = [min(beats) for other, beats in seen.items() if other > attempt]
            overlap = max(times) - min(later) if later else 0
            if overlap > OVERLAP:
                wrong.append(f"attempt {attempt} of {file.name} trained for {overlap} s beside a later one")
    return wrong


def every_counter_has_its_cause(stage: Stage) -> list[str]:
    """A restart needs a killed process, a disruption a fault that takes a pod away."""
    wrong = []
    for name, job in stage.jobs().items():
        shape = next((shape for shape in stage.shapes if shape.name == name), None)
        if shape is None or not shape.steady:
            continue
        restarts, disruptions = (status_of(job).get(field, 0) for field in ("restarts", "disruptions"))
        crashes, losses = stage.causes[name, "restart"], stage.causes[name, "disruption"]
        if restarts > crashes:
            wrong.append(f"{name} counts {restarts} restarts, but only {crashes} faults ended one of its programs")
        if restarts + disruptions > crashes + losses:
            wrong.append(
                f"{name} counts {restarts} restarts and {disruptions} disruptions after {crashes + losses} faults"
            )
    return wrong


def nothing_is_left_over(stage: Stage) -> list[str]:
    """Delete the jobs; all their objects go with them."""
    stage.change("delete", "pdj", "--all", "--wait=true", "--timeout=60s")
    deadline = time.monotonic() + 60
    while left := _left(stage):
        if time.monotonic() > deadline:
            return left
        time.sleep(1)
    return []


def _left(stage: Stage) -> list[str]:
    kinds = ("pods", "configmaps", "services")
    return [
        f"{kind[:-1]} {name_of(item)} is left over"
        for kind in kinds
        for item in stage.items(kind, selector=contract.LABEL_JOB)
    ]


def no_hot_loop(stage: Stage) -> list[str]:
    """Once all jobs have ended, the operator sends almost no requests."""
    before = _metrics(stage)
    time.sleep(QUIET)
    after = _metrics(stage)
    sent = sum(after[pod][0] - before[pod][0] for pod in after.keys() & before.keys())
    if sent > REQUESTS_WHEN_QUIET:
        return [f"the operator sent {sent:.0f} requests in {QUIET} s although no job was active"]
    return []


def memory_does_not_grow(stage: Stage) -> list[str]:
    """Compare with the memory that each operator process used when it was first seen."""
    return [
        f"{pod} grew by {(now - stage.memory[pod]) / 2**20:.0f} MiB"
        for pod, (_, now) in _metrics(stage).items()
        if pod in stage.memory and now - stage.memory[pod] > MEMORY_GROWTH
    ]


def note_memory(stage: Stage) -> None:
    for pod, (_, memory) in _metrics(stage).items():
        stage.memory.setdefault(pod, memory)


def no_traceback_in_the_log(stage: Stage) -> list[str]:
    wrong = []
    for pod in stage.operators():
        for which in ((), ("--previous",)):
            log = stage.kubectl("-n", SYSTEM, "logs", name_of(pod), *which, check=False)
            wrong += [f"{name_of(pod)} logged: {line[:300]}" for line in log.splitlines() if ERRORS.search(line)]
    return wrong


def _metrics(stage: Stage) -> dict[str, tuple[float, float]]:
    """Return the requests sent and the memory used by each operator process."""
    found = {}
    for pod in stage.operators():
        statuses = pod["status"].get("containerStatuses") or [{}]
        path = f"/api/v1/namespaces/{SYSTEM}/pods/{name_of(pod)}:8080/proxy/metrics"
        text = stage.kubectl("get", "--raw", path, check=False)
        requests = sum(float(value) for value in re.findall(r"^paddlejob_api_requests_total\{.*\} (\S+)$", text, re.M))
        found[f"{name_of(pod)} {statuses[0].get('restartCount', 0)}"] = (requests, stage.memory_of(pod))
    return found


INVARIANTS: tuple[Callable[[Stage], list[str]], ...] = (
    every_job_ends_as_it_should,
    no_two_attempts_train_at_once,
    every_counter_has_its_cause,
    no_hot_loop,
    memory_does_not_grow,
    no_traceback_in_the_log,
    nothing_is_left_over,
)
