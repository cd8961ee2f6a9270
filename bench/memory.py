"""Memory of the operator for jobs and pods that are stored: its informers are filled as by an API server."""

from __future__ import annotations

import gc
import json
import multiprocessing
import re
import time
from pathlib import Path
from typing import Any

from paddlejob.api.types import PaddleJob, Role
from paddlejob.kube.access import Access
from paddlejob.kube.client import Client
from paddlejob.operator.informers import Informers
from paddlejob.plan.manifests.pod import pod_manifest
from tests.support.builders import document

Object = dict[str, Any]
ENDED, STARTED = ("Completed",), ("PodsCreated", "PodsScheduled", "StartBarrierOpen")
"""The conditions of a job that has ended, and of one that runs."""


def measure_memory(jobs: int) -> None:
    """Each kind in a process of its own, so that none finds memory that another left."""
    context = multiprocessing.get_context("spawn")
    for phase in ("Completed", "Running"):
        with context.Pool(1) as pool:
            rss, each, seconds = pool.apply(_fill, (jobs, phase))
        size = len(json.dumps(_stored(0, phase)))
        print(
            f"memory: {jobs} stored jobs of {size / 1024:.1f} KiB that are {phase}: {rss:.0f} MiB, "
            f"{each:.1f} KiB a job, {seconds * 1e6 / jobs:.0f} us a job",
            flush=True,
        )
    with context.Pool(1) as pool:
        rss, each, seconds = pool.apply(_fill, (jobs, ""))
    size = len(json.dumps(_stored_pod(0)))
    print(
        f"memory: {jobs} pods of {size / 1024:.1f} KiB: {rss:.0f} MiB, {each:.1f} KiB a pod, "
        f"{seconds * 1e6 / jobs:.0f} us a pod",
        flush=True,
    )


def _fill(count: int, phase: str) -> tuple[float, float, float]:
    """The memory with this many jobs in a phase, or with as many pods; for each of them; and the seconds it took."""
    informers = Informers(Client(Access("http://127.0.0.1:1")), None)
    stored = informers.jobs if phase else informers.pods
    _rss()
    before = _rss()
    begun = time.process_time()
    for number in range(count):
        stored.record_write(json.loads(json.dumps(_stored(number, phase) if phase else _stored_pod(number))))
    seconds = time.process_time() - begun
    gc.collect()
    assert len(stored) == count
    after = _rss()
    return after, (after - before) * 1024 / count, seconds


def _stored_pod(number: int) -> Object:
    """A running pod of a job of four workers."""
    job = PaddleJob.model_validate(_stored(number // 4, "Running"))
    made = pod_manifest(job, Role.WORKER, number % 4, 1, "0123456789ab/1")
    made["metadata"] |= {
        "uid": f"{number:036d}",
        "resourceVersion": str(number + 1),
        "creationTimestamp": "2027-01-15T08:00:00Z",
    }
    made["spec"]["nodeName"] = f"node-{number % 1000}"
    address = f"10.{number // 62500}.{number // 250 % 250}.{number % 250}"
    made["status"] = {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [
            {"type": one, "status": "True", "lastTransitionTime": "2027-01-15T08:00:01Z"}
            for one in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
        ],
        "containerStatuses": [
            {"name": "paddle", "state": {"running": {"startedAt": "2027-01-15T08:00:02Z"}}, "ready": True}
        ],
    }
    return made


def _stored(number: int, phase: str) -> Object:
    """A job with volumes, resources and variables of its own, and the status of one that has trained."""
    made = document(f"job-{number}", ps=1, workers=2)
    for role in ("ps", "worker"):
        spec = made["spec"][role]["template"]["spec"]
        spec["containers"][0] |= {
            "command": ["python", "-m", "paddle.distributed.launch", "train.py", f"--seed={number}"],
            "env": [{"name": f"VARIABLE_{index}", "value": f"value {index} of {number}"} for index in range(12)],
            "resources": {"limits": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "8"}},
            "volumeMounts": [{"name": name, "mountPath": f"/{name}"} for name in ("data", "output", "shm")],
        }
        spec["volumes"] = [
            {"name": "data", "persistentVolumeClaim": {"claimName": f"data-{number}"}},
            {"name": "output", "persistentVolumeClaim": {"claimName": f"output-{number}"}},
            {"name": "shm", "emptyDir": {"medium": "Memory"}},
        ]
    metadata = {"uid": f"uid-{number}", "generation": 1, "resourceVersion": str(number + 1)}
    made["metadata"] |= metadata | {"creationTimestamp": "2027-01-15T08:00:00Z"}
    made["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(made["spec"])}
    made["status"] = _status(phase)
    return made


def _status(phase: str) -> Object:
    counts = {"replicas": 2, "running": 2, "ready": "2/2", "finished": "0-1"}
    times = {"startTime": "2027-01-15T08:00:00Z", "completionTime": "2027-01-15T09:00:00Z"}
    condition = {
        "status": "True",
        "observedGeneration": 1,
        "reason": phase,
        "message": "all pods are running",
        "lastTransitionTime": times["startTime"],
    }
    return times | {
        "phase": phase,
        "mode": "PS",
        "reason": phase,
        "message": "all pods are running",
        "ps": counts,
        "worker": counts,
        "selector": "batch.paddlepaddle.org/job=job",
        "attempt": 1,
        "publishedAttempt": 1,
        "observedGeneration": 1,
        "templateDigest": "0123456789ab",
        "progress": {"step": 1000, "totalSteps": 1000, "metrics": {"loss": 0.4}, "highestStep": 1000},
        "conditions": [condition | {"type": one} for one in ("Running", *(ENDED if phase == "Completed" else STARTED))],
    }


def _rss() -> float:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) / 1024
