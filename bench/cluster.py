"""Time from `kubectl apply` until every training process runs, compared with bare pods, on the test cluster.

python -m bench.cluster [ROUNDS]     needs root; see testbed/
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from typing import Any

from paddlejob.kube.access import find_access
from paddlejob.kube.client import Client
from paddlejob.kube.resource import PODS
from testbed.cluster import Cluster
from testbed.images.productimages import DOCUMENTS, push_programs, push_training
from tests.support.builders import document
from tests.support.on_cluster import DEPLOYMENT, ROOT

IMAGE = f"{DOCUMENTS}/demo-wide-and-deep:v1"
SERVERS = WORKERS = 2
TARGET = 4.0


async def main(rounds: int) -> int:
    with Cluster() as cluster:
        push_programs(cluster.registry, print)
        push_training(cluster.registry, print, [IMAGE])
        cluster.drop_stale_images()
        cluster.kubectl("create", "-f", str(ROOT / "deploy/v1/crd.yaml"), "-f", str(ROOT / "deploy/v1/operator.yaml"))
        cluster.kubectl("-n", "paddle-system", "rollout", "status", DEPLOYMENT, "--timeout=300s")
        async with Client(find_access(str(cluster.kubeconfig))) as client:
            await measured(cluster, client, "warm", [_pod(f"w{n}", node=f"node-{n % 3 + 1}") for n in range(6)])
            bare, ours = [], []
            for number in range(rounds):
                pods = [_pod(f"bare-{index}") for index in range(SERVERS + WORKERS)]
                bare.append(await measured(cluster, client, f"bare-{number}", pods))
                ours.append(await measured(cluster, client, f"job-{number}", [_job()]))
                print(f"round {number + 1}: bare pods {bare[-1]:.2f} s, PaddleJob {ours[-1]:.2f} s", flush=True)
    above = statistics.median(ours) - statistics.median(bare)
    print(f"all training processes ran {above:.2f} s later than bare pods (median of {rounds}; target {TARGET:.0f} s)")
    return 0 if above <= TARGET else 1


async def measured(cluster: Cluster, client: Client, namespace: str, objects: list[dict[str, Any]]) -> float:
    """Seconds from `kubectl apply` until the containers of all pods run."""
    cluster.create_namespace(namespace)
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    wanted = SERVERS + WORKERS if objects[0]["kind"] == "PaddleJob" else len(objects)
    watching = asyncio.create_task(_all_running(client, namespace, wanted))
    begun = time.monotonic()
    await asyncio.to_thread(cluster.kubectl, "-n", namespace, "apply", "-f", "-", input=text)
    await asyncio.wait_for(watching, 180)
    took = time.monotonic() - begun
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")
    return took


async def _all_running(client: Client, namespace: str, count: int) -> None:
    running: set[str] = set()
    async for event in client.watch(PODS, namespace, version="0"):
        states = [one["state"] for one in event.object.get("status", {}).get("containerStatuses", [])]
        if states and all("running" in state for state in states):
            running.add(event.object["metadata"]["name"])
        if len(running) >= count:
            return


def _pod(name: str, node: str = "") -> dict[str, Any]:
    container = {"name": "paddle", "image": IMAGE, "command": ["sleep", "600"]}
    spec: dict[str, Any] = {"terminationGracePeriodSeconds": 0, "containers": [container]}
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def _job() -> dict[str, Any]:
    made = document("timed", ps=SERVERS, workers=WORKERS)
    del made["metadata"]["namespace"]
    for role in ("ps", "worker"):
        spec = made["spec"][role]["template"]["spec"]
        spec["terminationGracePeriodSeconds"] = 0
        spec["containers"][0] |= {"image": IMAGE, "command": ["sleep", "600"]}
    return made


if __name__ == "__main__":
    sys.exit(asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)))
