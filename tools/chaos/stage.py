"""The cluster with the operator and the population, and what faults and checks ask of them."""

from __future__ import annotations

import contextlib
import json
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paddlejob import contract
from testbed.addons.tenant import Tenant
from testbed.cluster import Cluster
from testbed.images.productimages import push_programs, push_training
from testbed.nodes.node import Node
from tools.chaos.api import Lists
from tools.chaos.jobs import END, POPULATION, Object, Shape
from tools.chaos.ledger import DISRUPTION, Ledger
from tools.chaos.watch import Watch

ROOT = Path(__file__).parents[2]
NAMESPACE = "chaos"
TENANT = "tenant"
"""The namespace of somebody who may only view that of the jobs."""
SYSTEM = "paddle-system"
CRD = ROOT / "deploy/v1/crd.yaml"
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
total, first = 0, 0
for found in pathlib.Path("/proc").glob("[0-9]*/environ"):
    try:
        if {mark!r} in found.read_bytes().split(bytes(1)):
            total += int((found.parent / "statm").read_text().split()[1]) * 4096
            first = min(first or 2**31, int(found.parent.name))
    except OSError as error:
        pass
print(first, total)
"""


@dataclass
class Stage:
    """`problems` are found before the end; `unexplained` are counters that no fault explains."""

    cluster: Cluster
    random: random.Random
    beats: Path
    watch: Watch
    lists: Lists
    shapes: Sequence[Shape] = POPULATION
    ledger: Ledger = field(default_factory=Ledger)
    problems: list[str] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)
    tenant: Tenant = field(init=False)

    def prepare(self) -> None:
        """Install the operator as the first document does it."""
        push_programs(self.cluster.registry, say)
        images = [shape.image for shape in self.shapes if shape.image]
        if images:
            push_training(self.cluster.registry, say, images)
        self.cluster.drop_stale_images()
        self.kubectl("create", "-f", str(CRD), "-f", str(ROOT / "deploy/v1/operator.yaml"))
        self.operator_rolled_out()
        for namespace in (NAMESPACE, TENANT):
            self.cluster.create_namespace(namespace)
        self.tenant = Tenant(self.cluster, views=NAMESPACE, edits=TENANT)
        self.beats.mkdir(mode=0o777, exist_ok=True)
        self.beats.chmod(0o777)

    def submit(self) -> None:
        for shape in self.shapes:
            self.create(shape)

    def create(self, shape: Shape) -> None:
        """Create a job, once an earlier one of the same name is gone and the API server is there."""
        self.ledger.begin(shape.name)
        document = json.dumps(shape.document(self.beats, self.ledger.lives[shape.name]))
        deadline = time.monotonic() + 60
        create = ("-n", NAMESPACE, "create", "-f", "-")
        while (done := self.cluster.kubectl(*create, input=document, check=False)).returncode:
            if time.monotonic() > deadline:
                raise AssertionError(f"{shape.name} cannot be created: {done.stderr.strip()}")
            time.sleep(0.5)

    def recreate(self, name: str, *, wait: bool) -> None:
        """Delete a job, whose counters are checked first, and create it again."""
        self.settle()
        shape = next(shape for shape in self.shapes if shape.name == name)
        self.change("delete", "pdj", name, f"--wait={str(wait).lower()}", "--timeout=30s")
        self.create(shape)

    def settle(self) -> None:
        """Note the counters of jobs that no fault explains."""
        for name, job in self.jobs().items():
            if any(shape.name == name and shape.steady for shape in self.shapes):
                message = status_of(job).get("message", "")
                for found in self.ledger.settle(name, status_of(job)):
                    self.unexplained.append(f"{found}; the job says: {message}")
                    say(self.unexplained[-1])

    def note(self, *problems: str) -> None:
        for problem in problems:
            say(f"PROBLEM {problem}")
        self.problems += problems

    def end(self) -> None:
        """Let the programs of the population succeed."""
        (self.beats / END).touch()

    def kubectl(self, *arguments: str, input: str | None = None, check: bool = True) -> str:
        return self.cluster.kubectl(*arguments, input=input, check=check).stdout

    def change(self, *arguments: str) -> None:
        """Change something in the namespace of the jobs. That it is gone already is fine."""
        self.kubectl("-n", NAMESPACE, *arguments, check=False)

    def items(self, kind: str, namespace: str = NAMESPACE, selector: str = "") -> list[Object]:
        return self.lists.items(kind, namespace, selector)

    def jobs(self) -> dict[str, Object]:
        return {name_of(job): job for job in self.items("pdj")}

    def pods(self, job: str = "") -> list[Object]:
        return self.items("pods", selector=f"{contract.LABEL_JOB}={job}" if job else contract.LABEL_JOB)

    def running(self, job: str) -> list[Object]:
        pods = self.pods(job)
        return [pod for pod in pods if pod["status"].get("phase") == "Running" and not is_deleted(pod)]

    def a_job(self) -> str:
        """Choose a job that faults may hit."""
        return self.random.choice([shape.name for shape in self.shapes if shape.steady])

    def a_pod(self) -> Object | None:
        """Choose a running pod of such a job."""
        running = self.running(self.a_job())
        return self.random.choice(running) if running else None

    def operators(self) -> list[Object]:
        return [pod for pod in self.items("pods", SYSTEM) if not is_deleted(pod)]

    def operator_rolled_out(self) -> None:
        self.kubectl("-n", SYSTEM, "rollout", "status", DEPLOYMENT, "--timeout=180s")

    def keep_control_plane(self) -> None:
        """Start what exited by itself, as kubelets do on real control planes; a scheduler with a wrong cache exits."""
        for name in ("kube-scheduler", "kube-controller-manager"):
            process = self.cluster.plane.processes[name]
            if not process.alive:
                say(f"{name} exited by itself and is started again")
                self.blame(DISRUPTION)
                process.start()

    def look(self) -> None:
        """Note what the operator has logged, and its memory."""
        self.watch.note_logs(sorted(self.cluster.directory.glob(f"node-*/log/pods/{SYSTEM}_*/*/*.log")))
        for pod in self.operators():
            pid, memory = self._memory_of(pod)
            self.watch.note_memory(f"{name_of(pod)} {pid}", memory)

    def _memory_of(self, pod: Object) -> tuple[str, float]:
        """Return the process id and the resident memory of the operator in bytes, read on its node."""
        node = self.node_of(pod)
        if node is None:
            return "", 0.0
        program = MEMORY.format(mark=_mark(pod))
        pid, _, memory = node.run(sys.executable, "-c", program, check=False).stdout.partition(" ")
        return pid, float(memory or 0)

    def a_node(self) -> Node:
        return self.random.choice([node for node in self.cluster.nodes if node.alive])

    def ready_nodes(self) -> set[str]:
        """Return the names of the nodes that are Ready; none if the API server does not answer."""
        conditions = {name_of(node): node["status"].get("conditions", []) for node in self.lists.items("nodes")}
        ready = {"type": "Ready", "status": "True"}
        return {name for name, found in conditions.items() if any(ready.items() <= one.items() for one in found)}

    def node_of(self, pod: Object) -> Node | None:
        name = pod["spec"].get("nodeName")
        return next((node for node in self.cluster.nodes if node.name == name and node.alive), None)

    def signal(self, pod: Object, number: int) -> None:
        """Send a signal to the processes of a pod, from its node, which sees only its own processes."""
        node = self.node_of(pod)
        if node is not None:
            node.run(sys.executable, "-c", SIGNAL.format(mark=_mark(pod), number=number), check=False)

    def processes(self, pod: Object) -> list[int]:
        """Return the ids of the processes of a pod, as this machine counts them."""
        found = []
        for file in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if _mark(pod) in file.read_bytes().split(bytes(1)):
                    found.append(int(file.parent.name))
        return found

    def blame(self, cause: str, job: str = "", times: int = 1) -> None:
        """Note that a restart or a disruption of this job, or of all jobs, has a cause."""
        for shape in self.shapes:
            if job in ("", shape.name):
                # A lost node takes several live workers, which are counted one by one.
                self.ledger.blame(cause, shape.name, times if job or not shape.live else times * shape.size)


def _mark(pod: Object) -> bytes:
    """Return the variable that tells the processes of a pod from those of others."""
    name = "HOSTNAME" if pod["metadata"]["namespace"] == SYSTEM else "POD"
    return f"{name}={name_of(pod)}".encode()


def is_deleted(item: Object) -> bool:
    return "deletionTimestamp" in item["metadata"]


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
