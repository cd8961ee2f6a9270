"""What the API server says of a job, as people look at it."""

from __future__ import annotations

from typing import Any

from paddlejob import contract
from paddlejob.api import template
from paddlejob.api.types import PaddleJob
from paddlejob.cli.targets.target import EventView, JobView, PodView
from paddlejob.errors import NotPossible
from paddlejob.operator import transform as digest

Object = dict[str, Any]


def job_view(
    obj: Object, pods: list[Object] | None = None, events: list[Object] | None = None, note: str = "", flags: str = ""
) -> JobView:
    job = _read(obj)
    phase = "Deleting" if job.metadata.deletionTimestamp else str(job.status.phase or "Created")
    document = {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key != "managedFields"}}
    views = [view for pod in pods or [] if (view := pod_view(pod))]
    return JobView(job, document, phase, note, views, event_views(events or []), flags)


def pod_view(obj: Object) -> PodView | None:
    """None for a pod that bears our label by accident."""
    pod = digest.pod(obj).value
    if pod is None:
        return None
    state = training_state(obj)
    stopped = pod.stopping and (obj.get("status") or {}).get("reason") == "DeadlineExceeded"
    return PodView(
        name=pod.name,
        role=str(pod.role),
        index=pod.index,
        state="Stopped" if stopped else str(pod.phase),
        attempt=pod.attempt,
        address=pod.address,
        exit_code=pod.exit_code,
        message=": ".join(words for words in (pod.reason, pod.message) if words),
        started=_moment(state, "startedAt"),
        ended=_moment(state, "finishedAt"),
    )


def event_views(events: list[Object]) -> list[EventView]:
    """In the order of time; events of pods begin with the pod's name."""
    views = []
    for one in events:
        about = one.get("involvedObject") or {}
        said = str(one.get("message") or "")
        views.append(
            EventView(
                time=_time(one),
                reason=one.get("reason") or "",
                message=said if about.get("kind") == contract.KIND else f"{about.get('name')}: {said}",
                warning=one.get("type") == "Warning",
            )
        )
    return sorted(views, key=lambda view: view.time)


def training_container(pod: Object) -> str:
    return str(template.training_container(pod["spec"]["containers"])["name"])


def training_state(pod: Object, container: str = "") -> Object:
    """`waiting`, `running` or `terminated` with what is known; empty before the kubelet has said anything."""
    status = pod.get("status") or {}
    said = [*(status.get("containerStatuses") or []), *(status.get("initContainerStatuses") or [])]
    name = container or training_container(pod)
    return next((one.get("state") or {} for one in said if one["name"] == name), {})


def _read(obj: Object) -> PaddleJob:
    job = digest.job(obj)
    if job is None:
        name = "/".join((obj["metadata"]["namespace"], obj["metadata"]["name"]))
        raise NotPossible(f"job {name} is not one that this version understands; is the CRD older or newer than pdj?")
    return job


def _moment(state: Object, field: str) -> str:
    return next((str(value[field]) for value in state.values() if value and value.get(field)), "")


def _time(event: Object) -> str:
    moments = (event.get("lastTimestamp"), event.get("eventTime"), event["metadata"].get("creationTimestamp"))
    found = next((str(moment) for moment in moments if moment), "")
    return found[:19] + "Z" if len(found) > 20 else found
