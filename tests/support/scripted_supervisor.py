"""One pod of the embedded engine whose containers a test plays: it reads the requests and makes the reports itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from paddlejob.api.types import Role
from paddlejob.local.job import LocalJob
from paddlejob.local.kubelet import Kubelet
from paddlejob.local.options import RunOptions
from paddlejob.local.pod import Manifest, new_pod
from paddlejob.local.runtime.processes import Processes
from paddlejob.local.state.store import JobStore
from paddlejob.plan import names
from paddlejob.plan.manifests.build_mark import build_mark
from paddlejob.plan.manifests.pod import pod_manifest
from tests.support.builders import NOON, document

GRACE = 30.0


class ScriptedSupervisor(Processes):
    """Records requests as `start NAME`, `terminate NAME` and `kill NAME`."""

    def __init__(self, isolated: bool) -> None:
        super().__init__(lambda: None, lambda error: None)
        self.isolated = isolated
        self.requests: list[str] = []
        self.by_pod: dict[str, list[str]] = {}
        """The same, by the uid of the pod."""
        self.started: dict[str, dict[str, Any]] = {}

    def take(self) -> list[str]:
        taken, self.requests = self.requests, []
        return taken

    def _request(self, request: dict[str, Any]) -> None:
        uid, _, name = request["id"].partition("/")
        if "argv" in request:
            self.started[name] = request
        verb = "start" if "argv" in request else "kill" if request["kill"] else "terminate"
        self.requests.append(f"{verb} {name}")
        self.by_pod.setdefault(uid, []).append(f"{verb} {name}")


class Timers:
    """An event loop whose timers run only when a test lets time pass."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, Callable[..., object], tuple[object, ...]]] = []

    def call_later(self, delay: float, callback: Callable[..., object], *arguments: object) -> None:
        self._due.append((self.now + delay, callback, arguments))

    @property
    def delays(self) -> list[float]:
        return sorted(due - self.now for due, _, _ in self._due)

    def pass_(self, seconds: float) -> None:
        self.now += seconds
        ready = [one for one in self._due if one[0] <= self.now]
        self._due = [one for one in self._due if one[0] > self.now]
        for _, callback, arguments in ready:
            callback(*arguments)


class OnePod:
    """A job with one worker: its pod is created, and nothing happens but what a test asks for."""

    def __init__(self, root: Path, *, isolated: bool = True, options: RunOptions | None = None, **pod: Any) -> None:
        self.store = JobStore(root)
        spec = {"terminationGracePeriodSeconds": GRACE, "containers": [container()], **pod}
        made = document("mnist", workers=1, worker_={"template": {"spec": spec}})
        chosen = options or RunOptions(folder=str(root))
        self.folder, self._lock = self.store.begin(made, chosen, NOON)
        self.now = NOON
        self.changes = 0
        self.local = LocalJob(self.folder, self._lock, self._count)
        self.supervisor = ScriptedSupervisor(isolated)
        self.kubelet = Kubelet(self.store, self.supervisor, lambda: self.now)
        job = self.folder.job()
        assert job is not None
        manifest = pod_manifest(job, Role.WORKER, 0, 1, build_mark(job))
        self.pod = new_pod("uid-1", manifest, self.folder.path / "pods" / "uid-1", NOON)
        self.environment = names.environment(job, 1)
        self.local.add(self.pod)

    def _count(self) -> None:
        self.changes += 1

    def close(self) -> None:
        self._lock.release()

    def bind(self) -> None:
        self.local.update(self.pod, node="laptop", address="127.64.0.1")
        self.kubelet.sync(self.local)

    def publish(self, **variables: str) -> None:
        self.local.publish(1, self.environment, variables)
        self.kubelet.sync(self.local)

    def report(self, container: str, **report: Any) -> None:
        self.kubelet.on_report(f"uid-1/{container}", report)

    def run(self, *containers: str) -> None:
        """Bind the pod, publish its environment and let its containers start."""
        self.bind()
        self.publish()
        for number, name in enumerate(containers or ("paddle",)):
            self.report(name, started=100 + number)
        self.supervisor.take()

    def exit(self, container: str, code: int, oom: bool = False) -> None:
        """The program ends, and then everything that it started."""
        self.report(container, ended=code, oom=oom)
        self.report(container, gone=True)


def container(name: str = "paddle", **fields: Any) -> Manifest:
    return {"name": name, "image": "mine", "command": ["python", "train.py"], **fields}


Make = Callable[..., OnePod]
