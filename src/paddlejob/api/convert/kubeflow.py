"""Kubeflow's PaddleJob (kubeflow.org/v1) as a PaddleJob."""

from __future__ import annotations

import json
import re
from typing import Any

from paddlejob.api.convert.parts import (
    SAME_FIELDS,
    Converted,
    Obj,
    drop_empty_metadata,
    given,
    needed,
    paddle_job,
    part,
    template_at,
    whole_number,
)
from paddlejob.errors import BadInput

KUBEFLOW = "kubeflow.org/v1"
SPECS = "spec.paddleReplicaSpecs"
ROLES = {"Master": "ps", "Worker": "worker"}
CLEAN_POLICIES = {"All": "Always", "None": "Never", "Running": "OnCompletion"}
SCHEDULING = ("minAvailable", "queue", "priorityClass", "minResources")
RESTARTS = {
    "Always": "a failure now restarts the job as a whole, and the success of a worker restarts nothing",
    "OnFailure": "a failure now restarts the job as a whole",
    "ExitCode": "a failure now restarts the job as a whole, whatever its exit status",
}
KUBEFLOWS_OWN = ("PADDLE_MASTER", "PADDLE_NNODES", "PADDLE_JOB_ID", "PADDLE_SERVER_NUM", "PADDLE_TRAINER_NUM")
"""Variables that only Kubeflow's operator sets."""
LAUNCHER = ["-m", "paddle.distributed.launch"]
ROLE_BY_ENVIRONMENT = "each pod's program takes its role from the environment"


def is_kubeflow_job(document: Obj) -> bool:
    return document.get("kind") == "PaddleJob" and str(document.get("apiVersion", "")).startswith("kubeflow.org/")


def from_kubeflow(document: Obj) -> Converted:
    notes: list[str] = []
    if document["apiVersion"] != KUBEFLOW:
        notes.append(f"apiVersion: {document['apiVersion']} is read as if it were {KUBEFLOW}")
    result = _run_policy(part(document, "spec.runPolicy"), notes)
    replicas = _by_type(needed(document, SPECS), notes)
    for kind in replicas:
        result[ROLES[kind]] = _role(document, replicas[kind], f"{SPECS}.{kind}", notes)
    if "ps" in result and "worker" not in result:
        result["worker"] = result.pop("ps")
        notes.append(f"{SPECS}.Master is the only role, so it is now worker")
    elif "ps" in result:
        _as_servers(result, notes)
    _elastic(part(document, "spec.elasticPolicy"), result, notes)
    known = {"runPolicy", "paddleReplicaSpecs", "elasticPolicy"}
    notes += [f"spec.{key} has no counterpart and is left out" for key in needed(document, "spec") if key not in known]
    return paddle_job(document, result, notes)


def _by_type(specs: Obj, notes: list[str]) -> dict[str, str]:
    """The names of the roles as the file spells them: Kubeflow ignores case."""
    found: dict[str, str] = {}
    for name, spec in specs.items():
        kind = str(name).capitalize()
        if kind not in ROLES:
            raise BadInput(f"{SPECS}.{name} is not a role of a PaddleJob; use Master and Worker")
        if kind == "Master" and isinstance(spec, dict) and spec.get("replicas") == 0:
            notes.append(f"{SPECS}.{name} has no replicas and is left out")
            continue
        found[kind] = str(name)
    return found


def _role(document: Obj, name: str, where: str, notes: list[str]) -> Obj:
    spec = part(document, f"{SPECS}.{name}")
    template = template_at(document, f"{SPECS}.{name}.template")
    policy = spec.get("restartPolicy") or "OnFailure"
    if policy != "Never":
        was = "was" if spec.get("restartPolicy") else "defaulted to"
        notes.append(f"{where}.restartPolicy {was} {policy}; {RESTARTS.get(policy, RESTARTS['OnFailure'])}")
    # Kubeflow ignores the one in the template.
    template["spec"].pop("restartPolicy", None)
    drop_empty_metadata(template)
    text = json.dumps(template, default=str)
    for variable in KUBEFLOWS_OWN:
        if re.search(rf"\b{variable}\b", text):
            notes.append(
                f"{where}.template: uses {variable}, which paddlejob does not set; use PADDLE_TRAINER_ENDPOINTS, "
                "PADDLE_TRAINERS_NUM and PADDLE_TRAINER_ID"
            )
    replicas = spec.get("replicas")
    return {
        "replicas": whole_number(1 if replicas is None else replicas, f"{where}.replicas"),
        "template": template,
    }


def _as_servers(result: Obj, notes: list[str]) -> None:
    notes.append(
        f"{SPECS}.Master is now ps; Kubeflow runs a job with a Master in parameter-server mode too. The job is "
        "complete when all workers have succeeded"
    )
    for role in ("ps", "worker"):
        for container in result[role]["template"]["spec"]["containers"]:
            _drop_launcher(container, role, notes)


def _drop_launcher(container: Obj, role: str, notes: list[str]) -> None:
    """The launcher would wait for trainers in every pod: it learns of servers only from Kubeflow's variables."""
    where = f"{role}: container {container['name']}: {LAUNCHER[1]}"
    for field in ("command", "args"):
        arguments: Any = container.get(field)
        if not isinstance(arguments, list) or LAUNCHER[1] not in json.dumps(arguments, default=str):
            continue
        at = _index_of(LAUNCHER, arguments)
        if at < 0:
            notes.append(f"{where} must not start the program: with servers, {ROLE_BY_ENVIRONMENT}; run it directly")
            continue
        end = at + len(LAUNCHER)
        while end < len(arguments) and str(arguments[end]).startswith("-"):
            end += 1 if "=" in str(arguments[end]) else 2
        container[field] = arguments[:at] + arguments[end:]
        notes.append(f"{where} and its options are left out; with servers, {ROLE_BY_ENVIRONMENT}")


def _index_of(wanted: list[str], arguments: list[Any]) -> int:
    starts = range(len(arguments) - len(wanted) + 1)
    return next((start for start in starts if arguments[start : start + len(wanted)] == wanted), -1)


def _run_policy(policy: Obj, notes: list[str]) -> Obj:
    wanted = policy.get("cleanPodPolicy") or "None"
    result = {"cleanPodPolicy": CLEAN_POLICIES.get(wanted, "OnCompletion"), **given(policy)}
    if wanted not in ("All", "None"):
        notes.append(
            f"spec.runPolicy.cleanPodPolicy: {wanted} has no counterpart; OnCompletion deletes all pods of a completed "
            "job and keeps those of a failed one"
        )
    if result.get("backoffLimit") is not None:
        notes.append("spec.runPolicy.backoffLimit: now counts restarts of the whole job")
    scheduling = part({"spec": {"runPolicy": policy}}, "spec.runPolicy.schedulingPolicy")
    if scheduling:
        result["schedulingPolicy"] = given(scheduling, SCHEDULING)
    left = [f"schedulingPolicy.{key}" for key in scheduling if key not in SCHEDULING]
    left += [key for key in policy if key not in (*SAME_FIELDS, "cleanPodPolicy", "schedulingPolicy")]
    notes += [f"spec.runPolicy.{key} has no counterpart and is left out" for key in left]
    return result


def _elastic(policy: Obj, result: Obj, notes: list[str]) -> None:
    if not policy or "worker" not in result:
        return
    result["elastic"] = 1
    worker: Obj = result["worker"]
    for field, name in (("minReplicas", "requests"), ("maxReplicas", "limits")):
        if policy.get(field) is not None:
            worker[name] = whole_number(policy[field], f"spec.elasticPolicy.{field}")
    fits = min(max(worker["replicas"], worker.get("requests", 1)), worker.get("limits", worker["replicas"]))
    if fits != worker["replicas"] and worker["replicas"]:
        notes.append(f"{SPECS}.Worker.replicas was {worker['replicas']}, outside elasticPolicy; now {fits}")
        worker["replicas"] = fits
    if policy.get("maxRestarts") is not None:
        result.setdefault("backoffLimit", policy["maxRestarts"])
        notes.append("spec.elasticPolicy.maxRestarts is now backoffLimit, which counts restarts of the whole job")
    known = ("minReplicas", "maxReplicas", "maxRestarts")
    notes += [
        f"spec.elasticPolicy.{key} has no counterpart and is left out; `pdj scale` changes the number of workers"
        for key in policy
        if key not in known
    ]
