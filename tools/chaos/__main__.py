"""`python -m tools.chaos [--seed N] [--minutes N] [--only FAULT,...]`."""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time
from pathlib import Path

from paddlejob.errors import PaddleJobError
from testbed.cluster import Cluster
from tools.chaos.api import Lists
from tools.chaos.evidence import keep_evidence
from tools.chaos.faults import FAULTS
from tools.chaos.invariants import INVARIANTS
from tools.chaos.jobs import PADDLE, POPULATION, Shape
from tools.chaos.recovery import PATIENCE, Record, faults_until, not_running
from tools.chaos.report import report
from tools.chaos.stage import Stage, say
from tools.chaos.watch import Watch

NAMES_CACHED = 300
"""Seconds for which DNS still knows the addresses of pods that are gone."""


def main() -> int:
    chosen = _arguments()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))
    seed = chosen.seed if chosen.seed is not None else random.SystemRandom().randrange(10_000)
    say(f"seed {seed}: {chosen.minutes:g} minutes of faults")
    try:
        with Cluster() as cluster, cluster.names.cached(NAMES_CACHED):
            watch = Watch(chosen.logs or cluster.directory / "chaos")
            watch.directory.mkdir(parents=True, exist_ok=True)
            beats, lists = cluster.directory / "beats", Lists(cluster.plane)
            stage = Stage(cluster, random.Random(seed), beats, watch, lists, _shapes(chosen))
            record, problems = run(stage, chosen.minutes * 60, chosen.only)
            cluster.plane.keep_logs = bool(problems)
    except PaddleJobError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"\nSEED={seed} MINUTES={chosen.minutes:g}\n{report(record, problems, watch)}")
    if problems:
        print(f"Logs are kept in {watch.directory} and {cluster.directory}.")
    return 1 if problems else 0


def run(stage: Stage, seconds: float, only: list[str]) -> tuple[Record, list[str]]:
    """Start the population, inject faults for this long, and check the invariants."""
    stage.prepare()
    stage.submit()
    deadline = time.monotonic() + PATIENCE
    while problem := not_running(stage):
        if time.monotonic() > deadline:
            keep_evidence(stage, 0, problem)
            return Record(), [f"the population did not start: {problem}"]
        time.sleep(1)
    stage.look()
    say("the population runs")
    record = faults_until(stage, [FAULTS[name] for name in only or FAULTS], time.monotonic() + seconds)
    say("no more faults; waiting for the jobs to end")
    stage.cluster.wait_ready()
    stage.end()
    problems = [*record.problems, *stage.problems]
    for number, check in enumerate(INVARIANTS, start=len(problems) + 1):
        found = check(stage)
        if found:
            keep_evidence(stage, number, "\n".join(found))
        say(f"{check.__name__.replace('_', ' ')}: {'; '.join(found) or 'yes'}")
        problems += found
    return record, problems


def _shapes(chosen: argparse.Namespace) -> list[Shape]:
    return [*POPULATION] if chosen.without_paddle else [*POPULATION, PADDLE]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.chaos", description="Inject faults on a real cluster.")
    parser.add_argument("--seed", type=int, help="choose the same faults again (default: a random one, printed)")
    parser.add_argument("--minutes", type=float, default=20, help="how long faults are injected (default: 20)")
    parser.add_argument("--only", type=_names, default=[], help=f"only these faults, of {', '.join(FAULTS)}")
    parser.add_argument("--logs", type=Path, help="where the operator's log and the evidence of problems go")
    parser.add_argument("--without-paddle", action="store_true", help="leave out the job that really trains")
    return parser.parse_args()


def _names(text: str) -> list[str]:
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in FAULTS:
            raise argparse.ArgumentTypeError(f"{name} is not one of {', '.join(FAULTS)}")
    return names


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
