"""API objects as the views that people see."""

from __future__ import annotations

from typing import Any

from paddlejob import contract
from paddlejob.api.types import PaddleJob
from paddlejob.client.targets.target import EventView, JobView, PodView
from paddlejob.errors import NotPossible
from paddlejob.objects import transform
from paddlejob.objects.container_status import training_container_of

Object = dict[str, Any]


def job_view(
    obj: Object, pods: list[Object] | None = None, events: list[Object] | None = None, note: str = "", flags: str = ""
) -> JobView:
    job = _parse(obj)
    phase = "Deleting" if job.metadata.deletionTimestamp else str(job.status.phase or "Created")
    document = {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key != "managedFields"}}
    views = [view for pod in pods or [] if (view := pod_view(pod))]
    return JobView(job, document, phase, note, views, event_views(events or []), flags)


def pod_view(obj: Object) -> PodView | None:
    """Returns None for a pod that only happens to have the label of a job."""
    pod = transform.pod(obj).value
    if pod is None:
        return None
    stopped = pod.stopping and (obj.get("status") or {}).get("reason") == "DeadlineExceeded"
    return PodView(
        name=pod.name,
        role=str(pod.role),
        index=pod.index,
        state="Stopped" if stopped else str(pod.phase),
        attempt=pod.attempt,
        address=pod.address,
        exit_code=pod.exit_code,
        node=str((obj.get("spec") or {}).get("nodeName") or ""),
    )


def event_views(events: list[Object]) -> list[EventView]:
    """Sorted by time; the events of a pod start with its name."""
    views = []
    for event in events:
        subject = event.get("involvedObject") or {}
        message = str(event.get("message") or "")
        views.append(
            EventView(
                time=_event_time(event),
                reason=event.get("reason") or "",
                message=message if subject.get("kind") == contract.KIND else f"{subject.get('name')}: {message}",
                warning=event.get("type") == "Warning",
            )
        )
    return sorted(views, key=lambda view: view.time)


def container_name(pod: Object, container: str = "") -> str:
    """The named container, by default the one that trains."""
    return container or training_container_of(pod)


def training_state(pod: Object, container: str = "") -> Object:
    """`waiting`, `running` or `terminated` with its details; empty before the kubelet reports a state."""
    status = pod.get("status") or {}
    statuses = [*(status.get("containerStatuses") or []), *(status.get("initContainerStatuses") or [])]
    name = container_name(pod, container)
    return next((one.get("state") or {} for one in statuses if one["name"] == name), {})


def _parse(obj: Object) -> PaddleJob:
    job = transform.job(obj)
    if not isinstance(job, PaddleJob):
        name = "/".join((obj["metadata"]["namespace"], obj["metadata"]["name"]))
        raise NotPossible(
            f"job {name} does not match the schema of this version; check whether the CRD is older or newer than pdj"
        )
    return job


def _event_time(event: Object) -> str:
    times = (event.get("lastTimestamp"), event.get("eventTime"), event["metadata"].get("creationTimestamp"))
    latest = next((str(time) for time in times if time), "")
    return latest[:19] + "Z" if len(latest) > 20 else latest
