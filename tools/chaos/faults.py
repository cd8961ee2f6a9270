"""Faults of pods, of objects and of the operator. A fault returns what it did, or nothing if it found no target."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from paddlejob import contract
from tools.chaos.jobs import Object
from tools.chaos.stage import DEPLOYMENT, NAMESPACE, SYSTEM, Stage, job_of, name_of, status_of, uid_of

RESTART, DISRUPTION = "restart", "disruption"


@dataclass(frozen=True)
class Hit:
    """What a fault did, and how to see that the cluster has noticed. Without `seen`, it notices at once."""

    text: str
    seen: Callable[[], bool] = lambda: True


Fault = Callable[[Stage], Hit | None]


def process_killed(stage: Stage) -> Hit | None:
    pod = stage.a_pod()
    if pod is None:
        return None
    stage.blame(RESTART, job_of(pod))
    stage.signal(pod, signal.SIGKILL)
    return Hit(name_of(pod), lambda: _gone(stage, pod))


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
    # The program may also notice first, and exit because of SIGTERM.
    stage.blame(DISRUPTION, job_of(pod))
    stage.change("delete", "pod", name_of(pod), "--wait=false", *options)
    return Hit(name_of(pod), lambda: _gone(stage, pod))


def label_removed(stage: Stage) -> Hit | None:
    pod = stage.a_pod()
    if pod is None:
        return None
    stage.blame(DISRUPTION, job_of(pod))
    label = stage.random.choice([contract.LABEL_ROLE, contract.LABEL_INDEX, contract.LABEL_ATTEMPT])
    stage.change("label", "pod", name_of(pod), f"{label}-")
    return Hit(f"{label.partition('/')[2]} of {name_of(pod)}", lambda: _gone(stage, pod))


def configmap_deleted(stage: Stage) -> Hit | None:
    return _one_deleted(stage, "configmap")


def service_deleted(stage: Stage) -> Hit | None:
    return _one_deleted(stage, "service")


def _one_deleted(stage: Stage, kind: str) -> Hit | None:
    found = stage.items(kind, selector=contract.LABEL_JOB)
    if not found:
        return None
    chosen = stage.random.choice(found)
    stage.change("delete", kind, name_of(chosen))
    return Hit(name_of(chosen), lambda: any(name_of(one) == name_of(chosen) for one in stage.items(kind)))


def foreign_configmap(stage: Stage) -> Hit | None:
    """Take the name of the next attempt's environment, end this attempt, and give the name back after a while."""
    name = stage.a_job()
    job, pods = stage.jobs().get(name), stage.pods(name)
    if job is None or not pods:
        return None
    taken = f"{name}-env-{uid_of(job)[:5]}-{status_of(job).get('attempt', 0) + 1}"
    stage.change("create", "configmap", taken, "--from-literal=PADDLE_TRAINERS_NUM=77")
    stage.blame(DISRUPTION, name)
    stage.change("delete", "pod", name_of(pods[0]), "--wait=false")
    time.sleep(6)
    stage.change("delete", "configmap", taken)
    return Hit(taken, lambda: _gone(stage, pods[0]))


def foreign_pod(stage: Stage) -> Hit | None:
    """Put a pod that is not the job's in the way of a replica."""
    pod = stage.a_pod()
    if pod is None:
        return None
    stage.blame(DISRUPTION, job_of(pod))
    stage.change("delete", "pod", name_of(pod), "--force", "--grace-period=0")
    stage.change("run", name_of(pod), "--image=busybox", "--restart=Never", "--", "sleep", "600")
    time.sleep(5)
    found = [one for one in stage.items("pods") if name_of(one) == name_of(pod)]
    if found and not found[0]["metadata"].get("ownerReferences"):
        stage.change("delete", "pod", name_of(pod), "--force", "--grace-period=0")
    return Hit(name_of(pod), lambda: _gone(stage, pod))


def quota(stage: Stage) -> Hit | None:
    pod = stage.a_pod()
    if pod is None:
        return None
    stage.change("create", "quota", "none", "--hard=pods=0")
    stage.blame(DISRUPTION, job_of(pod))
    stage.change("delete", "pod", name_of(pod), "--wait=false")
    time.sleep(6)
    stage.change("delete", "quota", "none")
    return Hit(f"without {name_of(pod)}", lambda: _gone(stage, pod))


def suspended(stage: Stage) -> Hit | None:
    name = stage.a_job()
    _patch(stage, name, {"suspend": True})
    time.sleep(stage.random.choice([0.5, 5]))
    _patch(stage, name, {"suspend": False})
    return Hit(name)


def scaled(stage: Stage) -> Hit | None:
    size = stage.random.choice([1, 2, 3])
    stage.blame(DISRUPTION, "elastic")
    stage.change("scale", "pdj", "elastic", f"--replicas={size}")
    return Hit(f"elastic to {size}")


def recreated(stage: Stage) -> Hit | None:
    name = stage.a_job()
    before = stage.jobs().get(name)
    if before is None:
        return None
    stage.recreated.add(name)
    stage.change("delete", "pdj", name, f"--wait={stage.random.choice(['true', 'false'])}")
    stage.create(next(shape for shape in stage.shapes if shape.name == name))
    return Hit(name, lambda: uid_of(stage.jobs().get(name, before)) != uid_of(before))


def operator_killed(stage: Stage) -> Hit | None:
    pods = stage.operators()
    if not pods:
        return None
    stage.signal(pods[0], signal.SIGKILL)
    return Hit(name_of(pods[0]))


def operator_deleted(stage: Stage) -> Hit | None:
    stage.kubectl("-n", SYSTEM, "delete", "pods", "--all", "--force", "--grace-period=0", check=False)
    return Hit("")


def operator_frozen(stage: Stage) -> Hit | None:
    pods = stage.operators()
    if not pods:
        return None
    stage.signal(pods[0], signal.SIGSTOP)
    time.sleep(stage.random.choice([3, 20]))
    stage.signal(pods[0], signal.SIGCONT)
    return Hit(name_of(pods[0]))


def operator_upgraded(stage: Stage) -> Hit | None:
    stage.kubectl("-n", SYSTEM, "set", "env", DEPLOYMENT, f"UPGRADED={time.time():.0f}", check=False)
    return Hit("")


def _patch(stage: Stage, job: str, spec: Object) -> None:
    stage.change("patch", "pdj", job, "--type=merge", "-p", json.dumps({"spec": spec}))


def _gone(stage: Stage, pod: Object) -> bool:
    return uid_of(pod) not in {uid_of(one) for one in stage.items("pods", NAMESPACE)}


OF_PODS_AND_OBJECTS: tuple[Fault, ...] = (
    process_killed, process_frozen, pod_deleted, pod_force_deleted, label_removed, configmap_deleted, service_deleted,
    foreign_configmap, foreign_pod, quota, suspended, scaled, recreated,
    operator_killed, operator_deleted, operator_frozen, operator_upgraded,
)  # fmt: skip
