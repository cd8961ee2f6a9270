"""A job and its pods on a cluster, as the views that people see."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from paddlejob import contract
from paddlejob.api.types import PaddleJob, Role
from paddlejob.errors import NotPossible
from paddlejob.kube.client import Client
from paddlejob.kube.resource import PODS
from paddlejob.objects import transform
from paddlejob.objects.resources import labels_of, owner_of
from paddlejob.plan.agents import attempt_of
from paddlejob.targets.views import EventView, JobView, PodView

Object = dict[str, Any]


def job_view(
    obj: Object, pods: list[Object] | None = None, events: list[Object] | None = None, note: str = "", flags: str = ""
) -> JobView:
    job = _parse(obj)
    phase = "Deleting" if job.metadata.deletionTimestamp else str(job.status.phase or "Created")
    document = {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key != "managedFields"}}
    found = [view for pod in pods or [] if (view := pod_view(pod))]
    views = [replace(view, attempt=attempt_of(view.attempt, job.status)) for view in found]
    return JobView(job, document, phase, note, views, event_views(events or []), flags)


def pod_view(obj: Object) -> PodView | None:
    """Returns None for a pod that only happens to have the label of a job."""
    pod = transform.pod(obj).value
    if pod is None:
        return None
    # With its job completed, a worker's pod is deleted; that says nothing against its result.
    done = pod.deleting and pod.exit_code == 0 and not pod.disrupted
    stopped = pod.stopping and (obj.get("status") or {}).get("reason") == "DeadlineExceeded"
    return PodView(
        name=pod.name,
        role=str(pod.role),
        index=pod.index,
        state="Stopped" if stopped else "Succeeded" if done else str(pod.phase),
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


async def pods_of(client: Client, job: Object) -> list[Object]:
    """The pods that the job owns, parameter servers first, by index."""
    metadata = job["metadata"]
    selector = f"{contract.LABEL_JOB}={metadata['name']}"
    pods = await client.list(PODS, metadata["namespace"], label_selector=selector)
    return sorted((pod for pod in pods if owner_of(pod) == metadata["uid"]), key=_rank)


def _rank(pod: Object) -> tuple[int, int]:
    roles, labels = [str(role) for role in Role], labels_of(pod)
    role = labels.get(contract.LABEL_ROLE, "")
    return roles.index(role) if role in roles else len(roles), int(labels.get(contract.LABEL_INDEX, "0"))


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
