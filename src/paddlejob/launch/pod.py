"""A pod as the API server describes it, cut down to what its peers need to know."""

from __future__ import annotations

from typing import Any, NamedTuple


class Pod(NamedTuple):
    name: str
    addresses: tuple[str, ...]
    """The first is that of the cluster's main kind."""
    phase: str
    owner: str
    leaving: bool
    why: str = ""
    """Why it does not run, as far as Kubernetes says."""

    @property
    def runs(self) -> bool:
        return self.phase == "Running" and bool(self.addresses) and not self.leaving

    @property
    def may_run(self) -> bool:
        return self.phase in ("Running", "Pending") and not self.leaving


def read_pod(document: dict[str, Any]) -> Pod:
    metadata, status = document["metadata"], document.get("status") or {}
    addresses = [one["ip"] for one in status.get("podIPs") or [] if one.get("ip")]
    if not addresses and status.get("podIP"):
        addresses = [status["podIP"]]
    owner = next((one["uid"] for one in metadata.get("ownerReferences") or [] if one.get("controller")), "")
    return Pod(
        name=metadata["name"],
        addresses=tuple(addresses),
        phase=status.get("phase") or "Pending",
        owner=owner,
        leaving="deletionTimestamp" in metadata,
        why=_why(status),
    )


def _why(status: dict[str, Any]) -> str:
    """In Kubernetes' own words: not scheduled, a container that waits or has failed, an eviction."""
    for condition in status.get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return _words(condition)
    for container in (status.get("initContainerStatuses") or []) + (status.get("containerStatuses") or []):
        state = container.get("state") or {}
        if state.get("waiting"):
            return _words(state["waiting"])
        if (state.get("terminated") or {}).get("exitCode"):
            return f"exit status {state['terminated']['exitCode']}"
    return _words(status)


def _words(part: dict[str, Any]) -> str:
    return ": ".join(part[key] for key in ("reason", "message") if part.get(key))
