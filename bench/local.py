"""Measure what `pdj run` adds to starting the same processes by hand: python -P bench/local.py.

Each process is a Python that imports numpy, as every training program does, and then records the time. By hand, a
Python program starts them one after the other with the same environment and waits for them. Both are timed from the
start of the command, alternately, for several rounds; the best of each counts. Goals: the first process of a 2+2 job
starts at most 1 s later, and 100 processes are running within 1.5 times the time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GOAL_SECONDS = 1.0
GOAL_RATIO = 1.5
PROGRAM = (
    "import os, sys, time; began = time.time(); import numpy;"
    "open(os.path.join(sys.argv[1], str(os.getpid()) + os.environ.get('POD_IP', '')), 'w')"
    ".write(f'{began} {time.time()}')"
)
BY_HAND = (
    "import subprocess, sys; count, *command = sys.argv[1:];"
    "[one.wait() for one in [subprocess.Popen(command) for _ in range(int(count))]]"
)
PDJ = [sys.executable, "-c", "from paddlejob.cli.main import main; main()"]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--many", type=int, default=100)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-local-") as name:
        few = compare(Path(name), servers=2, workers=2, rounds=given.rounds)
        many = compare(Path(name), servers=0, workers=given.many, rounds=given.rounds)
    added = few["pdj"][0] - few["hand"][0]
    ratio = many["pdj"][1] / many["hand"][1]
    report("2+2", few)
    report(f"{given.many}", many)
    print(f"the first process of 2+2 starts {added:.2f} s later than by hand (goal: at most {GOAL_SECONDS:g})")
    print(f"all of {given.many} are running after {ratio:.2f} times the time by hand (goal: at most {GOAL_RATIO:g})")
    return 0 if added <= GOAL_SECONDS and ratio <= GOAL_RATIO else 1


def compare(here: Path, servers: int, workers: int, rounds: int) -> dict[str, tuple[float, float]]:
    """Seconds until the first and the last process, best of all rounds."""
    best = {"hand": (1e9, 1e9), "pdj": (1e9, 1e9)}
    for _ in range(rounds):
        for what, start in (("hand", by_hand), ("pdj", by_pdj)):
            first, last = start(here, servers, workers)
            best[what] = (min(best[what][0], first), min(best[what][1], last))
    return best


def by_hand(here: Path, servers: int, workers: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory(dir=here) as marks:
        count = str(servers + workers)
        return timed([sys.executable, "-c", BY_HAND, count, sys.executable, "-c", PROGRAM, marks], Path(marks))


def by_pdj(here: Path, servers: int, workers: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory(dir=here) as marks, tempfile.TemporaryDirectory(dir=here) as state:
        job = Path(state, "job.yaml")
        job.write_text(json.dumps(job_document(marks, servers, workers)))
        os.environ["PADDLEJOB_STATE"] = state
        return timed([*PDJ, "run", str(job)], Path(marks))


def job_document(marks: str, servers: int, workers: int) -> dict[str, object]:
    def role(count: int, command: list[str]) -> dict[str, object]:
        container = {"name": "paddle", "image": "bench", "command": command}
        return {"replicas": count, "template": {"spec": {"containers": [container]}}}

    serves = PROGRAM + "; time.sleep(600)"
    spec = {"worker": role(workers, ["python", "-c", PROGRAM, marks])}
    if servers:
        spec["ps"] = role(servers, ["python", "-c", serves, marks])
    return {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": "bench"},
        "spec": spec,
    }


def timed(command: list[str], marks: Path) -> tuple[float, float]:
    begun = time.time()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    moments = [tuple(map(float, mark.read_text().split())) for mark in marks.iterdir()]
    return min(began for began, _ in moments) - begun, max(ended for _, ended in moments) - begun


def report(what: str, best: dict[str, tuple[float, float]]) -> None:
    for how, (first, last) in best.items():
        print(f"{what:>4} processes, {how:4}  first {first:5.2f} s  all {last:5.2f} s")


if __name__ == "__main__":
    sys.exit(main())
