"""One step of the loop for one job."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from paddlejob.api.types import PaddleJob, Phase, Status
from paddlejob.engine.backend import Backend, Key, Outdated, Refused
from paddlejob.engine.carry_out import carry_out
from paddlejob.plan import Action, Create, Refusal, plan
from paddlejob.plan.times import earliest

REPORTS_APART = 2.0
"""Seconds between two reports that tell of nothing but progress; more where a report takes long."""
SHARE_OF_TIME = 100
"""Waiting for such reports to be written takes at most this part of a job's time."""


class Reconciler:
    """Decides and acts for each job in turn. What it remembers between steps may be lost without harm."""

    def __init__(self, backend: Backend, clock: Callable[[], float] = time.time) -> None:
        self._backend = backend
        self._clock = clock
        self._refusals: dict[Key, dict[str, Refusal]] = {}
        self._reported: dict[Key, float] = {}
        self._report_took = 0.0

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
        """Write what changed; what can wait is written together with what comes next, or a moment later."""
        if status == job.status:
            return None
        due = self._reported.setdefault(key, now) + max(REPORTS_APART, SHARE_OF_TIME * self._report_took)
        if now < due and (_only_counts_differ(status, job.status) or _merely_begun(status, job.status)):
            return due
        begun = time.monotonic()
        await self._backend.report(job, status)
        self._report_took += (time.monotonic() - begun - self._report_took) / 8
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


def _only_counts_differ(one: Status, other: Status) -> bool:
    left_out: dict[str, object] = {"ps": None, "worker": None, "heter": None, "message": ""}
    return one.model_copy(update=left_out) == other.model_copy(update=left_out)


def _merely_begun(status: Status, before: Status) -> bool:
    """A new job whose first pods are being made. A job without a status is in its first attempt: nothing is lost."""
    return before.phase is None and status.phase is Phase.PENDING and status.reason == "PodsNotReady"
