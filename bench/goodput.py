"""How many steps a training keeps under faults, compared with an undisturbed run of the same job beside it.

python -m bench.goodput [--engine embedded|cluster] [--job collective|ps] [--minutes 6] [--every 60] [--kind kill ...]

A collective Paddle program trains at a fixed pace and saves a checkpoint every 5 s. Faults come in turn: `kill` sends
SIGKILL to a worker, `delete` removes a pod by force, `freeze` sends SIGSTOP to a worker (and needs stallSeconds), and
`node` kills a node of the cluster. Prints the steps kept, and where the time of each recovery went. The goal holds for
kill and delete: a hang is noticed after stallSeconds, and a dead node after the node controller's grace period. With
`--job ps`, an asynchronous program with parameter servers trains, whose workers are replaced alone. The cluster is
testbed/ and needs root.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.recovery.cluster import OnCluster
from bench.recovery.embedded import Embedded
from bench.recovery.timeline import STAGES, Fault, Mark, durations, highest_step, read_marks, rejoining, stages

GOALS = {"collective": 88.0, "ps": 95.0}
GOAL_KINDS = {"kill", "delete"}
PACE = 0.1
SAVE_EVERY = 5.0
WORKERS = {"collective": 2, "ps": 3}
STALL_SECONDS = 20
"""On a busy machine the import of Paddle alone takes 10 s without a line of output."""
PROGRAMS = {
    "collective": Path(__file__).parent / "recovery/program.py",
    "ps": Path(__file__).parent / "recovery/ps_program.py",
}
STEADY, DISTURBED = "steady", "disturbed"
Engine = Embedded | OnCluster


async def main(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="bench-goodput-") as scratch:
        chosen = OnCluster(Path(scratch)) if options.engine == "cluster" else Embedded(Path(scratch))
        kinds = options.kind or chosen.kinds
        async with chosen as engine:
            for name in (STEADY, DISTURBED):
                await engine.submit(job(options.job, name, engine.folder(name), freezes="freeze" in kinds))
            await both_train(engine)
            begun = time.time()
            faults = await disturb(engine, kinds, begun, options)
            ended = time.time()
            marks = {name: read_marks(engine.folder(name)) for name in (STEADY, DISTURBED)}
            return report(engine, options.job, faults, marks, begun, ended)


def job(kind: str, name: str, folder: Path, *, freezes: bool) -> dict[str, Any]:
    variables = {"FOLDER": folder, "PACE": PACE, "SAVE_EVERY": SAVE_EVERY, "OMP_NUM_THREADS": 1}
    container = {
        "name": "paddle",
        "image": "registry.baidubce.com/paddle-operator/demo-wide-and-deep:v1",
        "command": ["python3", "-c", PROGRAMS[kind].read_text()],
        "env": [{"name": key, "value": str(value)} for key, value in variables.items()],
        "volumeMounts": [{"name": "shared", "mountPath": str(folder)}],
    }
    volume = {"name": "shared", "hostPath": {"path": str(folder)}}
    template = {"spec": {"containers": [container], "volumes": [volume]}}
    spec: dict[str, Any] = {"worker": {"replicas": WORKERS[kind], "template": template}}
    if kind == "ps":
        spec |= {"ps": {"replicas": 2, "template": template}, "withGloo": 0, "elastic": 1}
    if freezes:
        spec["stallSeconds"] = STALL_SECONDS
    return {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


async def both_train(engine: Engine, patience: float = 300) -> None:
    deadline = time.monotonic() + patience
    while any(not highest_step(read_marks(engine.folder(name)), time.time()) for name in (STEADY, DISTURBED)):
        ended = [name for name in (STEADY, DISTURBED) if engine.status(name).startswith("Failed")]
        if ended or time.monotonic() > deadline:
            sys.exit(f"no step; {STEADY}: {engine.status(STEADY)}; {DISTURBED}: {engine.status(DISTURBED)}")
        await asyncio.sleep(0.5)


async def disturb(engine: Engine, kinds: tuple[str, ...], begun: float, options: argparse.Namespace) -> list[Fault]:
    """A fault at a fixed distance, halfway between two checkpoints at first, until the time is over."""
    faults, turns = [], itertools.cycle(kinds)
    moments = itertools.takewhile(
        lambda after: after < 60 * options.minutes, itertools.count((options.every + SAVE_EVERY) / 2, options.every)
    )
    for number, after in enumerate(moments):
        await asyncio.sleep(max(0.0, begun + after - time.time()))
        await engine.undo()
        kind = next(turns)
        rank = number % WORKERS[options.job]
        faults.append(Fault(time.time(), kind, engine.attempt(DISTURBED), rank))
        print(f"{time.time() - begun:6.1f} s  {kind} a worker in attempt {faults[-1].attempt}", flush=True)
        await engine.inject(kind, DISTURBED, rank)
    await asyncio.sleep(max(0.0, begun + 60 * options.minutes - time.time()))
    return faults


def report(
    engine: Engine, job: str, faults: list[Fault], marks: dict[str, list[Mark]], begun: float, ended: float
) -> int:
    gained = {name: steps_gained(job, found, begun, ended) for name, found in marks.items()}
    kept = 100 * gained[DISTURBED] / max(1, gained[STEADY])
    rows = [(fault, durations(fault, _reached(engine, job, fault, marks[DISTURBED]))) for fault in faults]
    print(f"\nseconds of each recovery{'':25}" + "".join(f"{fault.kind:>8}" for fault, _ in rows) + "  median")
    for stage, what in STAGES.items():
        cells = [f"{took[stage]:8.2f}" if stage in took else f"{'-':>8}" for _, took in rows]
        known = [took[stage] for _, took in rows if stage in took]
        print(f"{what:49}" + "".join(cells) + (f"{statistics.median(known):8.2f}" if known else ""))
    totals = [sum(took.values()) for _, took in rows]
    print(f"{'in all':49}" + "".join(f"{total:8.2f}" for total in totals))
    judged = {fault.kind for fault in faults} <= GOAL_KINDS
    goal = f" (goal: {GOALS[job]:g} %)" if judged else ""
    print(f"\nsteps: {gained[DISTURBED]} under faults, {gained[STEADY]} undisturbed; kept {kept:.1f} %{goal}")
    print(f"{DISTURBED}: {engine.status(DISTURBED)}")
    return 0 if kept >= GOALS[job] or not judged else 1


def _reached(engine: Engine, job: str, fault: Fault, marks: list[Mark]) -> dict[str, float]:
    if job == "ps":
        return rejoining(fault, marks)
    return stages(fault, engine.sights[DISTURBED], marks, WORKERS[job])


def steps_gained(job: str, marks: list[Mark], begun: float, ended: float) -> int:
    """Workers with parameter servers step on their own; those of a collective job repeat steps after a fault."""
    if job == "ps":
        return sum(mark.what == "step" and begun <= mark.time <= ended for mark in marks)
    return highest_step(marks, ended) - highest_step(marks, begun)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=["embedded", "cluster"], default="embedded")
    parser.add_argument("--job", choices=["collective", "ps"], default="collective")
    parser.add_argument("--minutes", type=float, default=6)
    parser.add_argument("--every", type=float, default=60, help="seconds between two faults")
    parser.add_argument("--kind", action="append", choices=["kill", "delete", "freeze", "node"])
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(asyncio.run(main(arguments())))
