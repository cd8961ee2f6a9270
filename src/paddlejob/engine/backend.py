"""What the loop needs from a system that runs jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from paddlejob.api.types import PaddleJob, Status
from paddlejob.plan import Action, World

Key = tuple[str, str]
"""Namespace and name of a job."""


@dataclass(frozen=True)
class View:
    """A job and its world at one moment."""

    job: PaddleJob
    world: World


class Rejected(Exception):
    """The backend does not perform this action for now: quota, admission, a name that is taken."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        self.message = message
        super().__init__(message)


class Outdated(Exception):
    """The view was outdated: nothing was written; observe again."""


class Backend(Protocol):
    async def observe(self, key: Key) -> View | None:
        """Return the job and its world, or None if the job is gone. Changes nothing."""

    async def report(self, job: PaddleJob, status: Status) -> None:
        """Write the status over the one the job was read with, or raise Outdated."""

    def is_current(self, job: PaddleJob) -> bool:
        """Whether the job still exists with the spec that it was read with."""

    async def perform(self, job: PaddleJob, action: Action) -> None:
        """Carry out one action. Rejected is remembered and planned around; other errors are retried."""
