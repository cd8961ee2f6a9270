"""One step of the loop for one job."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from paddlejob.api.types import PaddleJob, Status
from paddlejob.engine.backend import Backend, Key, Outdated, Refused
from paddlejob.engine.carry_out import carry_out
from paddlejob.plan import Action, Create, Refusal, plan
from paddlejob.plan.times import earliest

COUNTS_AT_MOST_EVERY = 1.0


class Reconciler:
    """Decides and acts for each job in turn. What it remembers between steps may be lost without harm."""

    def __init__(self, backend: Backend, clock: Callable[[], float] = time.time) -> None:
        self._backend = backend
        self._clock = clock
        self._refusals: dict[Key, dict[str, Refusal]] = {}
        self._reported: dict[Key, float] = {}

    async def step(self, key: Key) -> float | None:
        """Observe, plan, report, carry out. Answers when to look again even if nothing happens."""
        view = await self._backend.observe(key)
        if view is None:
            self._forget(key)
            return None
        now = self._clock()
        world = replace(view.world, refusals=tuple(self._refusals.get(key, {}).values()))
        decided = plan(view.job, world, now)
        try:
            later = await self._report(key, view.job, decided.status, now)
            await carry_out(decided.actions, lambda action: self._perform(key, view.job, action))
        except Outdated:
            return now
        except Refused:
            return self._clock()
        return earliest(decided.wake_at, later)

    async def _report(self, key: Key, job: PaddleJob, status: Status, now: float) -> float | None:
        """Write what changed; mere counts wait until a second has passed since the last write."""
        if status == job.status:
            return None
        due = self._reported.get(key, 0.0) + COUNTS_AT_MOST_EVERY
        if now < due and _without_counts(status) == _without_counts(job.status):
            return due
        await self._backend.report(job, status)
        self._reported[key] = now
        return None

    async def _perform(self, key: Key, job: PaddleJob, action: Action) -> None:
        try:
            await self._backend.perform(job, action)
        except Refused as refusal:
            self._remember(key, action, refusal)
            raise
        if isinstance(action, Create) and key in self._refusals:
            self._refusals[key].pop(action.name, None)

    def _remember(self, key: Key, action: Action, refusal: Refused) -> None:
        name = action.name if isinstance(action, Create) else type(action).__name__
        known = self._refusals.setdefault(key, {})
        times = known[name].times + 1 if name in known else 1
        known[name] = Refusal(name, refusal.reason, refusal.words, self._clock(), times)

    def _forget(self, key: Key) -> None:
        self._refusals.pop(key, None)
        self._reported.pop(key, None)


def _without_counts(status: Status) -> Status:
    return status.model_copy(update={"ps": None, "worker": None, "heter": None, "message": ""})
