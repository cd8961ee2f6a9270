"""Speed of the operator at scale, relative to a baseline: the same pods created directly, as fast as the API server
accepts them, on the same machine in the same run, with the scheduler and KWOK's fake nodes.

    python -m bench.operator [1x100 1x1000 100x4 500x4 fair deletion memory]     (jobs x workers)

Any other size can be given too, such as 2000x4 or 1x5000.
"""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import dataclass
from typing import Any

from bench import figures
from bench.fairness import measure_deletion, measure_fairness
from bench.memory import measure_memory
from bench.stage import clear, job_document, running_operator, until
from paddlejob.api.types import PaddleJob, Role
from paddlejob.kube.access import find_access
from paddlejob.kube.client import Client
from paddlejob.kube.resource import PODS
from paddlejob.objects.resources import PADDLEJOBS
from paddlejob.plan.manifests.pod import pod_manifest
from testbed.controlplane import ControlPlane
from tests.support.operator_fixtures import install

CASES = ("1x100", "1x1000", "100x4", "500x4", "fair", "deletion", "memory")
STORED = 10_000
LARGE_JOBS, DOOMED_WORKERS = 16, 3000
IN_FLIGHT = 32
FAKE_NODES = 20


HEADER = (
    f"{'jobs x workers':>14} {'created':>9} {'floor':>7} {'ratio':>6} {'running':>9} {'floor':>7} {'ratio':>6} "
    f"{'CPU':>7} {'RSS':>8} {'writes/pod':>11} {'status writes/job':>18}"
)


@dataclass
class Times:
    created: float
    running: float


async def main(cases: list[str]) -> None:
    if "memory" in cases:
        measure_memory(STORED)
    sizes = [case for case in cases if "x" in case]
    if not sizes and not {"fair", "deletion"} & set(cases):
        return
    with ControlPlane(scheduler=True, fake_nodes=FAKE_NODES) as plane:
        install(plane)
        async with Client(find_access(str(plane.kubeconfig))) as client:
            if sizes:
                print(HEADER)
            for case in sizes:
                jobs, workers = map(int, case.split("x"))
                await measure(plane, client, jobs, workers)
            if "fair" in cases:
                await measure_fairness(plane, client, LARGE_JOBS)
            if "deletion" in cases:
                await measure_deletion(plane, client, DOOMED_WORKERS)


async def measure(plane: ControlPlane, client: Client, jobs: int, workers: int) -> None:
    namespaces = {kind: f"{kind}-{jobs}x{workers}" for kind in ("floor", "jobs")}
    for namespace in namespaces.values():
        plane.create_namespace(namespace)
    total = jobs * workers
    floor = await raw_pods(client, namespaces["floor"], total)
    await clear(plane, client, namespaces["floor"])
    with running_operator(plane) as (operator, cost):
        ours = await job_pods(client, namespaces["jobs"], jobs, workers)
        await asyncio.sleep(2)
        spent = cost(operator)
    await clear(plane, client, namespaces["jobs"])
    writes = sum(spent.writes.values()) / total
    reports = spent.writes["update paddlejobs"] / jobs
    print(
        f"{jobs:>7} x {workers:<4} {ours.created:>8.2f}s {floor.created:>6.2f}s {ours.created / floor.created:>6.2f} "
        f"{ours.running:>8.2f}s {floor.running:>6.2f}s {ours.running / floor.running:>6.2f} {spent.cpu:>6.2f}s "
        f"{spent.rss:>5.0f}MiB {writes:>11.2f} {reports:>18.2f}"
    )
    print("               " + ", ".join(f"{count} {what}" for what, count in spent.writes.most_common()), flush=True)
    seconds = {"created": ours.created, "floor": floor.created, "running": ours.running, "running_floor": floor.running}
    figures.record("operator", f"{jobs}x{workers}", seconds)


async def raw_pods(client: Client, namespace: str, total: int) -> Times:
    """Pods like a job's, but without an environment to wait for."""
    job = PaddleJob.model_validate(job_document("raw", 1, namespace))
    begun = time.monotonic()
    in_flight = asyncio.Semaphore(IN_FLIGHT)

    async def create(index: int) -> None:
        manifest = pod_manifest(job, Role.WORKER, 0, 1, "raw")
        del manifest["spec"]["containers"][0]["envFrom"]
        manifest["metadata"] |= {"name": f"raw-{index}", "ownerReferences": [], "labels": {"raw": "yes"}}
        async with in_flight:
            await client.create(PODS, manifest)

    await asyncio.gather(*(create(index) for index in range(total)))
    created = time.monotonic() - begun
    await until(client, namespace, total, is_running)
    return Times(created, time.monotonic() - begun)


async def job_pods(client: Client, namespace: str, jobs: int, workers: int) -> Times:
    begun = time.monotonic()
    in_flight = asyncio.Semaphore(IN_FLIGHT)

    async def create(number: int) -> None:
        async with in_flight:
            await client.create(PADDLEJOBS, job_document(f"job-{number}", workers, namespace))

    creating = asyncio.gather(*(create(number) for number in range(jobs)))
    await until(client, namespace, jobs * workers, lambda pod: True)
    created = time.monotonic() - begun
    await creating
    await until(client, namespace, jobs, is_running, PADDLEJOBS)
    return Times(created, time.monotonic() - begun)


def is_running(found: dict[str, Any]) -> bool:
    return (found.get("status") or {}).get("phase") == "Running"


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:] or list(CASES)))
