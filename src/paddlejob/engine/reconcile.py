"""One step of the loop for one job."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from paddlejob.api.types import PaddleJob, Phase, Role, Status
from paddlejob.engine.backend import Backend, Key, Outdated, Rejected
from paddlejob.engine.carry_out import carry_out
from paddlejob.plan import Action, Create, Rejection, plan
from paddlejob.plan.rejections import delay
from paddlejob.plan.times import earliest

REPORTS_APART = 2.0
"""Seconds between two reports that tell of nothing but progress; more where a report takes long."""
RESULTS_APART = 1.0
"""Which workers are done is needed again, should their pods vanish: it waits less."""
SHARE_OF_TIME = 100
"""Waiting for such reports to be written takes at most this part of a job's time."""
LONGEST_DELAY = 30.0
log = logging.getLogger(__name__)


@dataclass
class Memory:
    """What is known of one job between two steps. All of it may be lost without harm."""

    uid: str
    reported: float
    rejections: dict[str, Rejection] = field(default_factory=dict)
    outdated: int = 0
    """How many steps in a row were made on an old view."""


class Reconciler:
    """Decides and acts for each job in turn."""

    def __init__(self, backend: Backend, clock: Callable[[], float] = time.time) -> None:
        self._backend = backend
        self._clock = clock
        self._memories: dict[Key, Memory] = {}
        self._report_took = 0.0

    async def step(self, key: Key) -> float | None:
        """Observe, plan, report, carry out. Answers when to look again even if nothing happens."""
        view = await self._backend.observe(key)
        if view is None:
            self._memories.pop(key, None)
            return None
        now = self._clock()
        memory = self._memory(key, view.job, now)
        decided = plan(view.job, replace(view.world, rejections=tuple(memory.rejections.values())), now)
        due, not_before = _sorted(decided.actions, memory, now)
        holding = bool(view.world.pods)
        try:
            later = await self._report(memory, view.job, decided.status, now)
            await carry_out(due, lambda action: self._perform(memory, view.job, action, holding))
        except Outdated:
            memory.outdated += 1
            return now + min(0.1 * 2.0 ** min(memory.outdated - 2, 20), LONGEST_DELAY) if memory.outdated > 1 else now
        except Rejected:
            return self._clock()
        memory.outdated = 0
        return earliest(decided.wake_at, later, *not_before)

    def _memory(self, key: Key, job: PaddleJob, now: float) -> Memory:
        """Another job of the same name is not held to what happened to its namesake."""
        known = self._memories.get(key)
        if known is None or known.uid != job.metadata.uid:
            known = self._memories[key] = Memory(job.metadata.uid, now)
        return known

    async def _report(self, memory: Memory, job: PaddleJob, status: Status, now: float) -> float | None:
        """Write what changed; what can wait is written together with what comes next, or a moment later."""
        if status == job.status:
            return None
        apart = max(REPORTS_APART, SHARE_OF_TIME * self._report_took)
        if status.role(Role.WORKER).finished != job.status.role(Role.WORKER).finished:
            apart = RESULTS_APART
        due = memory.reported + apart
        if now < due and (_only_counts_differ(status, job.status) or _merely_begun(status, job.status)):
            return due
        begun = time.monotonic()
        await self._backend.report(job, status)
        self._report_took += (time.monotonic() - begun - self._report_took) / 8
        memory.reported = now
        return None

    async def _perform(self, memory: Memory, job: PaddleJob, action: Action, holding: bool) -> None:
        try:
            await self._backend.perform(job, action)
        except Rejected as refused:
            self._remember(memory, job, action, refused, holding)
            raise
        memory.rejections.pop(_name(action), None)

    def _remember(self, memory: Memory, job: PaddleJob, action: Action, refused: Rejected, holding: bool) -> None:
        name, now = _name(action), self._clock()
        before = memory.rejections.get(name)
        times = before.times + 1 if before else 1
        due = now + delay(refused.reason, times, holding)
        memory.rejections[name] = Rejection(name, refused.reason, refused.message, now, due, times)
        if before is None or before.message != refused.message:
            log.warning("job %s/%s: %s was refused: %s", job.namespace, job.name, name, refused.message)


def _name(action: Action) -> str:
    return action.name if isinstance(action, Create) else type(action).__name__


def _sorted(actions: Iterable[Action], memory: Memory, now: float) -> tuple[list[Action], list[float]]:
    """Actions to carry out now, and the times of those that were refused a moment ago."""
    due, not_before = [], []
    for action in actions:
        rejection = memory.rejections.get(_name(action)) if memory.rejections else None
        if rejection is None or now >= rejection.due:
            due.append(action)
        else:
            not_before.append(rejection.due)
    return due, not_before


def _only_counts_differ(one: Status, other: Status) -> bool:
    left_out: dict[str, object] = {"ps": None, "worker": None, "heter": None, "message": ""}
    return one.model_copy(update=left_out) == other.model_copy(update=left_out)


def _merely_begun(status: Status, before: Status) -> bool:
    """A new job whose first pods are being made. A job without a status is in its first attempt: nothing is lost."""
    return before.phase is None and status.phase is Phase.PENDING and status.reason == "PodsNotReady"
