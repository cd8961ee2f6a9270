"""What reading logs costs the operator: jobs whose worker 0 prints a line every second; one of them ends in each.

The API server is scripted and in a process of its own, because KWOK's pods have no logs; the operator is the real one.
Its cost includes reconciling the jobs that were read, writing their status, and the last read of those that end.

    python -m bench.logs [JOBS [SECONDS]]
"""

from __future__ import annotations

import asyncio
import json
import math
import multiprocessing
import sys
import tempfile
import time
import urllib.request
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aiohttp import web

from bench.stage import cpu_seconds
from paddlejob.api.types import Role
from paddlejob.plan.manifests.pod import pod_manifest
from tests.support.builders import document, job
from tests.support.operator_process import OperatorProcess, free_port
from tests.support.scripted_cluster import Object, ScriptedCluster

MOST_REQUESTS, MOST_CPU = 20.0, 0.10
ROUND = 75.0
"""Seconds in which every one of 500 jobs is read once; the first round also writes the status of every job."""
STATUS: Object = {
    "phase": "Running",
    "reason": "Running",
    "attempt": 1,
    "publishedAttempt": 1,
    "observedGeneration": 1,
    "worker": {"replicas": 1, "running": 1, "ready": "1/1"},
}


class Server(ScriptedCluster):
    """Jobs that run, and their logs."""

    def __init__(self, jobs: int) -> None:
        super().__init__(*(one for number in range(jobs) for one in _stored(f"job-{number}")))
        self.counts = {"logs": 0, "writes": 0}
        self._begun = datetime.now(UTC)
        self._ended: dict[str, int] = {}
        """By job: how many lines it has printed."""
        self._ending = asyncio.Event()

    async def respond(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/counts":
            return web.json_response(self.counts | self._shown())
        if request.path == "/end":
            self._ending.set()
            return web.Response()
        if request.path.endswith("/pods") and "watch" in request.query:
            return await self._end_jobs(request)
        if request.path.endswith("/log"):
            self.counts["logs"] += 1
            return web.Response(text=self._log(request.path.split("/")[-2].removesuffix("-worker-0"), request.query))
        self.counts["writes"] += request.method == "PUT"
        return await super().respond(request)

    def _shown(self) -> dict[str, int]:
        """How many jobs show progress, have ended, and show their last step."""
        shown = {
            path.rpartition("/")[2]: (one.get("status") or {}).get("progress") for path, one in self.objects.items()
        }
        exact = sum((shown[name] or {}).get("step") == lines - 1 for name, lines in self._ended.items())
        return {"progress": sum(one is not None for one in shown.values()), "ended": len(self._ended), "exact": exact}

    async def _end_jobs(self, request: web.Request) -> web.StreamResponse:
        """A watch of pods: one succeeds in each second."""
        response = web.StreamResponse()
        await response.prepare(request)
        await self._ending.wait()
        pods = [(path, one) for path, one in self.objects.items() if "/pods/" in path]
        for path, pod in pods:
            await asyncio.sleep(1.0)
            name = path.rpartition("/")[2].removesuffix("-worker-0")
            self._ended[name] = self._elapsed()
            state = {"name": "paddle", "state": {"terminated": {"exitCode": 0}}}
            ended = self.put(path, pod | {"status": {"phase": "Succeeded", "containerStatuses": [state]}})
            with suppress(ConnectionResetError):
                await response.write(json.dumps({"type": "MODIFIED", "object": ended}).encode() + b"\n")
        return response

    def _elapsed(self) -> int:
        return math.floor((datetime.now(UTC) - self._begun).total_seconds())

    def _log(self, name: str, query: Any) -> str:
        elapsed = self._ended.get(name, self._elapsed())
        first = max(0, elapsed - int(query["tailLines"]))
        if since := query.get("sinceTime"):
            first = max(first, math.floor((datetime.fromisoformat(since) - self._begun).total_seconds()))
        return "".join(self._line(step) for step in range(first, elapsed))

    def _line(self, step: int) -> str:
        at = self._begun + timedelta(seconds=step)
        loss = f"loss: {1 / (step + 1):.6f}, learning_rate: 0.0001, ips: 812.4 samples/s"
        return f"{at:%Y-%m-%dT%H:%M:%S.%f}000Z [train] epoch: 1/10, global_step: {step}/100000, {loss}\n"


def serve(port: int, jobs: int) -> None:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", Server(jobs).respond)
    web.run_app(app, host="127.0.0.1", port=port, print=None, access_log=None)


def main(jobs: int, seconds: float) -> int:
    port = free_port()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(port, jobs), daemon=True)
    server.start()
    try:
        with tempfile.TemporaryDirectory() as scratch:
            return measure(Path(scratch), port, jobs, seconds)
    finally:
        server.kill()
        server.join()


def measure(scratch: Path, port: int, jobs: int, seconds: float) -> int:
    _until_served(port)
    with OperatorProcess(_kubeconfig(scratch, port), scratch / "log") as operator:
        operator.until_ready()
        time.sleep(ROUND)
        _get(port, "end")
        before, begun, used = _counts(port), time.monotonic(), cpu_seconds(operator.pid)
        time.sleep(seconds)
        after, took, cpu = _counts(port), time.monotonic() - begun, cpu_seconds(operator.pid) - used
    requests, writes = ((after[name] - before[name]) / took for name in ("logs", "writes"))
    print(f"{jobs} running jobs for {took:.0f} s; {after['progress']} show progress")
    print(f"  requests for logs {requests:6.1f} /s          limit {MOST_REQUESTS:.0f} /s")
    print(f"  status writes     {writes:6.1f} /s")
    print(f"  operator          {cpu / took:6.1%} of a core   limit {MOST_CPU:.0%}")
    print(f"  {after['ended']} jobs ended; {after['exact']} show their last step")
    return 0 if after["progress"] == jobs and requests <= MOST_REQUESTS and cpu / took < MOST_CPU else 1


def _stored(name: str) -> list[tuple[str, Object]]:
    made = document(name, workers=1)
    made["metadata"] |= {"uid": f"uid-of-{name}", "generation": 1}
    started = (datetime.now(UTC) - timedelta(seconds=10)).strftime("%Y-%m-%dT%H:%M:%SZ")
    state = {"phase": "Running", "containerStatuses": [{"name": "paddle", "state": {"running": {}}}]}
    pod = pod_manifest(job(name, workers=1), Role.WORKER, 0, 1, "build") | {"status": state}
    return [
        (f"default/paddlejobs/{name}", made | {"status": STATUS | {"startTime": started}}),
        (f"default/pods/{name}-worker-0", pod),
    ]


def _kubeconfig(scratch: Path, port: int) -> Path:
    path = scratch / "kubeconfig"
    clusters = [{"name": "scripted", "cluster": {"server": f"http://127.0.0.1:{port}"}}]
    contexts = [{"name": "scripted", "context": {"cluster": "scripted", "user": "none"}}]
    users = [{"name": "none", "user": {}}]
    config = {"clusters": clusters, "contexts": contexts, "users": users, "current-context": "scripted"}
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **config}))
    return path


def _until_served(port: int, seconds: float = 60) -> None:
    ends = time.monotonic() + seconds
    while True:
        try:
            _counts(port)
            return
        except OSError:
            if time.monotonic() > ends:
                raise
            time.sleep(0.1)


def _counts(port: int) -> dict[str, int]:
    found: dict[str, int] = json.loads(_get(port, "counts"))
    return found


def _get(port: int, path: str) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=10) as response:
        return bytes(response.read())


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(main(int(given[0]) if given else 500, float(given[1]) if given[1:] else 2 * ROUND))
