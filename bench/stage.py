"""What the benchmarks of the operator share: an operator on a control plane, and what it costs."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddlejob.kube.client import Client
from paddlejob.kube.resource import PODS, Resource
from testbed.controlplane import ControlPlane
from tests.support.builders import document
from tests.support.operator_fixtures import ACCOUNT
from tests.support.operator_process import OperatorProcess


@dataclass
class Cost:
    cpu: float
    rss: float
    writes: Counter[str]


async def until(client: Client, namespace: str, count: int, matches: Any, resource: Resource = PODS) -> None:
    """Watch instead of polling, so that the measurement does not slow what it measures."""
    seen: set[str] = set()
    while True:
        async for page in client.pages(resource, namespace):
            seen.update(one["metadata"]["name"] for one in page.items if matches(one))
            version = page.version
        if len(seen) >= count:
            return
        # The server ends every watch after some minutes.
        async with aclosing(client.watch(resource, namespace, version=version)) as events:
            async for event in events:
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
def running_operator(plane: ControlPlane, source: Path | None = None) -> Iterator[Any]:
    """Of another version if `source` holds its packages."""
    with (
        tempfile.TemporaryDirectory() as scratch,
        OperatorProcess(plane.kubeconfig_for(*ACCOUNT), Path(scratch) / "log", source=source) as operator,
    ):
        operator.until_ready()
        before = cpu_seconds(operator.pid)
        yield operator, lambda one: Cost(cpu_seconds(one.pid) - before, _peak(one.pid), _writes(one))


def job_document(name: str, workers: int, namespace: str) -> dict[str, Any]:
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
