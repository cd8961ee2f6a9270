"""Laws of the step from one attempt to the next, however slowly pods go and whatever volumes they have."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from paddlejob.api.types import Phase
from paddlejob.plan import Create, Kind, Pod, PodPhase
from tests.support.builders import job, template
from tests.support.examples import examples
from tests.support.model import Crash, Model

VOLUMES: dict[str, dict[str, Any]] = {
    "none": {},
    "emptyDir": {"emptyDir": {}},
    "hostPath": {"hostPath": {"path": "/data"}},
    "claim": {"persistentVolumeClaim": {"claimName": "output"}},
    "FUSE": {"csi": {"driver": "fuse.example.com"}},
}
WRITTEN_BACK = ("claim", "FUSE")
FAULT = st.sampled_from(["fail", "evict", "delete", "all fail", "suspend"])
LIVES = st.lists(st.tuples(FAULT, st.integers(0, 3), st.integers(0, 40)), min_size=1, max_size=4)
"""What ends each attempt, to which worker it happens, and after how many writes the engine crashes."""


def made(volume: str, **options: Any) -> Any:
    described = template(volumeMounts=[{"name": "data", "mountPath": "/data"}] if VOLUMES[volume] else [])
    described["spec"]["volumes"] = [{"name": "data", **VOLUMES[volume]}] if VOLUMES[volume] else []
    return job(workers=4, worker_={"template": described}, backoffLimit=99, **options)


class Watched(Model):
    """Kubelets remove one pod after the other; whatever starts or is created is compared with what is left."""

    def __init__(self, volume: str, per_tick: int) -> None:
        super().__init__(made(volume))
        self.volume, self.removed_per_tick = volume, per_tick

    def _create(self, kind: Kind, name: str, manifest: dict[str, Any]) -> None:
        if kind is Kind.POD:
            assert name not in self.pods, "never two pods of one name"
            assert not self.is_writing_back(), f"{name} is created while an earlier pod still writes"
        super()._create(kind, name, manifest)

    def is_writing_back(self) -> bool:
        left = any(pod.attempt < self.status.attempt for pod in self.pods.values())
        return self.volume in WRITTEN_BACK and (left or max(self.unmounts.values(), default=0) > self.now)

    def tick(self) -> None:
        waiting = {pod.uid for pod in self.pods.values() if pod.phase is not PodPhase.RUNNING}
        super().tick()
        for pod in self.pods.values():
            if pod.phase is PodPhase.RUNNING and pod.uid in waiting:
                self.check_start(pod)

    def check_start(self, pod: Pod) -> None:
        assert {one.attempt for one in self.pods.values()} == {pod.attempt}, (
            "no process starts beside an earlier attempt"
        )
        assert len(self.pods) == 4, "nor before all pods of its own exist"
        assert all(one.address for one in self.pods.values()), "and have an address"


async def live(model: Watched, lives: list[tuple[str, int, int]]) -> None:
    await model.settle(200)
    for fault, index, crash_after in lives:
        assert model.status.phase is Phase.RUNNING
        model.now += 100
        model.crash_after = crash_after
        await _end(model, fault, f"mnist-worker-{index}")
        await model.settle(200)
        model.crash_after = None


async def _end(model: Watched, fault: str, name: str) -> None:
    match fault:
        case "fail":
            model.end(name, 1)
        case "all fail":
            for one in list(model.pods):
                model.end(one, 1)
        case "evict":
            model.change(name, deletion_due=model.now + 30, disrupted=True, reason="Evicted")
        case "delete":
            model.pods.pop(name)
        case "suspend":
            await _resume_soon(model)


async def _resume_soon(model: Watched) -> None:
    spec = model.job.spec
    for suspended in (True, False):
        metadata = model.job.metadata.model_copy(update={"generation": model.job.metadata.generation + 1})
        changed = spec.model_copy(update={"suspend": suspended})
        model.job = model.job.model_copy(update={"metadata": metadata, "spec": changed})
        try:
            await model.step()
        except Crash:
            model.crash()


@examples(150)
@given(volume=st.sampled_from(sorted(VOLUMES)), per_tick=st.integers(1, 4), lives=LIVES)
def test_attempts_never_mix_however_slowly_pods_go_and_volumes_are_written_back(volume, per_tick, lives):
    model = Watched(volume, per_tick)
    asyncio.run(live(model, lives))
    assert model.status.phase is Phase.RUNNING
    assert not any(pod.deleting for pod in model.pods.values())


@examples(60)
@given(volume=st.sampled_from(["none", "emptyDir", "hostPath"]), index=st.integers(0, 3), per_tick=st.integers(1, 2))
def test_a_pod_is_created_as_soon_as_its_name_is_free(volume, index, per_tick):
    async def restart() -> None:
        model = Watched(volume, per_tick)
        await model.settle(200)
        model.now += 100
        model.end(f"mnist-worker-{index}", 1)
        while any(pod.attempt == 1 for pod in model.pods.values()):
            await model.step()
            # The failed one is gone with the delete, and seen to be so by the next step.
            await model.step()
            created = [one.name for one in model.done if isinstance(one, Create) and one.kind is Kind.POD]
            assert len(model.pods) == 4, "every name has a pod, old or new"
            assert len(created) == 4 + sum(pod.attempt == 2 for pod in model.pods.values())
            model.tick()

    asyncio.run(restart())
