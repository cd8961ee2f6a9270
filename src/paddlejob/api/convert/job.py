"""A batch/v1 Job whose pods start Paddle, as a PaddleJob."""

from __future__ import annotations

import copy

from paddlejob.api.convert.parts import (
    SAME_FIELDS,
    Converted,
    Obj,
    given,
    needed,
    paddle_job,
    part,
    template_at,
    whole_number,
)
from paddlejob.api.convert.pod import drop_restart_policy, trains, without_finding
from paddlejob.errors import BadInput

UNDERSTOOD = (*SAME_FIELDS, "parallelism", "completions", "completionMode", "template", "selector", "manualSelector")
INSTEAD = {
    "podFailurePolicy": "an eviction or a lost node never counts against backoffLimit; every other failure does",
    "backoffLimitPerIndex": "the failure of one worker restarts all of them, up to backoffLimit times",
    "maxFailedIndexes": "the failure of one worker restarts all of them, up to backoffLimit times",
    "successPolicy": "the job is complete when every worker has succeeded",
    "podReplacementPolicy": "the pods of a failed attempt are gone before the next attempt starts",
}


def is_job(document: Obj) -> bool:
    return (document.get("apiVersion"), document.get("kind")) == ("batch/v1", "Job")


def is_training_job(document: Obj) -> bool:
    """Whether this is a batch/v1 Job whose pods start Paddle."""
    if not is_job(document) or not part(document, "spec.template.spec"):
        return False
    return any(trains(container) for container in template_at(document, "spec.template")["spec"]["containers"])


def as_workers(document: Obj) -> Converted:
    """Any batch/v1 Job as a PaddleJob with workers only, for the embedded engine, which runs only PaddleJobs.

    Its pods do what they did before; start_paddle.py reads its peers from PADDLE_TRAINERS instead of the API server.
    """
    notes: list[str] = []
    spec = needed(document, "spec")
    template = template_at(document, "spec.template")
    count = _replicas(spec, notes)
    if not count:
        raise BadInput("spec.parallelism is 0, so no pod would start; set it to 1 or more")
    drop_restart_policy(template["spec"], notes)
    for field in ("hostname", "subdomain", "hostNetwork"):
        template["spec"].pop(field, None)
    for container in template["spec"]["containers"]:
        container.pop("ports", None)
    metadata = part(template, "metadata")
    metadata.pop("name", None)
    name = part(document, "metadata").get("name")
    metadata["labels"] = {**part(template, "metadata.labels"), **({"job-name": name} if name else {})}
    result = {**given(spec), "worker": {"replicas": count, "template": {**template, "metadata": metadata}}}
    return paddle_job(document, result, notes)


def from_job(document: Obj) -> Converted:
    notes: list[str] = []
    spec = needed(document, "spec")
    template = template_at(document, "spec.template")
    count = _replicas(spec, notes)
    result = given(spec)
    if not count:
        count, result["suspend"] = _trainers(template), True
        notes.append("spec.parallelism was 0; the job is suspended instead, until `pdj resume`")
    _note_limits(spec, notes)
    template = without_finding(template, result, notes)
    result["ps"] = {"replicas": count, "template": template}
    result["worker"] = {"replicas": count, "template": copy.deepcopy(template)}
    notes.append(
        "spec.template: each pod was server and trainer; now each role has its own pods, so requests and limits count "
        "twice" + (", and initContainers run in both" if template["spec"].get("initContainers") else "")
    )
    notes.append(
        "containers: the image must contain paddlejob's start_paddle.py, which takes its role from the operator and "
        "copies JOB_PATH/JOB_NAME/<PADDLE_TRAINER_ID>/data as before; an older one looks for its peers itself"
    )
    return paddle_job(document, result, notes)


def _replicas(spec: Obj, notes: list[str]) -> int:
    parallelism = spec.get("parallelism")
    count = whole_number(1 if parallelism is None else parallelism, "spec.parallelism")
    completions = spec.get("completions")
    if count and completions not in (None, count):
        notes.append(f"spec.completions was {completions}; all {count} workers must succeed, each once")
    return count


def _trainers(template: Obj) -> int:
    """The number that the pods were given, if the Job itself does not say."""
    pairs = [pair for container in template["spec"]["containers"] for pair in container.get("env") or []]
    values = [str(pair.get("value", "")) for pair in pairs if pair["name"] == "CONF_PADDLE_GRADIENT_NUM"]
    return max([1, *(int(text) for text in values if text.isdecimal())])


def _note_limits(spec: Obj, notes: list[str]) -> None:
    if spec.get("backoffLimit") is not None:
        notes.append("spec.backoffLimit: counted failed pods; now counts restarts of the whole job")
    else:
        notes.append("spec.backoffLimit: defaulted to 6 failed pods; now to 3 restarts of the whole job")
    notes.append(
        "spec: pods of a completed Job were kept; now they are deleted with their logs. `cleanPodPolicy: Never` keeps "
        "them, and keeps the servers running"
    )
    for key in spec:
        if key not in UNDERSTOOD:
            notes.append(f"spec.{key} is left out; {INSTEAD.get(key, 'it has no counterpart')}")
    if spec.get("manualSelector"):
        notes.append("spec.selector is left out; the operator selects its pods by its own labels")
    if spec.get("completionMode") == "Indexed":
        notes.append("spec.completionMode: every PaddleJob gives its pods an index, as PADDLE_TRAINER_ID")
