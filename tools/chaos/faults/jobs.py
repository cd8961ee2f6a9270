"""What users do to jobs while they run, and what programs do: they exit, and they hang."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable

from tools.chaos.faults.hit import Fault, Hit, gone
from tools.chaos.jobs import HANGING, IGNORED_STATUS, PADDLE, POLICY, Object
from tools.chaos.ledger import DISRUPTION, IGNORED, RESTART
from tools.chaos.stage import Stage, job_of, name_of, status_of, uid_of

SHRINKS = 120.0
"""Seconds after which a job must train with fewer workers: it waits 30 s for room first."""
PADDLE_START = 60.0
"""Seconds that a job that really trains may need before a fault hits it."""


def suspended(stage: Stage) -> Hit | None:
    name = stage.a_job()
    _patch(stage, name, {"suspend": True})
    time.sleep(stage.random.choice([0.5, 5]))
    _patch(stage, name, {"suspend": False})
    return Hit(name)


def scaled(stage: Stage) -> Hit | None:
    name = stage.random.choice([shape.name for shape in stage.shapes if shape.scalable])
    size = stage.random.choice([1, 2, 3])
    stage.change("scale", "pdj", name, f"--replicas={size}")
    return Hit(f"{name} to {size}")


def recreated(stage: Stage) -> Hit | None:
    name = stage.a_job()
    before = stage.jobs().get(name)
    if before is None:
        return None
    stage.recreate(name, wait=stage.random.choice([True, False]))
    return Hit(name, lambda: uid_of(stage.jobs().get(name, before)) != uid_of(before))


def program_exited(stage: Stage) -> Hit | None:
    """Let a program exit with a status of its own choice."""
    pod = stage.a_pod()
    return _exited(stage, pod) if pod else None


def failure_ignored(stage: Stage) -> Hit | None:
    """The same, in the job whose failure policy ignores that status."""
    found = stage.running(POLICY)
    return _exited(stage, stage.random.choice(found)) if found else None


def _exited(stage: Stage, pod: Object) -> Hit:
    stage.blame(IGNORED if job_of(pod) == POLICY else RESTART, job_of(pod))
    stage.signal(pod, signal.SIGUSR1)
    return Hit(f"{name_of(pod)} with {IGNORED_STATUS}", gone(stage, pod))


def job_stalled(stage: Stage) -> Hit | None:
    """Freeze all processes of a job with stallSeconds, for good."""
    job, pods = stage.jobs().get(HANGING), stage.running(HANGING)
    if job is None or not pods:
        return None
    stage.blame(RESTART, HANGING)
    for pod in pods:
        stage.signal(pod, signal.SIGSTOP)
    return Hit(HANGING, _new_attempt(stage, job))


def paddle_killed(stage: Stage) -> Hit | None:
    """Kill a process of the job that really trains; if it has ended, it first trains again."""
    if PADDLE not in stage.shapes:
        return None
    if status_of(stage.jobs().get(PADDLE.name, {})).get("phase") in (None, "Completed", "Failed"):
        stage.recreate(PADDLE.name, wait=True)
    deadline = time.monotonic() + PADDLE_START
    while len(pods := stage.running(PADDLE.name)) < PADDLE.size and time.monotonic() < deadline:
        time.sleep(1)
    job = stage.jobs().get(PADDLE.name)
    if job is None or not pods:
        return None
    time.sleep(stage.random.uniform(0, 15))
    pod = stage.random.choice(pods)
    stage.signal(pod, signal.SIGKILL)
    return Hit(name_of(pod), _new_attempt(stage, job))


def _new_attempt(stage: Stage, job: Object) -> Callable[[], bool]:
    """Return a function that tells whether the job runs in a later attempt, has ended or is another one."""

    def seen() -> bool:
        found = stage.jobs().get(name_of(job), job)
        status = status_of(found)
        begun = status.get("attempt", 0) > status_of(job).get("attempt", 0) and status.get("phase") == "Running"
        return begun or uid_of(found) != uid_of(job) or status.get("phase") in ("Completed", "Failed")

    return seen


def pod_unplaced(stage: Stage) -> Hit | None:
    """Leave no room for one worker of the job that takes a node for each, until it trains with fewer."""
    name = next(shape.name for shape in stage.shapes if shape.spread)
    pods, before = stage.running(name), stage.jobs().get(name)
    if len(pods) < 2 or before is None:
        return None
    pod = stage.random.choice(pods)
    node = pod["spec"]["nodeName"]
    stage.kubectl("cordon", node, check=False)
    stage.blame(DISRUPTION, name)
    stage.change("delete", "pod", name_of(pod), "--wait=false")
    deadline = time.monotonic() + SHRINKS
    while not (smaller := _trains_with(stage, before, len(pods) - 1)) and time.monotonic() < deadline:
        time.sleep(1)
    stage.kubectl("uncordon", node, check=False)
    if not smaller:
        stage.problems.append(f"{name} did not train with fewer workers {SHRINKS:.0f} s after it lost a node")
    return Hit(name_of(pod), gone(stage, pod))


def _trains_with(stage: Stage, before: Object, workers: int) -> bool:
    """Whether the job runs in a later attempt with this number of workers."""
    status = status_of(stage.jobs().get(name_of(before), {}))
    later = status.get("attempt", 0) > status_of(before).get("attempt", 0)
    return later and status.get("phase") == "Running" and status.get("worker", {}).get("running") == workers


def _patch(stage: Stage, job: str, spec: Object) -> None:
    stage.change("patch", "pdj", job, "--type=merge", "-p", json.dumps({"spec": spec}))


OF_JOBS: tuple[Fault, ...] = (
    suspended, scaled, recreated, program_exited, failure_ignored, job_stalled, paddle_killed, pod_unplaced,
)  # fmt: skip
