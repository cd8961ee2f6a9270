"""The cluster with the operator and the population, and what faults and checks ask of them."""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paddlejob import contract
from testbed.cluster import Cluster
from testbed.images.productimages import push_programs, push_training
from testbed.nodes.node import Node
from tools.chaos.jobs import END, POPULATION, Object, Shape

ROOT = Path(__file__).parents[2]
NAMESPACE = "chaos"
SYSTEM = "paddle-system"
DEPLOYMENT = "deployment/paddle-controller-manager"
SIGNAL = """
import os, pathlib
for found in pathlib.Path("/proc").glob("[0-9]*/environ"):
    try:
        if {mark!r} in found.read_bytes().split(bytes(1)):
            os.kill(int(found.parent.name), {number})
    except OSError as error:
        pass
"""
MEMORY = """
import pathlib
total = 0
for found in pathlib.Path("/proc").glob("[0-9]*/environ"):
    try:
        if {mark!r} in found.read_bytes().split(bytes(1)):
            total += int((found.parent / "statm").read_text().split()[1]) * 4096
    except OSError as error:
        pass
print(total)
"""


@dataclass
class Stage:
    """`causes` counts, for each job, what may have cost it a restart or a disruption."""

    cluster: Cluster
    random: random.Random
    beats: Path
    shapes: Sequence[Shape] = POPULATION
    causes: Counter[tuple[str, str]] = field(default_factory=Counter)
    recreated: set[str] = field(default_factory=set)
    memory: dict[str, float] = field(default_factory=dict)

    def prepare(self) -> None:
        """Install the operator as the first document does it."""
        push_programs(self.cluster.registry, say)
        images = [shape.image for shape in self.shapes if shape.image]
        if images:
            push_training(self.cluster.registry, say, images)
        self.kubectl("create", "-f", str(ROOT / "deploy/v1/crd.yaml"), "-f", str(ROOT / "deploy/v1/operator.yaml"))
        self.operator_rolled_out()
        self.cluster.create_namespace(NAMESPACE)
        self.beats.mkdir(mode=0o777, exist_ok=True)
        self.beats.chmod(0o777)

    def submit(self) -> None:
        for shape in self.shapes:
            self.create(shape)

    def create(self, shape: Shape) -> None:
        """Create a job, once an earlier one of the same name is gone and the API server is there."""
        document, deadline = json.dumps(shape.document(self.beats)), time.monotonic() + 60
        create = ("-n", NAMESPACE, "create", "-f", "-")
        while (done := self.cluster.kubectl(*create, input=document, check=False)).returncode:
            if time.monotonic() > deadline:
                raise AssertionError(f"{shape.name} cannot be created: {done.stderr.strip()}")
            time.sleep(0.5)

    def end(self) -> None:
        """Let the programs of the population succeed."""
        (self.beats / END).touch()

    def kubectl(self, *arguments: str, input: str | None = None, check: bool = True) -> str:
        return self.cluster.kubectl(*arguments, input=input, check=check).stdout

    def change(self, *arguments: str) -> None:
        """Change something in the namespace of the jobs. That it is gone already is fine."""
        self.kubectl("-n", NAMESPACE, *arguments, check=False)

    def items(self, kind: str, namespace: str = NAMESPACE, selector: str = "") -> list[Object]:
        chosen = ["-l", selector] if selector else []
        printed = self.kubectl("-n", namespace, "get", kind, "-o", "json", *chosen, check=False)
        found: list[Object] = json.loads(printed)["items"] if printed else []
        return found

    def jobs(self) -> dict[str, Object]:
        return {name_of(job): job for job in self.items("pdj")}

    def pods(self, job: str = "") -> list[Object]:
        return self.items("pods", selector=f"{contract.LABEL_JOB}={job}" if job else contract.LABEL_JOB)

    def a_job(self) -> str:
        """Choose a job that faults may hit."""
        return self.random.choice([shape.name for shape in self.shapes if shape.steady])

    def a_pod(self) -> Object | None:
        """Choose a running pod of such a job."""
        running = [pod for pod in self.pods(self.a_job()) if pod["status"].get("phase") == "Running"]
        return self.random.choice(running) if running else None

    def operators(self) -> list[Object]:
        return [pod for pod in self.items("pods", SYSTEM) if "deletionTimestamp" not in pod["metadata"]]

    def operator_rolled_out(self) -> None:
        self.kubectl("-n", SYSTEM, "rollout", "status", DEPLOYMENT, "--timeout=180s")

    def memory_of(self, pod: Object) -> float:
        """Return the resident memory of the operator's process in bytes, read on its node."""
        node = self.node_of(pod)
        if node is None:
            return 0.0
        program = MEMORY.format(mark=f"HOSTNAME={name_of(pod)}".encode())
        return float(node.run(sys.executable, "-c", program, check=False).stdout or 0)

    def a_node(self) -> Node:
        return self.random.choice([node for node in self.cluster.nodes if node.alive])

    def node_of(self, pod: Object) -> Node | None:
        name = pod["spec"].get("nodeName")
        return next((node for node in self.cluster.nodes if node.name == name and node.alive), None)

    def signal(self, pod: Object, number: int) -> None:
        """Send a signal to the processes of a pod, from its node, which sees only its own processes."""
        node = self.node_of(pod)
        if node is not None:
            mark = f"HOSTNAME={name_of(pod)}" if pod["metadata"]["namespace"] == SYSTEM else f"POD={name_of(pod)}"
            node.run(sys.executable, "-c", SIGNAL.format(mark=mark.encode(), number=number), check=False)

    def blame(self, cause: str, *jobs: str) -> None:
        """Note that the next restart or disruption of these jobs, or of all jobs, has a cause."""
        for job in jobs or [shape.name for shape in self.shapes]:
            self.causes[job, cause] += 1


def name_of(item: Object) -> str:
    name: str = item["metadata"]["name"]
    return name


def uid_of(item: Object) -> str:
    uid: str = item["metadata"]["uid"]
    return uid


def job_of(pod: Object) -> str:
    job: str = pod["metadata"]["labels"].get(contract.LABEL_JOB, "")
    return job


def status_of(job: Object) -> dict[str, Any]:
    return job.get("status") or {}


def say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)
