"""One step of the loop for one job."""

from __future__ import annotations

import itertools
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from paddlejob.api.reasons import STARTING, Reason
from paddlejob.api.types import PaddleJob, Phase, Role, Status
from paddlejob.delays import exponential_delay
from paddlejob.engine.backend import Backend, Key, Outdated, Rejected, View
from paddlejob.engine.carry_out import carry_out
from paddlejob.engine.fair_limiter import FairLimiter
from paddlejob.engine.log_context import work_on
from paddlejob.plan import Action, Create, Delete, Plan, RecordEvent, Rejection, plan
from paddlejob.plan.diagnosis.rejections import describe, name_of
from paddlejob.plan.manifests.pod import PodSource
from paddlejob.plan.times import earliest

REPORTS_APART = 2.0
"""Seconds between two reports of mere progress; more if reports take long."""
PROGRESS_APART = 9.0
"""Seconds between two reports of steps alone. A status costs an API server 2.3 ms, and logs are read every 10 s."""
STARTING_APART = 0.2
"""Seconds for each job that is being started: while many are, the API server has pods to create before reports of mere
progress, and 500 jobs would report a third time each before they run."""
RESULTS_APART = 1.0
"""The workers that are done must be known should their pods vanish, so they are reported sooner."""
REPORT_SPACING = 100
"""Reports of progress are at least this many times as far apart as one takes: they use 1% of a job's time."""
FIRST_DELAY = 0.1
LONGEST_DELAY = 30.0
"""Seconds before a job is planned again whose view was outdated twice or more in a row."""
LONGEST_SPACING = 30.0
"""One slow write must not silence a job for longer."""
LONGEST_START_SPACING = 120.0
"""However many jobs start: after 2000 of them did, each had reported four times with 30 s, and twice with this."""
REQUESTS_IN_FLIGHT = 24
"""Of all jobs together. The client has 40 connections, and watches, logs and status reports need some of them."""
LEAST_CREATES = 10
"""In a turn, however many jobs wait for theirs."""
LOOK_EVERY = 25
"""Creates after which the job is looked at again; it may have been deleted."""
UNREADABLE = (
    "the status of the job cannot be read, so nothing is done for it; something else has written to it. Delete the "
    "job; to train, create it again"
)
stopwatch = time.monotonic
log = logging.getLogger(__name__)


@dataclass
class Memory:
    """What is known about one job between two steps. All of it may be lost without harm."""

    uid: str
    reported: float
    rejections: dict[str, Rejection] = field(default_factory=dict)
    attempt: int = 0
    """The attempt whose pods are being created; 0 once they have their environment."""
    created: Counter[tuple[str, int]] = field(default_factory=Counter)
    """How often each pod of that attempt was created, by its name and replacement."""
    unreadable: str = ""
    """Why no plan can be made."""
    outdated: int = 0
    """How many steps in a row were planned from an outdated view."""


class Reconciler:
    """Plans and acts for each job in turn. A turn ends early if `crowded` says that jobs wait for one."""

    def __init__(
        self,
        backend: Backend,
        clock: Callable[[], float] = time.time,
        progress_apart: float = PROGRESS_APART,
        crowded: Callable[[], bool] = lambda: False,
    ) -> None:
        self._backend = backend
        self._crowded = crowded
        self._limiter: FairLimiter[Key] = FairLimiter(REQUESTS_IN_FLIGHT)
        self._progress_apart = progress_apart
        self._clock = clock
        self._memories: dict[Key, Memory] = {}
        self._starting: set[Key] = set()
        """Jobs that are on their way to Running, and that nothing hinders."""
        self._report_took = 0.0

    async def step(self, key: Key) -> float | None:
        """Observe, plan, report, carry out. Returns when to look again even if nothing happens."""
        work_on(key)
        view = await self._backend.observe(key)
        if view is None:
            self._memories.pop(key, None)
            self._starting.discard(key)
            return None
        now = self._clock()
        memory = self._memory(key, view.job, now)
        decided = await self._plan(memory, view, now)
        work_on(key, decided.status.attempt)
        self._note_starting(key, decided.status)
        try:
            later = await self._report(memory, view.job, decided.status, now)
            complete = await carry_out(
                _events_first(decided.actions),
                lambda action: self._perform(memory, view.job, action),
                self._proceeding(view.job),
            )
        except Outdated:
            memory.outdated += 1
            late = memory.outdated - 1
            return now + exponential_delay(late, FIRST_DELAY, LONGEST_DELAY) if late else now
        except Rejected:
            return self._clock()
        memory.outdated = 0
        return earliest(decided.wake_at, later) if complete else self._clock()

    async def _plan(self, memory: Memory, view: View, now: float) -> Plan:
        """Raises if the status, which others may write too, cannot be read; an event says so once."""
        try:
            decided = plan(view.job, replace(view.world, rejections=tuple(memory.rejections.values())), now)
        except ValueError as error:
            if memory.unreadable != str(error):
                memory.unreadable = str(error)
                message = f"{UNREADABLE}: {error}"
                await self._backend.perform(view.job, RecordEvent(Reason.UNREADABLE_JOB, message, warning=True))
            raise
        memory.unreadable = ""
        status = decided.status
        attempt = 0 if status.attempt == status.publishedAttempt else status.attempt
        if attempt != memory.attempt:
            memory.attempt = attempt
            memory.created.clear()
            memory.rejections = {k: one for k, one in memory.rejections.items() if one.reason != Reason.POD_DELETED}
        return decided

    def _proceeding(self, job: PaddleJob) -> Callable[[], bool]:
        """Asked before each create of a turn: whether the turn goes on."""
        numbers = itertools.count()

        def proceed() -> bool:
            number = next(numbers)
            if number % LOOK_EVERY == 0 and not self._backend.is_current(job):
                return False
            return number < LEAST_CREATES or not self._crowded()

        return proceed

    def _memory(self, key: Key, job: PaddleJob, now: float) -> Memory:
        """A new job of the same name starts with a fresh memory."""
        known = self._memories.get(key)
        if known is None or known.uid != job.metadata.uid:
            known = self._memories[key] = Memory(job.metadata.uid, now)
        return known

    def _note_starting(self, key: Key, status: Status) -> None:
        if status.phase in (Phase.PENDING, Phase.STARTING) and status.reason in STARTING:
            self._starting.add(key)
        else:
            self._starting.discard(key)

    async def _report(self, memory: Memory, job: PaddleJob, status: Status, now: float) -> float | None:
        """Write the status if it changed. Returns when to write it instead, if that can wait."""
        if status == job.status:
            return None
        slow = min(REPORT_SPACING * self._report_took, LONGEST_SPACING)
        crowded = min(STARTING_APART * len(self._starting), LONGEST_START_SPACING)
        apart = max(REPORTS_APART, slow, crowded)
        if status.role(Role.WORKER).finished != job.status.role(Role.WORKER).finished:
            apart = RESULTS_APART
        elif _only_steps_differ(status, job.status):
            apart = max(apart, self._progress_apart)
        due = memory.reported + apart
        if now < due and (_only_counts_differ(status, job.status) or _merely_begun(status, job)):
            return due
        begun = stopwatch()
        await self._backend.report(job, status)
        self._report_took += (stopwatch() - begun - self._report_took) / 8
        memory.reported = now
        return None

    async def _perform(self, memory: Memory, job: PaddleJob, action: Action) -> None:
        try:
            async with self._limiter.hold((job.namespace, job.name)):
                await self._backend.perform(job, action)
        except Rejected as error:
            await self._remember(memory, job, action, error)
            raise
        memory.rejections.pop(name_of(action), None)
        if isinstance(action, Create):
            self._note_created(memory, action)

    def _note_created(self, memory: Memory, action: Create) -> None:
        """A pod that is created again was deleted by something else; the next time waits as after a rejection."""
        source = action.source
        if not isinstance(source, PodSource) or source.attempt != memory.attempt:
            return
        key = (action.name, source.replacement)
        memory.created[key] += 1
        again = memory.created[key] - 1
        if again:
            memory.rejections[action.name] = Rejection(action.name, Reason.POD_DELETED, "", self._clock(), again)

    async def _remember(self, memory: Memory, job: PaddleJob, action: Action, error: Rejected) -> None:
        """A deletion that is denied is an event: a job that has ended keeps the status that says how."""
        name = name_of(action)
        before = memory.rejections.get(name)
        times = before.times + 1 if before else 1
        rejection = Rejection(name, error.reason, error.message, self._clock(), times)
        memory.rejections[name] = rejection
        if before is None or before.message != error.message:
            log.warning("job %s/%s: %s was rejected: %s", job.namespace, job.name, name, error.message)
            if isinstance(action, Delete):
                cause = describe(rejection)
                await self._backend.perform(job, RecordEvent(cause.reason, cause.message, warning=True))


def _events_first(actions: Iterable[Action]) -> list[Action]:
    """The status that they explain is written; an action that fails must not lose them."""
    return sorted(actions, key=lambda action: not isinstance(action, RecordEvent))


STEPS: dict[str, object] = {"progress": None, "goodput": None}
COUNTS: dict[str, object] = {"ps": None, "worker": None, "heter": None, "message": "", "conditions": (), **STEPS}


def _only_counts_differ(one: Status, other: Status) -> bool:
    if one.role(Role.WORKER).members != other.role(Role.WORKER).members:
        return False
    return one.model_copy(update=COUNTS) == other.model_copy(update=COUNTS)


def _only_steps_differ(one: Status, other: Status) -> bool:
    return one.model_copy(update=STEPS) == other.model_copy(update=STEPS)


def _merely_begun(status: Status, job: PaddleJob) -> bool:
    """A new job whose first pods are being created. Without a status it is in its first attempt: nothing is lost.

    A deadline runs from the time at which the job started, so that has to be known.
    """
    begun = status.phase is Phase.PENDING and status.reason == Reason.PODS_NOT_READY
    return begun and job.status.phase is None and job.spec.activeDeadlineSeconds is None
