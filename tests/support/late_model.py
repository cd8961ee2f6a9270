"""A cluster whose news is late: what others change is seen some steps later, and an old state may be seen again."""

from __future__ import annotations

from dataclasses import replace

from paddlejob.api.types import PaddleJob
from paddlejob.plan import Action, Create, Delete, Kind, Pod, Stop, Wake, World
from tests.support.model import Model


class LateModel(Model):
    """While `seen` is set, the engine sees these pods, and the responses to its own writes."""

    seen: dict[str, Pod] | None = None

    def world(self) -> World:
        world = super().world()
        return world if self.seen is None else replace(world, pods=tuple(self.seen.values()))

    async def perform(self, job: PaddleJob, action: Action) -> None:
        await super().perform(job, action)
        match action:
            case Create(Kind.POD, name) | Delete(Kind.POD, name):
                self._respond(name)
            case Wake(pod) | Stop(pod):
                self._respond(pod.name)

    def _respond(self, name: str) -> None:
        if self.seen is not None:
            self.seen.pop(name, None)
            if name in self.pods:
                self.seen[name] = self.pods[name]
