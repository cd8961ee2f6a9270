"""Other kinds of jobs as PaddleJobs: the documents' batch/v1 Job, and Kubeflow's PaddleJob.

What has no counterpart is left out and named in a note: where it was, and what happens instead.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from paddlejob import contract
from paddlejob.errors import BadInput

Obj = dict[str, Any]
KUBEFLOW = "kubeflow.org/v1"
MARKS = ("CONF_PADDLE_GRADIENT_NUM", "CONF_PADDLE_PORT")
"""Variables by which the documents' training Job is told from any other."""
SAME_IN_A_JOB = ("activeDeadlineSeconds", "backoffLimit", "suspend", "ttlSecondsAfterFinished")
NETWORK_VARIABLES = {
    "CONF_PADDLE_NIC": "pods reach each other by address, whatever the device",
    "CONF_PADDLE_PORT": f"PADDLE_PORT is set to {contract.PORT} for each pod",
    "CONF_PADDLE_PORTS_NUM": "a server has one port",
    "CONF_PADDLE_PORTS_NUM_SPARSE": "a server has one port",
    "CONF_PADDLE_GRADIENT_NUM": "worker.replicas says it",
    "JOB_NAMESPACE": "no pod asks for others any more",
    "JOB_SERVICE": "no pod asks for others any more",
}
CLEAN_POLICIES = {"All": "Always", "None": "Never", "Running": "OnCompletion"}
KEPT_METADATA = ("name", "namespace", "labels", "annotations")
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True)
class Converted:
    job: Obj
    notes: tuple[str, ...]


def is_training_job(document: Obj) -> bool:
    """A batch/v1 Job whose pods start Paddle as the documents' do."""
    if not is_job(document):
        return False
    names = {one["name"] for container in _containers(_template(document)) for one in container.get("env") or []}
    return names >= set(MARKS)


def is_kubeflow_job(document: Obj) -> bool:
    return document.get("kind") == "PaddleJob" and str(document.get("apiVersion", "")).startswith("kubeflow.org/")


def convert(document: Obj) -> Converted:
    """The PaddleJob, and a note for each thing that has no counterpart."""
    if is_training_job(document):
        return _from_job(document)
    if is_kubeflow_job(document):
        return _from_kubeflow(document)
    kind = f"{document.get('apiVersion')} {document.get('kind')}"
    raise BadInput(
        f"{kind}: is no job that can be converted; a batch/v1 Job that sets {' and '.join(MARKS)} can, and a "
        f"PaddleJob of {KUBEFLOW}"
    )


def is_job(document: Obj) -> bool:
    return (document.get("apiVersion"), document.get("kind")) == ("batch/v1", "Job")


def as_workers(document: Obj) -> Converted:
    """Any batch/v1 Job as a PaddleJob of workers only, for an engine that knows no Jobs.

    Its pods do what they did before; start_paddle.py reads its peers from PADDLE_TRAINERS instead of asking for them.
    """
    spec: Obj = document["spec"]
    notes: list[str] = []
    count = _replicas(spec, notes)
    result: Obj = {key: spec[key] for key in SAME_IN_A_JOB if key in spec}
    template: Obj = copy.deepcopy(spec["template"])
    _drop_restart_policy(template["spec"], "spec.template.spec", notes)
    for field in ("hostname", "subdomain", "hostNetwork"):
        template["spec"].pop(field, None)
    for container in _containers(template):
        container.pop("ports", None)
    metadata = template.setdefault("metadata", {})
    metadata.pop("name", None)
    metadata["labels"] = {**(metadata.get("labels") or {}), "job-name": document["metadata"]["name"]}
    result["worker"] = {"replicas": count, "template": template}
    return Converted(_job(document, result), tuple(notes))


def _from_job(document: Obj) -> Converted:
    notes: list[str] = []
    spec: Obj = document["spec"]
    count = _replicas(spec, notes)
    result: Obj = {key: spec[key] for key in SAME_IN_A_JOB if key in spec}
    if "backoffLimit" in spec:
        notes.append("spec.backoffLimit: counted failed pods; now counts rebuilds of the whole job")
    else:
        notes.append("spec.backoffLimit: was 6 failed pods where absent; now 3 rebuilds of the whole job")
    known = {*SAME_IN_A_JOB, "parallelism", "completions", "template", "selector", "manualSelector", "completionMode"}
    notes += [f"spec.{key}: has no counterpart and is left out" for key in spec if key not in known]
    if spec.get("completionMode") == "Indexed":
        notes.append("spec.completionMode: every PaddleJob gives its pods an index, as PADDLE_TRAINER_ID")
    template = _job_template(copy.deepcopy(spec["template"]), result, notes)
    result["ps"] = {"replicas": count, "template": template}
    result["worker"] = {"replicas": count, "template": copy.deepcopy(template)}
    notes.append(
        "spec.template: each pod was server and trainer; now each role has a pod, so requests and limits count twice"
    )
    notes.append(
        "containers: the image's start_paddle.py must be paddlejob's (it then takes its role from the operator, and "
        "copies JOB_PATH/JOB_NAME/<PADDLE_TRAINER_ID>/data as before); an older one would look for its peers itself"
    )
    return Converted(_job(document, result), tuple(notes))


def _replicas(spec: Obj, notes: list[str]) -> int:
    parallelism = int(spec.get("parallelism") or 1)
    completions = spec.get("completions")
    if completions not in (None, parallelism):
        notes.append(f"spec.completions: was {completions}; all {parallelism} workers must succeed, each once")
    return parallelism


def _job_template(template: Obj, result: Obj, notes: list[str]) -> Obj:
    pod: Obj = template["spec"]
    _drop_restart_policy(pod, "spec.template.spec", notes)
    for field in ("hostname", "subdomain"):
        if pod.pop(field, None):
            notes.append(f"spec.template.spec.{field}: left out; pods know each other from their environment")
    if pod.pop("hostNetwork", False):
        result["intranet"] = "Host"
        notes.append("spec.template.spec.hostNetwork: is now spec.intranet: Host, with ports of the operator's choice")
    labels = template.get("metadata", {}).get("labels") or {}
    for label in ("job-name", "controller-uid", "batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid"):
        labels.pop(label, None)
    template.get("metadata", {}).pop("name", None)
    _drop_empty_metadata(template)
    for container in _containers(template):
        _drop_network(container, notes)
    return template


def _drop_network(container: Obj, notes: list[str]) -> None:
    where = f"container {container['name']}"
    kept = []
    for one in container.get("env") or []:
        if one["name"] in NETWORK_VARIABLES:
            notes.append(f"{where}: env {one['name']} is left out; {NETWORK_VARIABLES[one['name']]}")
        else:
            kept.append(one)
    if "env" in container:
        container["env"] = kept
    ports = container.get("ports") or []
    if any("hostPort" in port for port in ports):
        del container["ports"]
        notes.append(
            f"{where}: its hostPorts are left out; pods reach each other by address, and need no node of their own"
        )


def _from_kubeflow(document: Obj) -> Converted:
    notes: list[str] = []
    if document["apiVersion"] != KUBEFLOW:
        notes.append(f"apiVersion: {document['apiVersion']} is read as if it were {KUBEFLOW}")
    spec: Obj = document["spec"]
    result = _run_policy(spec.get("runPolicy") or {}, notes)
    replicas: Obj = spec.get("paddleReplicaSpecs") or {}
    for kind, role in (("Master", "ps"), ("Worker", "worker")):
        if kind in replicas:
            result[role] = _role(replicas[kind], f"paddleReplicaSpecs.{kind}", notes)
    if "Master" in replicas and "Worker" not in replicas:
        result["worker"] = result.pop("ps")
        notes.append("paddleReplicaSpecs.Master: is the only role, and so is now worker")
    elif "Master" in replicas:
        notes.append("paddleReplicaSpecs.Master: is now ps; Kubeflow runs a job with a Master in parameter-server mode")
    _elastic(spec.get("elasticPolicy") or {}, result, notes)
    known = {"runPolicy", "paddleReplicaSpecs", "elasticPolicy"}
    notes += [f"spec.{key}: has no counterpart and is left out" for key in spec if key not in known]
    return Converted(_job(document, result), tuple(notes))


def _role(given: Obj, where: str, notes: list[str]) -> Obj:
    template: Obj = copy.deepcopy(given["template"])
    policy = given.get("restartPolicy", "Never")
    if policy != "Never":
        notes.append(f"{where}.restartPolicy: was {policy}; a failure now rebuilds the job as a whole")
    _drop_restart_policy(template["spec"], f"{where}.template.spec", notes)
    _drop_empty_metadata(template)
    return {"replicas": int(given.get("replicas") or 1), "template": template}


def _run_policy(policy: Obj, notes: list[str]) -> Obj:
    result: Obj = {key: policy[key] for key in SAME_IN_A_JOB if key in policy}
    if "cleanPodPolicy" in policy:
        wanted = policy["cleanPodPolicy"]
        result["cleanPodPolicy"] = CLEAN_POLICIES.get(wanted, "OnCompletion")
        if wanted not in ("All", "None"):
            notes.append(
                f"runPolicy.cleanPodPolicy: {wanted} has no counterpart; OnCompletion deletes all pods of a job that "
                "completed, and keeps those of one that failed"
            )
    scheduling: Obj = policy.get("schedulingPolicy") or {}
    same = ("minAvailable", "queue", "priorityClass", "minResources")
    if scheduling:
        result["schedulingPolicy"] = {key: scheduling[key] for key in same if key in scheduling}
    left = [f"schedulingPolicy.{key}" for key in scheduling if key not in same]
    left += [key for key in policy if key not in (*SAME_IN_A_JOB, "cleanPodPolicy", "schedulingPolicy")]
    notes += [f"runPolicy.{key}: has no counterpart and is left out" for key in left]
    return result


def _elastic(policy: Obj, result: Obj, notes: list[str]) -> None:
    if not policy:
        return
    result["elastic"] = 1
    worker: Obj = result.get("worker") or {}
    for field, name in (("minReplicas", "requests"), ("maxReplicas", "limits")):
        if field in policy:
            worker[name] = policy[field]
    if "maxRestarts" in policy:
        result.setdefault("backoffLimit", policy["maxRestarts"])
        notes.append("elasticPolicy.maxRestarts: is now backoffLimit, which counts rebuilds of the whole job")
    known = ("minReplicas", "maxReplicas", "maxRestarts")
    notes += [
        f"elasticPolicy.{key}: has no counterpart and is left out; `pdj scale` changes the number of workers"
        for key in policy
        if key not in known
    ]


def _job(document: Obj, spec: Obj) -> Obj:
    given: Obj = document.get("metadata") or {}
    metadata = {key: copy.deepcopy(given[key]) for key in KEPT_METADATA if given.get(key)}
    (metadata.get("annotations") or {}).pop(LAST_APPLIED, None)
    metadata = {key: value for key, value in metadata.items() if value}
    if "name" not in metadata and given.get("generateName"):
        metadata["generateName"] = given["generateName"]
    order = ("cleanPodPolicy", "intranet", "elastic", "backoffLimit", "activeDeadlineSeconds",
             "ttlSecondsAfterFinished", "suspend", "schedulingPolicy", "ps", "worker")  # fmt: skip
    ordered = {key: spec[key] for key in order if key in spec}
    return {"apiVersion": contract.API_VERSION, "kind": contract.KIND, "metadata": metadata, "spec": ordered}


def _drop_restart_policy(pod: Obj, where: str, notes: list[str]) -> None:
    policy = pod.pop("restartPolicy", "Never")
    if policy != "Never":
        notes.append(f"{where}.restartPolicy: was {policy}; pods always have Never, the job is rebuilt as a whole")


def _drop_empty_metadata(template: Obj) -> None:
    metadata = template.get("metadata") or {}
    for key in ("labels", "annotations", "creationTimestamp"):
        if key in metadata and not metadata[key]:
            del metadata[key]
    if not metadata:
        template.pop("metadata", None)


def _template(document: Obj) -> Obj:
    found: Obj = (document.get("spec") or {}).get("template") or {}
    return found


def _containers(template: Obj) -> list[Obj]:
    found: list[Obj] = (template.get("spec") or {}).get("containers") or []
    return found
