"""The test cluster under faults: programs are killed and frozen, pods deleted by force, nodes killed."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Any, Self

from bench.recovery.timeline import Sight
from paddlejob import contract
from paddlejob.kube.access import find_access
from paddlejob.kube.client import Client
from paddlejob.kube.resource import PODS, Resource
from paddlejob.objects.resources import PADDLEJOBS, attempt_of, job_of
from testbed.cluster import Cluster
from testbed.images.productimages import DOCUMENTS, push_programs, push_training
from testbed.nodes.node import Node
from tests.support.on_cluster import DEPLOYMENT, ROOT

KINDS = ("kill", "delete", "freeze", "node")
IMAGE = f"{DOCUMENTS}/demo-wide-and-deep:v1"
HOSTNAME = "kubernetes.io/hostname"
SEND_SIGNAL = """
import os, pathlib, sys
for found in pathlib.Path("/proc").glob("[0-9]*/environ"):
    if f"HOSTNAME={sys.argv[1]}".encode() in found.read_bytes().split(bytes(1)):
        os.kill(int(found.parent.name), int(sys.argv[2]))
"""


class OnCluster:
    name = "cluster"
    kinds = KINDS

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.sights: dict[str, list[Sight]] = {}
        self._jobs: dict[str, dict[str, Any]] = {}
        self._pods: dict[str, dict[str, Any]] = {}
        self._killed: Node | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._cluster = self._stack.enter_context(Cluster())
        push_programs(self._cluster.registry, print)
        push_training(self._cluster.registry, print, [IMAGE])
        self._cluster.drop_stale_images()
        files = [str(ROOT / "deploy/v1/crd.yaml"), "-f", str(ROOT / "deploy/v1/operator.yaml")]
        self._cluster.kubectl("create", "-f", *files)
        self._cluster.kubectl("-n", "paddle-system", "rollout", "status", DEPLOYMENT, "--timeout=300s")
        self._calm = self._get("-n", "paddle-system", "get", "pods")["items"][0]["spec"]["nodeName"]
        client = await self._stack.enter_async_context(Client(find_access(str(self._cluster.kubeconfig))))
        for resource, known in ((PADDLEJOBS, self._jobs), (PODS, self._pods)):
            watching = asyncio.create_task(self._watch(client, resource, known))
            self._stack.callback(watching.cancel)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def folder(self, name: str) -> Path:
        """All nodes are on this machine, so a host path is the same directory everywhere."""
        made = self.scratch / name
        made.mkdir(exist_ok=True)
        return made

    async def submit(self, document: dict[str, Any]) -> None:
        """The first job stays on the operator's node, which is never killed; the others keep away from it."""
        operator = "NotIn" if self.sights else "In"
        rule = {"key": HOSTNAME, "operator": operator, "values": [self._calm]}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        document["spec"]["worker"]["template"]["spec"]["affinity"] = affinity
        self.sights[document["metadata"]["name"]] = []
        self._cluster.kubectl("create", "-f", "-", input=json.dumps(document))

    async def inject(self, kind: str, name: str, index: int) -> None:
        pod = f"{name}-worker-{index}"
        node = self._node_of(pod)
        if kind == "node":
            self._killed = node
            await asyncio.to_thread(node.kill)
        elif kind == "delete":
            force = ("--force", "--grace-period=0", "--wait=false")
            await asyncio.to_thread(self._cluster.kubectl, "delete", "pod", pod, *force)
        else:
            number = signal.SIGKILL if kind == "kill" else signal.SIGSTOP
            await asyncio.to_thread(node.run, sys.executable, "-c", SEND_SIGNAL, pod, str(int(number)))

    async def undo(self) -> None:
        """Start the node that was killed, before another is."""
        if self._killed is not None:
            await asyncio.to_thread(self._killed.start)
            await asyncio.to_thread(self._cluster.wait_ready, self._killed)
            self._killed = None

    def status(self, name: str) -> str:
        status = self._get("get", "pdj", name).get("status") or {}
        headline = status.get("message", "").partition("\n")[0]
        return f"{status.get('phase')} {status.get('reason')}: {headline}"

    def attempt(self, name: str) -> int:
        return self.sights[name][-1].attempt

    def _get(self, *arguments: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._cluster.kubectl(*arguments, "-o", "json").stdout)
        return found

    def _node_of(self, pod: str) -> Node:
        name = self._pods[pod]["spec"]["nodeName"]
        return next(node for node in self._cluster.nodes if node.name == name)

    async def _watch(self, client: Client, resource: Resource, known: dict[str, dict[str, Any]]) -> None:
        async with aclosing(client.watch(resource, "default", version="0", seconds=7200)) as events:
            async for event in events:
                name = event.object["metadata"].get("name", "")
                if event.type == "DELETED":
                    known.pop(name, None)
                elif event.type != "BOOKMARK":
                    known[name] = event.object
                self._note(name if resource is PADDLEJOBS else job_of(event.object) or "")

    def _note(self, name: str) -> None:
        if name not in self.sights:
            return
        status = self._jobs.get(name, {}).get("status") or {}
        mine = [
            pod for pod in self._pods.values() if (pod["metadata"].get("labels") or {}).get(contract.LABEL_JOB) == name
        ]
        pods = frozenset((pod["metadata"]["uid"], attempt_of(pod), _runs(pod)) for pod in mine)
        sight = Sight(time.time(), status.get("attempt", 0), status.get("publishedAttempt", 0), pods)
        self.sights[name].append(sight)


def _runs(pod: dict[str, Any]) -> bool:
    return pod["status"].get("phase") in ("Pending", "Running") and not pod["metadata"].get("deletionTimestamp")
