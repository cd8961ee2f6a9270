"""Restarts at scale, relative to the first start of the same job, with the scheduler and KWOK's fake nodes.

    python -m bench.restarts [--workers 1000] [--rounds 2] [--before SOURCE]

SOURCE is the `src` directory of another version, whose operator takes turns with this one on the same control plane.
A program fails after a minute, which counts as progress, so no delay is part of the restart. Pods are removed by their
uid as soon as they are deleted, as by kubelets whose programs end at once.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import figures
from bench.stage import clear, job_document, running_operator, until
from paddlejob.errors import Conflict, KubeError, NotFound
from paddlejob.kube.access import find_access
from paddlejob.kube.client import Client
from paddlejob.kube.resource import PODS
from paddlejob.objects.resources import PADDLEJOBS
from testbed.controlplane import ControlPlane
from tests.support.operator_fixtures import install

FAKE_NODES = 20
TRAINED = 62.0
"""Seconds after which an attempt counts as progress where no step is known."""
IN_FLIGHT = 16


@dataclass(frozen=True)
class Measured:
    """Seconds until the job runs, and the writes of the operator until then."""

    started: float
    start_writes: int
    restarted: float
    restart_writes: int


async def main(workers: int, rounds: int, before: Path | None) -> None:
    versions = {"before": before, "now": None} if before else {"now": None}
    found: dict[str, list[Measured]] = {name: [] for name in versions}
    with ControlPlane(scheduler=True, fake_nodes=FAKE_NODES) as plane:
        install(plane)
        async with Client(find_access(str(plane.kubeconfig))) as client:
            for number in range(rounds):
                for name, source in versions.items():
                    found[name].append(await measure(plane, client, f"{name}-{number}", workers, source))
                    show(f"{name} {number + 1}", found[name][-1])
    medians = {name: median(several) for name, several in found.items()}
    for name, one in medians.items():
        show(f"{name}, median", one)
    figures.record("restarts", f"1x{workers}", vars(medians["now"]))
    if before:
        old, new = medians["before"], medians["now"]
        print(
            f"now / before: restart {new.restarted / old.restarted:.2f}, writes of a restart "
            f"{new.restart_writes / old.restart_writes:.2f}, first start {new.started / old.started:.2f}"
        )


async def measure(plane: ControlPlane, client: Client, namespace: str, workers: int, source: Path | None) -> Measured:
    plane.create_namespace(namespace)
    removing = asyncio.create_task(remove_deleted(client, namespace))
    with running_operator(plane, source) as (operator, cost):
        begun = time.monotonic()
        await client.create(PADDLEJOBS, described(workers, namespace))
        await until(client, namespace, 1, lambda job: runs(job, 1), PADDLEJOBS)
        started, written = time.monotonic() - begun, sum(cost(operator).writes.values())
        await asyncio.sleep(TRAINED)
        written_before = sum(cost(operator).writes.values())
        begun = time.monotonic()
        await fail(client, namespace, "restarted-worker-1")
        await until(client, namespace, 1, lambda job: runs(job, 2), PADDLEJOBS)
        restarted = time.monotonic() - begun
        again = sum(cost(operator).writes.values()) - written_before
    removing.cancel()
    await clear(plane, client, namespace)
    return Measured(started, written, restarted, again)


def described(workers: int, namespace: str) -> dict[str, Any]:
    made = job_document("restarted", workers, namespace)
    made["spec"]["worker"]["template"]["metadata"] = {"annotations": {"testbed/removed-by": "bench.restarts"}}
    return made


def runs(job: dict[str, Any], attempt: int) -> bool:
    status = job.get("status") or {}
    return status.get("phase") == "Running" and status.get("attempt", 0) >= attempt


async def fail(client: Client, namespace: str, name: str) -> None:
    ended = {"name": "paddle", "image": "", "imageID": "", "ready": False, "restartCount": 0}
    status = {"phase": "Failed", "containerStatuses": [{**ended, "state": {"terminated": {"exitCode": 1}}}]}
    await client.patch(PODS, name, namespace, {"status": status}, subresource="status")


async def remove_deleted(client: Client, namespace: str) -> None:
    """Do as kubelets do with pods that are deleted and whose containers have ended."""
    in_flight = asyncio.Semaphore(IN_FLIGHT)
    removing: set[asyncio.Task[None]] = set()

    async def remove(name: str, uid: str) -> None:
        async with in_flight:
            with suppress(NotFound, Conflict):
                await client.delete(PODS, name, namespace, uid=uid, grace_seconds=0)

    def look(pod: dict[str, Any]) -> None:
        about = pod["metadata"]
        if about.get("deletionTimestamp"):
            task = asyncio.create_task(remove(about["name"], about["uid"]))
            removing.add(task)
            task.add_done_callback(removing.discard)

    while True:
        # The server ends a watch that falls behind a thousand changes at once.
        with suppress(KubeError):
            async for page in client.pages(PODS, namespace):
                version = page.version
                for pod in page.items:
                    look(pod)
            async with aclosing(client.watch(PODS, namespace, version=version)) as events:
                async for event in events:
                    if event.type == "MODIFIED":
                        look(event.object)


def median(several: list[Measured]) -> Measured:
    def of(field: str) -> Any:
        return statistics.median(getattr(one, field) for one in several)

    return Measured(of("started"), of("start_writes"), of("restarted"), of("restart_writes"))


def show(name: str, one: Measured) -> None:
    print(
        f"{name:>14}: first start {one.started:6.1f} s, {one.start_writes:.0f} writes; restart {one.restarted:6.1f} s, "
        f"{one.restart_writes:.0f} writes; restart / first start {one.restarted / one.started:.2f}",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="bench.restarts")
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--before", type=Path, metavar="SOURCE")
    given = parser.parse_args()
    asyncio.run(main(given.workers, given.rounds, given.before))
