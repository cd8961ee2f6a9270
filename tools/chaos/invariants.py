"""What must hold after the faults, whatever they were. Each check returns what is wrong."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from paddlejob import contract
from tools.chaos.stage import SYSTEM, Stage, name_of, status_of

END_PATIENCE = 180.0
OVERLAP = 45
"""Seconds that a pod of an old attempt may go on: it is force-deleted 30 s after its deletion was due, and a node that
was cut off stops its containers only when it is connected again."""
QUIET = 15
REQUESTS_WHEN_QUIET = 60


def every_job_ends_as_it_should(stage: Stage) -> list[str]:
    deadline = time.monotonic() + END_PATIENCE
    while wrong := _wrong_endings(stage):
        if time.monotonic() > deadline:
            return wrong
        time.sleep(1)
    return []


def _wrong_endings(stage: Stage) -> list[str]:
    jobs = stage.jobs()
    endings = (shape.wrong_ending(status_of(jobs.get(shape.name, {}))) for shape in stage.shapes)
    return [wrong for wrong in endings if wrong]


def no_two_attempts_train_at_once(stage: Stage) -> list[str]:
    """Neither of one life of a job nor of two, if it was deleted and created again."""
    wrong = []
    for job, beats in _beats(stage):
        seen: dict[tuple[int, int], list[int]] = defaultdict(list)
        for beat in beats:
            seen[beat.life, beat.attempt].append(beat.at)
        for attempt, times in seen.items():
            later = [min(others) for other, others in seen.items() if other > attempt]
            overlap = max(times) - min(later) if later else 0
            if overlap > OVERLAP:
                name = f"attempt {attempt[1]} of {job} (created {attempt[0]} times)"
                wrong.append(f"{name} trained for {overlap} s beside a later one")
    return wrong


def no_replica_trains_twice_at_once(stage: Stage) -> list[str]:
    """Two pods of one replica, of whatever attempt; of live workers both belong to the same."""
    wrong = []
    for _, beats in _beats(stage):
        seen: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for beat in beats:
            seen[beat.pod][beat.uid].append(beat.at)
        for pod, uids in seen.items():
            spans = sorted((min(times), max(times)) for times in uids.values())
            for (_, end), (begin, _) in pairwise(spans):
                if end - begin > OVERLAP:
                    wrong.append(f"two pods {pod} trained at once for {end - begin} s")
    return wrong


@dataclass(frozen=True)
class Beat:
    at: int
    life: int
    attempt: int
    pod: str
    uid: str


def _beats(stage: Stage) -> Iterator[tuple[str, list[Beat]]]:
    """Return the heartbeats of each job. A line that a killed process began is left out."""
    for file in sorted(stage.beats.iterdir()):
        lines = [] if file.name.startswith(".") else [line.split() for line in file.read_text().splitlines()]
        whole = [parts for parts in lines if len(parts) == 5 and all(part.isdigit() for part in parts[:3])]
        yield file.name, [Beat(int(at), int(life), int(attempt), pod, uid) for at, life, attempt, pod, uid in whole]


def every_counter_has_its_cause(stage: Stage) -> list[str]:
    stage.settle()
    return stage.unexplained


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
    before = _requests(stage)
    time.sleep(QUIET)
    after = _requests(stage)
    sent = sum(after[pod] - before[pod] for pod in after.keys() & before.keys())
    if sent > REQUESTS_WHEN_QUIET:
        return [f"the operator sent {sent:.0f} requests in {QUIET} s although no job was active"]
    return []


def memory_does_not_grow(stage: Stage) -> list[str]:
    """Compare with the memory that each operator process used when it was first seen."""
    stage.look()
    return stage.watch.growth()


def no_traceback_in_the_log(stage: Stage) -> list[str]:
    stage.look()
    return [f"the operator logged: {line}" for line in stage.watch.errors]


def _requests(stage: Stage) -> dict[str, float]:
    """Return the requests that each operator process has sent."""
    found = {}
    for pod in stage.operators():
        statuses = pod["status"].get("containerStatuses") or [{}]
        path = f"/api/v1/namespaces/{SYSTEM}/pods/{name_of(pod)}:8080/proxy/metrics"
        text = stage.kubectl("get", "--raw", path, check=False)
        requests = sum(float(value) for value in re.findall(r"^paddlejob_api_requests_total\{.*\} (\S+)$", text, re.M))
        found[f"{name_of(pod)} {statuses[0].get('restartCount', 0)}"] = requests
    return found


INVARIANTS: tuple[Callable[[Stage], list[str]], ...] = (
    every_job_ends_as_it_should,
    no_two_attempts_train_at_once,
    no_replica_trains_twice_at_once,
    every_counter_has_its_cause,
    no_hot_loop,
    memory_does_not_grow,
    no_traceback_in_the_log,
    nothing_is_left_over,
)
