"""Faults of processes and of pods."""

from __future__ import annotations

import json
import signal
import time

from paddlejob import contract
from tools.chaos.faults.hit import Fault, Hit, gone
from tools.chaos.jobs import Object
from tools.chaos.ledger import DISRUPTION, RESTART
from tools.chaos.stage import NAMESPACE, Stage, job_of, name_of

LABELS = (contract.LABEL_JOB, contract.LABEL_ROLE, contract.LABEL_INDEX, contract.LABEL_ATTEMPT)
WRONG_VALUES = {
    contract.LABEL_JOB: ("another",),
    contract.LABEL_ROLE: ("ps", "worker", "heter", "nonsense"),
    contract.LABEL_INDEX: ("0", "1", "77"),
    contract.LABEL_ATTEMPT: ("0", "77"),
}


def process_killed(stage: Stage) -> Hit | None:
    pod = stage.a_pod()
    if pod is None:
        return None
    stage.blame(RESTART, job_of(pod))
    stage.signal(pod, signal.SIGKILL)
    return Hit(name_of(pod), gone(stage, pod))


def all_killed(stage: Stage) -> Hit | None:
    """Kill every process of a job at once."""
    name = stage.a_job()
    pods = stage.running(name)
    if not pods:
        return None
    # Live workers are counted one by one.
    stage.blame(RESTART, name, times=len(pods))
    for pod in pods:
        stage.signal(pod, signal.SIGKILL)
    return Hit(name, gone(stage, pods[0]))


def process_frozen(stage: Stage) -> Hit | None:
    pod = stage.a_pod()
    if pod is None:
        return None
    stage.signal(pod, signal.SIGSTOP)
    time.sleep(4)
    stage.signal(pod, signal.SIGCONT)
    return Hit(f"{name_of(pod)} for 4 s")


def pod_deleted(stage: Stage) -> Hit | None:
    return _deleted(stage)


def pod_force_deleted(stage: Stage) -> Hit | None:
    return _deleted(stage, "--force", "--grace-period=0")


def _deleted(stage: Stage, *options: str) -> Hit | None:
    pod = stage.a_pod()
    if pod is None:
        return None
    stage.blame(DISRUPTION, job_of(pod))
    stage.change("delete", "pod", name_of(pod), "--wait=false", *options)
    return Hit(name_of(pod), gone(stage, pod))


def pod_evicted(stage: Stage) -> Hit | None:
    pod = stage.a_pod()
    if pod is None:
        return None
    stage.blame(DISRUPTION, job_of(pod))
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name_of(pod)}}
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name_of(pod)}/eviction"
    stage.kubectl("create", "--raw", path, "-f", "-", input=json.dumps(eviction), check=False)
    return Hit(name_of(pod), gone(stage, pod))


def label_removed(stage: Stage) -> Hit | None:
    pod, label = stage.a_pod(), stage.random.choice(LABELS)
    if pod is None:
        return None
    hit = _labelled(stage, pod, label, "")
    if label == contract.LABEL_JOB:
        # The operator no longer takes it for its own, and asks for its deletion.
        time.sleep(5)
        stage.change("delete", "pod", name_of(pod), "--wait=false")
    return hit


def label_changed(stage: Stage) -> Hit | None:
    pod, label = stage.a_pod(), stage.random.choice(LABELS)
    if pod is None:
        return None
    wrong = [value for value in WRONG_VALUES[label] if value != pod["metadata"]["labels"].get(label)]
    return _labelled(stage, pod, label, stage.random.choice(wrong))


def _labelled(stage: Stage, pod: Object, label: str, value: str) -> Hit:
    stage.blame(DISRUPTION, job_of(pod))
    stage.change("label", "pod", name_of(pod), f"{label}={value}" if value else f"{label}-", "--overwrite")
    return Hit(f"{label.partition('/')[2]} of {name_of(pod)} {value}".strip(), gone(stage, pod))


def owner_removed(stage: Stage) -> Hit | None:
    """Take a pod away from its job. It is foreign then, and keeps its name until somebody deletes it."""
    pod = stage.a_pod()
    if pod is None:
        return None
    stage.blame(DISRUPTION, job_of(pod))
    patch = json.dumps([{"op": "remove", "path": "/metadata/ownerReferences"}])
    stage.change("patch", "pod", name_of(pod), "--type=json", "-p", patch)
    time.sleep(5)
    stage.change("delete", "pod", name_of(pod), "--wait=false")
    return Hit(name_of(pod), gone(stage, pod))


OF_PODS: tuple[Fault, ...] = (
    process_killed, all_killed, process_frozen, pod_deleted, pod_force_deleted, pod_evicted, label_removed,
    label_changed, owner_removed,
)  # fmt: skip
