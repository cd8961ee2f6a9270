"""How far a pod has come before its training container: its placement and its init containers."""

from __future__ import annotations

from dataclasses import dataclass

from paddlejob.kube.resource import Object
from paddlejob.plan.times import parse


@dataclass(frozen=True, slots=True)
class Startup:
    """The fields are those of `plan.Pod`."""

    scheduling_since: float
    nominated: bool
    initializing: bool
    init_ended: float
    init_failed: bool
    initialized: bool


def startup(pod: Object) -> Startup:
    status: Object = pod.get("status") or {}
    scheduled: Object = next((one for one in status.get("conditions") or [] if one["type"] == "PodScheduled"), {})
    states = _init_states(pod["spec"], status)
    ended = [state["terminated"] for state in states if "terminated" in state]
    since = _moment(scheduled.get("lastTransitionTime"))
    return Startup(
        scheduling_since=since,
        nominated=bool(status.get("nominatedNodeName")) and not pod["spec"].get("nodeName"),
        initializing=any("running" in state for state in states),
        init_ended=since + _duration(ended) if ended else 0.0,
        init_failed=any(one.get("exitCode") for one in ended),
        initialized=bool(states) and all((state.get("terminated") or {}).get("exitCode") == 0 for state in states),
    )


def _init_states(spec: Object, status: Object) -> list[Object]:
    """A sidecar is an init container that never ends, so it says nothing about the startup."""
    sidecars = {one["name"] for one in spec.get("initContainers") or [] if one.get("restartPolicy") == "Always"}
    found = status.get("initContainerStatuses") or []
    return [one.get("state") or {} for one in found if one["name"] not in sidecars]


def _duration(ended: list[Object]) -> float:
    """For how long init containers ran, both ends by the clock of their node: it may differ from all others."""
    first = min(_moment(one.get("startedAt")) for one in ended)
    return max(0.0, max(_moment(one.get("finishedAt")) for one in ended) - first) if first else 0.0


def _moment(text: str | None) -> float:
    return parse(text) if text else 0.0
