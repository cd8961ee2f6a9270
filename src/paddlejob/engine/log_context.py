"""The job that the current asyncio task works on, so that log lines can name it wherever they are written."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from paddlejob.engine.backend import Key


@dataclass(frozen=True, slots=True)
class JobInProgress:
    namespace: str
    name: str
    attempt: int | None = None
    """None while it is not known."""


_current: ContextVar[JobInProgress | None] = ContextVar("job_in_progress", default=None)


def work_on(key: Key, attempt: int | None = None) -> None:
    """Name this job in log lines of the current task and of tasks that it starts, until it works on another one."""
    _current.set(JobInProgress(*key, attempt))


def job_in_progress() -> JobInProgress | None:
    return _current.get()
