"""A pod on this machine: what the planner sees of it, and the containers behind it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from paddlejob import contract
from paddlejob.api.quantity import limits, parse_quantity
from paddlejob.api.template import training_container
from paddlejob.api.types import Role
from paddlejob.local.machine.gpus import Gpu
from paddlejob.local.runtime.volumes import VolumeSource
from paddlejob.local.state.records import PodRecord
from paddlejob.plan import Pod, times
from paddlejob.plan.manifests import network

DEFAULT_GRACE = 30.0
Manifest = dict[str, Any]


@dataclass
class LocalPod:
    seen: Pod
    """What the planner sees."""
    manifest: Manifest
    own: Path
    """Files of this pod alone; they are removed with it."""
    gpus: list[Gpu] | None = None
    """None on a machine without GPUs."""
    device_variables: dict[str, str] = field(default_factory=dict)
    """With which its programs see these, and no others."""
    prepared: bool = False
    """The kubelet has prepared its volumes, or tried to."""
    sources: dict[str, VolumeSource] = field(default_factory=dict)
    alive: dict[str, int] = field(default_factory=dict)
    """Containers that are started and not gone: the process number of their first process, or 0."""
    inits_done: int = 0
    started: float | None = None
    ended: float | None = None
    over_memory: bool = False
    ending: bool = False
    """Its containers are being terminated: none is started or restarted."""
    terminated: set[str] = field(default_factory=set)
    """Containers that were asked to end."""
    exited: set[str] = field(default_factory=set)
    """Containers that are not gone yet, but whose program has ended."""
    restarts: Counter[str] = field(default_factory=Counter)
    note: str = ""
    """The last failure of a container other than the training container."""
    failed_hook: str = ""
    """How the postStart hook of the training container failed, with its output; the container is killed for it."""
    stopped: bool = False
    """Terminated on request, not by its own program."""
    removed: bool = False

    @property
    def main(self) -> Manifest:
        return training_container(self.manifest["spec"]["containers"])

    @property
    def init_containers(self) -> list[Manifest]:
        return self.manifest["spec"].get("initContainers") or []

    @property
    def initializing(self) -> bool:
        return self.inits_done < len(self.init_containers)

    @property
    def current_init(self) -> str:
        """The name of the init container that runs now, or that runs next."""
        return self.init_containers[self.inits_done]["name"] if self.initializing else ""

    @property
    def sidecars(self) -> list[Manifest]:
        """Init containers that run as long as the pod does."""
        return [one for one in self.init_containers if is_sidecar(one)]

    def container(self, name: str) -> Manifest | None:
        everything = [*self.manifest["spec"]["containers"], *self.init_containers]
        return next((one for one in everything if one["name"] == name), None)

    @property
    def programs(self) -> list[str]:
        """Containers of the pod that are alive, without sidecars, which end after them."""
        sidecars = {one["name"] for one in self.sidecars}
        return [name for name in self.alive if name not in sidecars]

    @property
    def is_started(self) -> bool:
        """Whether its containers were started; hooks of its sidecars may run before."""
        return self.main["name"] in self.alive

    @property
    def grace(self) -> float:
        given = self.manifest["spec"].get("terminationGracePeriodSeconds")
        return DEFAULT_GRACE if given is None else float(given)

    @property
    def memory_limit(self) -> float | None:
        """What the containers that run now may use together, if each has a limit."""
        init = self.init_containers[self.inits_done : self.inits_done + 1]
        started = [one for one in self.init_containers[: self.inits_done] if is_sidecar(one)]
        running = [*started, *(init or self.manifest["spec"]["containers"])]
        given = [limits(container).get("memory") for container in running]
        return sum(parse_quantity(limit) for limit in given if limit) if all(given) else None

    def change(self, **changes: Any) -> None:
        self.seen = replace(self.seen, **changes)

    def record(self, log: Path) -> PodRecord:
        """For other commands."""
        return PodRecord(
            name=self.seen.name,
            uid=self.seen.uid,
            role=self.seen.role,
            index=self.seen.index,
            attempt=self.seen.attempt,
            state=self._state(),
            address=self.seen.address,
            exit_code=self.seen.exit_code,
            reason=self.seen.reason,
            message=self.seen.message,
            pid=self.alive.get(self.main["name"], 0),
            started=times.format(self.started) if self.started else "",
            ended=times.format(self.ended) if self.ended else "",
            log=str(log),
            removed=self.removed,
            note=self.note,
        )

    def _state(self) -> str:
        stopped = self.stopped and (not self.seen.ended or self.seen.stopping)
        return "Stopped" if stopped and not self.alive else self.seen.phase


def is_sidecar(container: Manifest) -> bool:
    """Kubernetes' native sidecars: init containers that are kept running beside the others."""
    return container.get("restartPolicy") == "Always"


def new_pod(uid: str, manifest: Manifest, own: Path, now: float) -> LocalPod:
    """A pending pod, as the API server creates it from a manifest."""
    labels, annotations = manifest["metadata"]["labels"], manifest["metadata"]["annotations"]
    seen = Pod(
        name=manifest["metadata"]["name"],
        uid=uid,
        role=Role(labels[contract.LABEL_ROLE]),
        index=int(labels[contract.LABEL_INDEX]),
        attempt=int(labels[contract.LABEL_ATTEMPT]),
        created=now,
        build=annotations[contract.ANNOTATION_BUILD],
        dns_name=network.dns_name(manifest["spec"]),
        replacement=int(annotations.get(contract.ANNOTATION_REPLACEMENT, "0")),
    )
    return LocalPod(seen, manifest, own)
