"""The embedded engine as plain data. It differs from a cluster as the real one does.

The job gets its resources as a whole or not at all. Pods, environments and Services exist only in the engine's
memory, so a crash takes them along. Pods of a finished job do not run on.
"""

from __future__ import annotations

from dataclasses import replace

from paddlejob.plan import Pod, PodGroup, PodPhase, World
from tests.support.model import Model

SIGTERM = 143


class LocalModel(Model):
    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)
        self.granted = False
        """Whether the job has its resources."""

    def world(self) -> World:
        group = PodGroup(self.key[1], "", owned=False, phase="Running")
        return replace(super().world(), pod_groups=(group,), stop_when_finished=True, one_machine=True)

    def _delete_pod(self, name: str, uid: str, force: bool) -> None:
        pod = self.pods.get(name)
        alive = pod is not None and pod.phase is PodPhase.RUNNING
        super()._delete_pod(name, uid, force or not alive)

    def _stop(self, pod: Pod) -> None:
        """Processes get SIGTERM; the pod ends when they have."""
        self.change(pod.name, stopping=True)
        if pod.ended:
            self.change(pod.name, lingers=False)
        elif self.pods[pod.name].phase is not PodPhase.RUNNING:
            self.change(pod.name, phase=PodPhase.FAILED, reason="DeadlineExceeded")

    def tick(self) -> None:
        """All pods are scheduled at once; then each waits, runs and ends like any other."""
        for pod in list(self.pods.values()):
            if pod.stopping and not pod.ended:
                self.change(pod.name, phase=PodPhase.FAILED, exit_code=SIGTERM, reason="DeadlineExceeded")
        unplaced = [pod for pod in self.pods.values() if not pod.address]
        for pod in unplaced:
            self.change(pod.name, reason="" if self.granted else "Unschedulable")
        super().tick()
        self.granted = bool(unplaced)

    def crash(self) -> None:
        super().crash()
        self.pods.clear()
        self.environments.clear()
        self.services.clear()
        self.granted = False
