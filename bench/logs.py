"""What reading logs costs the operator and the API server: running jobs whose worker 0 prints a line every second.

The API server is real, and passes each request for a log on to a server that stands in for the kubelets. The same jobs
are measured with --no-read-logs first; the difference is the cost of reading, with the status writes that follow.

    python -m bench.logs [JOBS [SECONDS]]
"""

from __future__ import annotations

import asyncio
import math
import re
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.operator import FAKE_NODES, cpu_seconds, job_pods
from paddlejob.kube.access import find_access
from paddlejob.kube.client import Client
from paddlejob.objects.resources import PADDLEJOBS
from testbed.controlplane import ControlPlane
from tests.support.log_server import Line, LogServer
from tests.support.operator_fixtures import ACCOUNT, install
from tests.support.operator_process import OperatorProcess

MOST_REQUESTS, MOST_CPU = 20.0, 0.10
NAMESPACE = "logs"
BEGUN = datetime.now(UTC)


@dataclass
class Cost:
    cpu: float
    server_cpu: float
    requests: float
    writes: float


async def main(jobs: int, seconds: float) -> int:
    with ControlPlane(scheduler=True, fake_nodes=FAKE_NODES) as plane, tempfile.TemporaryDirectory() as scratch:
        install(plane)
        plane.create_namespace(NAMESPACE)
        kubeconfig = plane.kubeconfig_for(*ACCOUNT)
        async with Client(find_access(str(plane.kubeconfig))) as client, LogServer(plane, _lines) as server:
            for node in plane.kubectl("get", "nodes", "-o", "name").stdout.split():
                server.serve_node(node.removeprefix("node/"))
            with OperatorProcess(kubeconfig, Path(scratch) / "log", "--no-read-logs") as operator:
                operator.until_ready()
                await job_pods(client, NAMESPACE, jobs, 1)
                without = await measured(plane, operator, server, seconds)
            with OperatorProcess(kubeconfig, Path(scratch) / "log") as operator:
                operator.until_ready()
                reading = await measured(plane, operator, server, seconds)
            found = await client.list(PADDLEJOBS, NAMESPACE)
    known = sum("progress" in one["status"] for one in found)
    cpu = reading.cpu - without.cpu
    print(f"{jobs} running jobs, {seconds:.0f} s each without and with reading their logs; {known} show progress")
    print(f"  requests for logs  {reading.requests:6.1f} /s   (limit {MOST_REQUESTS:.0f})")
    print(f"  status writes      {reading.writes:6.1f} /s")
    print(f"  operator           {cpu:6.1%} of a core   (limit {MOST_CPU:.0%}; {without.cpu:.1%} without)")
    print(f"  API server         {reading.server_cpu - without.server_cpu:6.1%} of a core")
    return 0 if known == jobs and reading.requests <= MOST_REQUESTS and cpu < MOST_CPU else 1


async def measured(plane: ControlPlane, operator: OperatorProcess, server: LogServer, seconds: float) -> Cost:
    """The first round is left out: the operator starts, and reads every job once."""
    await asyncio.sleep(seconds / 2)
    api = plane.processes["kube-apiserver"].pid
    before = (cpu_seconds(operator.pid), cpu_seconds(api), server.requests, _writes(operator), time.monotonic())
    await asyncio.sleep(seconds)
    after = (cpu_seconds(operator.pid), cpu_seconds(api), server.requests, _writes(operator), time.monotonic())
    took = after[4] - before[4]
    return Cost(*((after[number] - before[number]) / took for number in range(4)))


def _lines(pod: str) -> list[Line]:
    """A line for each of the last minutes' seconds."""
    now = datetime.now(UTC)
    steps = math.floor((now - BEGUN).total_seconds())
    return [
        (BEGUN + timedelta(seconds=step), f"[{pod}] epoch: 1 step: {step}/100000 loss: {1 / (step + 1):.6f} ips: 812.4")
        for step in range(max(0, steps - 200), steps)
    ]


def _writes(operator: OperatorProcess) -> float:
    pattern = r'paddlejob_api_requests_total\{code="200",resource="paddlejobs",verb="update"\} ([\d.]+)'
    found = re.search(pattern, operator.get("/metrics"))
    return float(found[1]) if found else 0.0


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(asyncio.run(main(int(given[0]) if given else 500, float(given[1]) if given[1:] else 60.0)))
