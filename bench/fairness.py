"""Fairness of the operator: how soon a job of two pods is built while large jobs are, and what a deletion leaves."""

from __future__ import annotations

import asyncio
import time

from bench.stage import clear, job_document, running_operator, until
from paddlejob.kube.client import Client
from paddlejob.objects.resources import PADDLEJOBS
from testbed.controlplane import ControlPlane

LARGE, SMALL = 500, 2
PAUSE = 1.0
"""Seconds after which the small job is submitted, and a large one deleted."""


async def measure_fairness(plane: ControlPlane, client: Client, jobs: int) -> None:
    for namespace in ("large", "small"):
        plane.create_namespace(f"{namespace}-{jobs}")
    with running_operator(plane):
        building = asyncio.create_task(_build(client, f"large-{jobs}", jobs))
        await asyncio.sleep(PAUSE)
        begun = time.monotonic()
        await client.create(PADDLEJOBS, job_document("small", SMALL, f"small-{jobs}"))
        await until(client, f"small-{jobs}", SMALL, lambda pod: True)
        took = time.monotonic() - begun
        unfinished = not building.done()
        await building
    beside = f"beside {jobs} x {LARGE}" if unfinished else f"after {jobs} x {LARGE}, which were built too soon"
    print(f"fairness: {SMALL} pods of a small job were created in {took:.2f} s {beside}", flush=True)
    for namespace in ("large", "small"):
        await clear(plane, client, f"{namespace}-{jobs}")


async def measure_deletion(plane: ControlPlane, client: Client, workers: int) -> None:
    """The pods that are created although their job was deleted while it was built."""
    namespace = f"deleted-{workers}"
    plane.create_namespace(namespace)
    before = workers // 20
    with running_operator(plane) as (operator, cost):
        await client.create(PADDLEJOBS, job_document("doomed", workers, namespace))
        await until(client, namespace, before, lambda pod: True)
        await client.delete(PADDLEJOBS, "doomed", namespace, propagation="Background")
        await asyncio.sleep(5)
        created = cost(operator).writes["create pods"]
    print(f"deletion: {created} of {workers} pods were created; the job was deleted after {before}", flush=True)
    await clear(plane, client, namespace)


async def _build(client: Client, namespace: str, jobs: int) -> None:
    for number in range(jobs):
        await client.create(PADDLEJOBS, job_document(f"large-{number}", LARGE, namespace))
    await until(client, namespace, jobs * LARGE, lambda pod: True)
