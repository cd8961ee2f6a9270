"""The fields of a Kubernetes pod that its peers need."""

from __future__ import annotations

from typing import Any, NamedTuple


class Pod(NamedTuple):
    name: str
    addresses: tuple[str, ...]
    """The first one belongs to the cluster's primary IP family."""
    phase: str
    owner: str
    terminating: bool
    message: str = ""
    """Why the pod is not running, as reported by Kubernetes."""

    @property
    def is_running(self) -> bool:
        return self.phase == "Running" and bool(self.addresses) and not self.terminating

    @property
    def is_active(self) -> bool:
        return self.phase in ("Running", "Pending") and not self.terminating


def parse_pod(document: dict[str, Any]) -> Pod:
    metadata, status = document["metadata"], document.get("status") or {}
    addresses = [entry["ip"] for entry in status.get("podIPs") or [] if entry.get("ip")]
    if not addresses and status.get("podIP"):
        addresses = [status["podIP"]]
    owner = next((ref["uid"] for ref in metadata.get("ownerReferences") or [] if ref.get("controller")), "")
    return Pod(
        name=metadata["name"],
        addresses=tuple(addresses),
        phase=status.get("phase") or "Pending",
        owner=owner,
        terminating="deletionTimestamp" in metadata,
        message=_status_message(status),
    )


def _status_message(status: dict[str, Any]) -> str:
    """Kubernetes' own reason and message: unscheduled, a waiting or failed container, or an eviction."""
    for condition in status.get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return _reason_and_message(condition)
    for container in (status.get("initContainerStatuses") or []) + (status.get("containerStatuses") or []):
        state = container.get("state") or {}
        if state.get("waiting"):
            return _reason_and_message(state["waiting"])
        if (state.get("terminated") or {}).get("exitCode"):
            return f"exit code {state['terminated']['exitCode']}"
    return _reason_and_message(status)


def _reason_and_message(part: dict[str, Any]) -> str:
    return ": ".join(part[key] for key in ("reason", "message") if part.get(key))
