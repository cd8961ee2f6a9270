"""A second tenant, who may view the jobs and edit another namespace. Nothing that he does may cost a job anything."""

from __future__ import annotations

import json
import signal
import time

from paddlejob import contract
from testbed.addons.tenant import forgeries
from tools.chaos.faults.hit import Fault, Hit, gone, works
from tools.chaos.jobs import Object
from tools.chaos.ledger import RESTART
from tools.chaos.stage import NAMESPACE, Stage, job_of, name_of, status_of

NOTICED = 5
"""Seconds for which forged objects exist."""
SLOW_JOBS = 5
SLOW_PATTERN = r"(?P<step>((a{0,500}){0,2})*)z"
"""Costs 15 us for each character of a line of letters a; the operator parses 128 KiB at a time."""
PRINT_LINES = "line=$(printf '%05000d' 0 | tr 0 a); while true; do echo $line; echo $line; sleep 0.1; done"
NEIGHBOUR = 60.0
"""Seconds after which a job that failed beside slow patterns must have been restarted."""


def owner_forged(stage: Stage) -> Hit | None:
    """Create objects that name a job of the other namespace as their owner, with a pod that fails."""
    job = stage.jobs().get(stage.a_job())
    if job is None:
        return None
    attempt = status_of(job).get("attempt", 0) + stage.random.choice([0, 1])
    command = stage.random.choice([["false"], ["true"], ["sleep", "600"]])
    forged = _list(forgeries(job, stage.tenant.namespace, attempt, command))
    stage.tenant.kubectl("create", "-f", "-", input=forged, check=False)
    time.sleep(NOTICED)
    free = json.dumps({"metadata": {"finalizers": None}})
    stage.tenant.kubectl("delete", "-f", "-", "--wait=false", "--ignore-not-found", input=forged, check=False)
    stage.tenant.kubectl("patch", "-f", "-", "--type=merge", "-p", free, input=forged, check=False)
    return Hit(f"{name_of(job)} in attempt {attempt} with {' '.join(command)}", works(stage))


def rights_exceeded(stage: Stage) -> Hit | None:
    """Try what somebody who may only view must not do."""
    name = stage.a_job()
    for command in (
        ("delete", "pdj", name),
        ("scale", "pdj", name, "--replicas=7"),
        ("create", "configmap", "planted"),
    ):
        if not stage.tenant.kubectl("-n", NAMESPACE, *command, check=False).returncode:
            stage.note(f"a user who may view {NAMESPACE} can {' '.join(command)}")
    return Hit(name)


def pattern_slow(stage: Stage) -> Hit | None:
    """Submit jobs whose progress pattern is expensive, while the program of a neighbour fails."""
    pod = stage.a_pod()
    if pod is None:
        return None
    slow = _list([_slow_job(number) for number in range(SLOW_JOBS)])
    stage.tenant.kubectl("create", "-f", "-", input=slow, check=False)
    time.sleep(3 * NOTICED)
    stage.blame(RESTART, job_of(pod))
    stage.signal(pod, signal.SIGKILL)
    deadline, replaced = time.monotonic() + NEIGHBOUR, gone(stage, pod)
    while not replaced():
        if time.monotonic() > deadline:
            stage.note(f"{name_of(pod)} was not replaced within {NEIGHBOUR:.0f} s beside slow patterns")
            break
        time.sleep(1)
    stage.tenant.kubectl("delete", "-f", "-", "--wait=false", "--ignore-not-found", input=slow, check=False)
    return Hit(f"{SLOW_JOBS} times beside {name_of(pod)}", works(stage))


def _slow_job(number: int) -> Object:
    container = {"name": contract.TRAINING_CONTAINER, "image": "busybox", "command": ["sh", "-c", PRINT_LINES]}
    template = {"spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}}
    spec = {"progress": {"pattern": SLOW_PATTERN}, "worker": {"replicas": 1, "template": template}}
    metadata = {"name": f"slow-{number}"}
    return {"apiVersion": contract.API_VERSION, "kind": contract.KIND, "metadata": metadata, "spec": spec}


def _list(items: list[Object]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


OF_TENANTS: tuple[Fault, ...] = (owner_forged, rights_exceeded, pattern_slow)
