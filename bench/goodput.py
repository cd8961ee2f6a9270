"""How many steps a training keeps under faults, compared with an undisturbed run of the same job beside it.

python -m bench.goodput --kind kill --kind delete                     # embedded engine, 6 minutes
python -m bench.goodput --kind kill --minutes 10.5                    # ten faults in a row
python -m bench.goodput --engine cluster --kind kill --kind delete    # the test cluster; needs root
python -m bench.goodput --job ps --kind kill --kind delete            # parameter servers; workers are replaced alone
python -m bench.goodput --kind freeze --minutes 4 --every 120         # a hang
python -m bench.goodput --engine cluster --kind node --minutes 4 --every 120

A collective Paddle program trains at a fixed pace and saves a checkpoint every 5 s. Faults come in turn: `kill` sends
SIGKILL to a worker, `delete` removes a pod by force, `freeze` sends SIGSTOP to a worker (and needs stallSeconds), and
`node` kills a node of the cluster. Without --kind, all that the engine knows. Faults are spread evenly over the time
between two checkpoints, in an order that --seed decides: so each costs half of that time on average, as random faults
do in a long run. Prints where the time of each recovery went, the steps kept, and each goal with whether it is met; the
exit status is 1 if one is missed. The goal for steps holds for kill and delete only: a hang is noticed after
stallSeconds, and a dead node after the node controller's grace period. Leave the machine alone meanwhile: both jobs
import Paddle on the same processors.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench import figures
from bench.recovery.cluster import OnCluster
from bench.recovery.embedded import Embedded
from bench.recovery.timeline import STAGES, Fault, Mark, durations, highest_step, read_marks, rejoining, stages
from bench.recovery.verdict import KEPT, KEPT_KINDS, Recovery, until_first_step, verdicts

PACE = 0.1
SAVE_EVERY = 5.0
WORKERS = {"collective": 2, "ps": 3}
STALL_SECONDS = 20
"""On a busy machine the import of Paddle alone takes 10 s without a line of output."""
PROGRAMS = {
    "collective": Path(__file__).parent / "recovery/program.py",
    "ps": Path(__file__).parent / "recovery/ps_program.py",
}
CHECKPOINT = "newest.pdckpt"
"""The file that program.py renames its checkpoints to."""
PARTS = {
    "noticed": ("noticed", "decided"),
    "old pods end": ("deleted",),
    "start barrier": ("created", "published"),
    "programs start": ("started",),
    "program is back": ("imported", "joined", "restored", "stepped"),
}
"""The parts of a recovery that the documentation shows, and their stages."""
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
    faults, turns, count = [], itertools.cycle(kinds), max(1, int(60 * options.minutes // options.every))
    for number, part in enumerate(parts(count, options.seed)):
        await asyncio.sleep(max(0.0, begun + options.every * (number + 0.5) - SAVE_EVERY - time.time()))
        await engine.undo()
        if options.job == "collective":
            await next_checkpoint(engine.folder(DISTURBED))
            await asyncio.sleep(part)
        kind = next(turns)
        rank = number // len(kinds) % WORKERS[options.job]
        faults.append(Fault(time.time(), kind, engine.attempt(DISTURBED), rank))
        print(f"{time.time() - begun:6.1f} s  {kind} worker {rank} in attempt {faults[-1].attempt}", flush=True)
        await engine.inject(kind, DISTURBED, rank)
    await asyncio.sleep(max(0.0, begun + 60 * options.minutes - time.time()))
    return faults


def parts(count: int, seed: int) -> list[float]:
    """How many seconds after a checkpoint each fault comes: spread evenly over the time until the next one."""
    found = [SAVE_EVERY * (number + 0.5) / count for number in range(count)]
    random.Random(seed).shuffle(found)
    return found


async def next_checkpoint(folder: Path, patience: float = 2 * SAVE_EVERY) -> None:
    """Wait until the program saves; not for long, because it may not have recovered from the last fault yet."""
    newest, begun, deadline = folder / CHECKPOINT, time.time(), time.monotonic() + patience
    while time.monotonic() < deadline:
        if newest.exists() and newest.stat().st_mtime >= begun:
            return
        await asyncio.sleep(0.05)


def report(
    engine: Engine, job: str, faults: list[Fault], marks: dict[str, list[Mark]], begun: float, ended: float
) -> int:
    gained = {name: steps_gained(job, found, begun, ended) for name, found in marks.items()}
    kept = 100 * gained[DISTURBED] / max(1, gained[STEADY])
    recoveries = [(fault, durations(fault, _reached(engine, job, fault, marks[DISTURBED]))) for fault in faults]
    print_recoveries(recoveries)
    if isinstance(engine, OnCluster) and job == "collective":
        record_recoveries(recoveries)
    if {fault.kind for fault in faults} == KEPT_KINDS:
        values = {"kept": kept, "goal": KEPT[job], "minutes": (ended - begun) / 60, "faults": len(faults)}
        figures.record("goodput", f"{engine.name} {job}", values)
    print(f"\nsteps: {gained[DISTURBED]} under faults, {gained[STEADY]} undisturbed; kept {kept:.1f} %")
    print(f"{DISTURBED}: {engine.status(DISTURBED)}\n")
    found = verdicts(job, kept, recoveries, STALL_SECONDS)
    print("\n".join(map(str, found)))
    return 0 if all(one.met for one in found) else 1


def record_recoveries(recoveries: list[Recovery]) -> None:
    """The median of each part of a recovery, by kind of fault, for the plot in the documentation."""
    for kind in dict.fromkeys(fault.kind for fault, _ in recoveries):
        whole = [took for fault, took in recoveries if fault.kind == kind and "stepped" in took]
        if whole:
            parts = {
                part: [sum(took.get(one, 0.0) for one in names) for took in whole] for part, names in PARTS.items()
            }
            figures.record("recovery", kind, {part: statistics.median(seconds) for part, seconds in parts.items()})


def print_recoveries(recoveries: list[Recovery]) -> None:
    print(f"\nseconds of each recovery{'':25}" + "".join(f"{fault.kind:>8}" for fault, _ in recoveries) + "  median")
    rows = {what: [took.get(stage) for _, took in recoveries] for stage, what in STAGES.items()}
    rows["from the fault to the first step"] = [until_first_step(took) for _, took in recoveries]
    rows["in all"] = [sum(took.values()) for _, took in recoveries]
    for what, seconds in rows.items():
        known = [one for one in seconds if one is not None]
        cells = "".join(f"{'-':>8}" if one is None else f"{one:8.2f}" for one in seconds)
        print(f"{what:49}{cells}" + (f"{statistics.median(known):8.2f}" if known else ""))


def _reached(engine: Engine, job: str, fault: Fault, marks: list[Mark]) -> dict[str, float]:
    if job == "ps":
        return rejoining(fault, marks)
    return stages(fault, engine.sights[DISTURBED], marks, WORKERS[job])


def steps_gained(job: str, marks: list[Mark], begun: float, ended: float) -> int:
    """Workers with parameter servers step on their own; those of a collective job repeat steps after a fault."""
    if job == "ps":
        return sum(mark.what == "step" and begun <= mark.time <= ended for mark in marks)
    return highest_step(marks, ended) - highest_step(marks, begun)


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=["embedded", "cluster"], default="embedded")
    parser.add_argument("--job", choices=["collective", "ps"], default="collective")
    parser.add_argument("--minutes", type=float, default=6)
    parser.add_argument("--every", type=float, default=60, help="seconds between two faults")
    parser.add_argument("--seed", type=int, default=1, help="order in which faults are spread between checkpoints")
    parser.add_argument("--kind", action="append", choices=["kill", "delete", "freeze", "node"])
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(arguments())))
