"""Speed of the operator at scale, relative to a baseline: the same pods created directly, as fast as the API server
accepts them, on the same machine in the same run, with the scheduler and KWOK's fake nodes.

    python -m bench.operator [1x100 1x1000 100x4 500x4]     (jobs x workers)
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddlejob.api.types import PaddleJob, Role
from paddlejob.kube.access import find_access
from paddlejob.kube.client import Client
from paddlejob.kube.resource import PODS
from paddlejob.objects.resources import PADDLEJOBS
from paddlejob.plan.objects.pod import pod_manifest
from testbed.controlplane import ControlPlane
from tests.support.builders import document
from tests.support.operator_fixtures import ACCOUNT, install
from tests.support.operator_process import OperatorProcess

CASES = ("1x100", "1x1000", "100x4", "500x4")
IN_FLIGHT = 32
FAKE_NODES = 20


@dataclass
class Times:
    created: float
    running: float


@dataclass
class Cost:
    cpu: float
    rss: float
    writes: Counter[str]


async def main(cases: list[str]) -> None:
    with ControlPlane(scheduler=True, fake_nodes=FAKE_NODES) as plane:
        install(plane)
        async with Client(find_access(str(plane.kubeconfig))) as client:
            print(f"{'jobs x workers':>14} {'created':>9} {'floor':>7} {'ratio':>6} {'running':>9} {'floor':>7} "
                  f"{'ratio':>6} {'CPU':>7} {'RSS':>8} {'writes/pod':>11}")  # fmt: skip
            for case in cases:
                jobs, workers = map(int, case.split("x"))
                await measure(plane, client, jobs, workers)


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
    print(
        f"{jobs:>7} x {workers:<4} {ours.created:>8.2f}s {floor.created:>6.2f}s {ours.created / floor.created:>6.2f} "
        f"{ours.running:>8.2f}s {floor.running:>6.2f}s {ours.running / floor.running:>6.2f} {spent.cpu:>6.2f}s "
        f"{spent.rss:>5.0f}MiB {writes:>11.2f}"
    )
    print("               " + ", ".join(f"{count} {what}" for what, count in spent.writes.most_common()), flush=True)


async def raw_pods(client: Client, namespace: str, total: int) -> Times:
    """Pods like a job's, but without an environment, which KWOK does not need."""
    job = PaddleJob.model_validate(_job("raw", 1, namespace))
    begun = time.monotonic()
    in_flight = asyncio.Semaphore(IN_FLIGHT)

    async def create(index: int) -> None:
        manifest = pod_manifest(job, Role.WORKER, 0, 1, "raw")
        manifest["metadata"] |= {"name": f"raw-{index}", "ownerReferences": [], "labels": {"raw": "yes"}}
        async with in_flight:
            await client.create(PODS, manifest)

    await asyncio.gather(*(create(index) for index in range(total)))
    created = time.monotonic() - begun
    await until(client, namespace, total, lambda pod: pod["status"].get("phase") == "Running")
    return Times(created, time.monotonic() - begun)


async def job_pods(client: Client, namespace: str, jobs: int, workers: int) -> Times:
    begun = time.monotonic()
    in_flight = asyncio.Semaphore(IN_FLIGHT)

    async def create(number: int) -> None:
        async with in_flight:
            await client.create(PADDLEJOBS, _job(f"job-{number}", workers, namespace))

    creating = asyncio.gather(*(create(number) for number in range(jobs)))
    await until(client, namespace, jobs * workers, lambda pod: True)
    created = time.monotonic() - begun
    await creating
    while True:
        found = await client.list(PADDLEJOBS, namespace)
        if len(found) == jobs and all((job.get("status") or {}).get("phase") == "Running" for job in found):
            return Times(created, time.monotonic() - begun)
        await asyncio.sleep(0.2)


async def until(client: Client, namespace: str, count: int, matches: Any) -> None:
    """Watch instead of polling, so that the measurement does not slow what it measures."""
    seen: set[str] = set()
    page = [page async for page in client.pages(PODS, namespace)][-1]
    seen.update(pod["metadata"]["name"] for pod in await client.list(PODS, namespace) if matches(pod))
    if len(seen) >= count:
        return
    async for event in client.watch(PODS, namespace, version=page.version):
        if event.type in ("ADDED", "MODIFIED") and matches(event.object):
            seen.add(event.object["metadata"]["name"])
            if len(seen) >= count:
                return


async def clear(plane: ControlPlane, client: Client, namespace: str) -> None:
    plane.kubectl("delete", "pdj", "--all", "-n", namespace, "--wait=false")
    plane.kubectl("delete", "pods", "--all", "-n", namespace, "--wait=false", "--grace-period=0", "--force")
    while await client.list(PODS, namespace):  # noqa: ASYNC110
        await asyncio.sleep(0.5)


@contextmanager
def running_operator(plane: ControlPlane) -> Iterator[Any]:
    with (
        tempfile.TemporaryDirectory() as scratch,
        OperatorProcess(plane.kubeconfig_for(*ACCOUNT), Path(scratch) / "log") as operator,
    ):
        operator.until_ready()
        before = cpu_seconds(operator.pid)
        yield operator, lambda one: Cost(cpu_seconds(one.pid) - before, _peak(one.pid), _writes(one))


def _job(name: str, workers: int, namespace: str) -> dict[str, Any]:
    made = document(name, workers=workers)
    made["metadata"]["namespace"] = namespace
    return made


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def _peak(pid: int) -> float:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) / 1024


def _writes(operator: OperatorProcess) -> Counter[str]:
    pattern = r'paddlejob_api_requests_total\{code="(\d+)",resource="(\w+)",verb="(\w+)"\} ([\d.]+)'
    found: Counter[str] = Counter()
    for code, resource, verb, count in re.findall(pattern, operator.get("/metrics")):
        if verb in ("create", "update", "patch", "delete"):
            found[f"{verb} {resource}" + ("" if code.startswith("2") else f" ({code})")] += int(float(count))
    return found


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:] or list(CASES)))
