"""Faults of the objects that belong to a job, and objects of others that are in its way."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable

from paddlejob import contract
from testbed.addons.policies import denied
from tools.chaos.faults.hit import Fault, Hit, gone
from tools.chaos.ledger import DISRUPTION, RESTART
from tools.chaos.stage import NAMESPACE, Stage, job_of, name_of, status_of, uid_of

IN_THE_WAY = 6
"""Seconds for which a foreign object, a quota, a webhook or a policy stays."""
WEBHOOK = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "chaos"},
    "webhooks": [
        {
            "name": "unreachable.chaos.test",
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}},
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 1,
        }
    ],
}


def configmap_deleted(stage: Stage) -> Hit | None:
    return _one_deleted(stage, "configmaps")


def service_deleted(stage: Stage) -> Hit | None:
    return _one_deleted(stage, "services")


def _one_deleted(stage: Stage, kind: str) -> Hit | None:
    # Those of a job that has ended are not created again.
    steady = {shape.name for shape in stage.shapes if shape.steady}
    found = [one for one in stage.items(kind, selector=contract.LABEL_JOB) if job_of(one) in steady]
    if not found:
        return None
    chosen = stage.random.choice(found)
    stage.change("delete", kind, name_of(chosen))
    return Hit(name_of(chosen), _owned_again(stage, kind, name_of(chosen), job_of(chosen)))


def foreign_service(stage: Stage) -> Hit | None:
    """Replace a Service of a job by a foreign one, and remove that after a while."""
    found = stage.items("services", selector=contract.LABEL_JOB)
    if not found:
        return None
    chosen = name_of(stage.random.choice(found))
    job = chosen.rpartition("-")[0].rpartition("-")[0]
    stage.change("delete", "service", chosen)
    stage.change("create", "service", "clusterip", chosen, "--tcp=9")
    time.sleep(IN_THE_WAY)
    if not _owned_again(stage, "services", chosen, job)():
        stage.change("delete", "service", chosen)
    return Hit(chosen, _owned_again(stage, "services", chosen, job))


def _owned_again(stage: Stage, kind: str, name: str, job: str) -> Callable[[], bool]:
    """The name belongs to the job again, or the attempt that needed it has ended."""
    before = _attempt(stage, job)

    def seen() -> bool:
        found = [one for one in stage.items(kind) if name_of(one) == name]
        return any(one["metadata"].get("ownerReferences") for one in found) or _attempt(stage, job) != before

    return seen


def _attempt(stage: Stage, job: str) -> tuple[str, int]:
    found = stage.jobs().get(job)
    return (uid_of(found), status_of(found).get("attempt", 0)) if found else ("", 0)


def foreign_configmap(stage: Stage) -> Hit | None:
    """Take the name of the next attempt's environment, end this attempt, and give the name back after a while."""
    name = stage.a_job()
    job, pods = stage.jobs().get(name), stage.running(name)
    if job is None or not pods:
        return None
    taken = f"{name}-env-{uid_of(job)[:5]}-{status_of(job).get('attempt', 0) + 1}"
    stage.change("create", "configmap", taken, "--from-literal=PADDLE_TRAINERS_NUM=77")
    # Once for the pod, and once if pods started with foreign values.
    stage.blame(DISRUPTION, name, times=2)
    stage.change("delete", "pod", name_of(pods[0]), "--wait=false")
    time.sleep(IN_THE_WAY)
    stage.change("delete", "configmap", taken)
    return Hit(taken, gone(stage, pods[0]))


def foreign_pod(stage: Stage) -> Hit | None:
    """Put a pod that is not the job's in the way of a replica."""
    pod = stage.a_pod()
    if pod is None:
        return None
    stage.blame(DISRUPTION, job_of(pod))
    stage.change("delete", "pod", name_of(pod), "--force", "--grace-period=0")
    stage.change("run", name_of(pod), "--image=busybox", "--restart=Never", "--", "sleep", "600")
    time.sleep(IN_THE_WAY)
    found = [one for one in stage.items("pods") if name_of(one) == name_of(pod)]
    if found and not found[0]["metadata"].get("ownerReferences"):
        stage.change("delete", "pod", name_of(pod), "--force", "--grace-period=0")
    return Hit(name_of(pod), gone(stage, pod))


def quota(stage: Stage) -> Hit | None:
    pod = stage.a_pod()
    if pod is None:
        return None
    stage.change("create", "quota", "none", "--hard=pods=0")
    stage.blame(DISRUPTION, job_of(pod))
    stage.change("delete", "pod", name_of(pod), "--wait=false")
    time.sleep(IN_THE_WAY)
    stage.change("delete", "quota", "none")
    return Hit(f"without {name_of(pod)}", gone(stage, pod))


def webhook_down(stage: Stage) -> Hit | None:
    """No pod can be created while a webhook that must approve it cannot be reached."""
    pod = stage.a_pod()
    if pod is None:
        return None
    stage.kubectl("create", "-f", "-", input=json.dumps(WEBHOOK), check=False)
    stage.blame(DISRUPTION, job_of(pod))
    stage.change("delete", "pod", name_of(pod), "--wait=false")
    time.sleep(IN_THE_WAY)
    stage.kubectl("delete", "validatingwebhookconfiguration", "chaos", check=False)
    return Hit(f"without {name_of(pod)}", gone(stage, pod))


def creates_denied(stage: Stage) -> Hit | None:
    return _denied(stage, "CREATE")


def deletes_denied(stage: Stage) -> Hit | None:
    return _denied(stage, "DELETE")


def _denied(stage: Stage, operation: str) -> Hit | None:
    """A program is killed while a policy denies what its restart needs."""
    pod = stage.a_pod()
    if pod is None:
        return None
    with denied(stage.cluster, NAMESPACE, operation):
        stage.blame(RESTART, job_of(pod))
        stage.signal(pod, signal.SIGKILL)
        time.sleep(IN_THE_WAY)
    return Hit(f"without {name_of(pod)}", gone(stage, pod))


OF_OBJECTS: tuple[Fault, ...] = (
    configmap_deleted, service_deleted, foreign_service, foreign_configmap, foreign_pod, quota, webhook_down,
    creates_denied, deletes_denied,
)  # fmt: skip
