"""What the loop needs from a place where jobs run."""

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
    """The backend will not make this object as things stand: quota, admission, a name that is taken."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        self.message = message
        super().__init__(message)


class Outdated(Exception):
    """The view was not the newest: nothing was written, look again."""


class Backend(Protocol):
    async def observe(self, key: Key) -> View | None:
        """The job and its world, or None where the job is gone."""

    async def report(self, job: PaddleJob, status: Status) -> None:
        """Write the status over the one the job was read with, or raise Outdated."""

    async def perform(self, job: PaddleJob, action: Action) -> None:
        """Carry out one action. Rejected is remembered and planned around; other errors are retried."""
