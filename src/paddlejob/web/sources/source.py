"""What the server needs from this machine or from a cluster, as coroutines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from paddlejob.client.targets.target import JobView
from paddlejob.web.views.row import Key, Row

if TYPE_CHECKING:
    from paddlejob.client.watch.usage import Usage
    from paddlejob.web.logs.lines import LogQuery, LogRef, Matches, Piece
    from paddlejob.web.views.machine import MachineInfo
    from paddlejob.web.views.series import Series


@dataclass(frozen=True)
class Description:
    """A target as the page shows it."""

    name: str
    """`local` or `cluster`, as in URLs."""
    title: str
    error: str = ""
    """Why its jobs may be out of date; empty while it answers."""
    namespace: str = ""
    """The only namespace that is shown; empty: all."""


class Source(Protocol):
    name: str

    def describe(self) -> Description: ...

    def flags(self, namespace: str) -> list[str]:
        """The flags that select this target, also if the remembered one or the current context is another by now."""

    async def run(self) -> None:
        """Keep what is needed current until cancelled."""

    async def refresh(self) -> Mapping[Key, Row]:
        """The rows of all jobs, as of now. Rows of jobs that have not changed are the same objects."""

    async def view(self, namespace: str, name: str) -> JobView:
        """One job; raises BadInput if it does not exist."""

    async def usage(self, view: JobView) -> dict[str, Usage]:
        """What the running replicas of a job use, by the name of the pod."""

    async def machine(self) -> MachineInfo:
        """What there is to train with, and who holds it."""

    async def series(self, namespace: str, name: str) -> Series:
        """The metrics that the job has logged so far, in all attempts."""

    async def logs(self, namespace: str, name: str) -> list[LogRef]:
        """The logs that exist, oldest attempt first."""

    def follow(self, namespace: str, name: str, query: LogQuery) -> AsyncIterator[list[Piece]]:
        """The end of the chosen logs, then what is added, in batches; an empty batch means that nothing was added."""

    async def search(self, namespace: str, name: str, query: LogQuery, pattern: str) -> Matches:
        """The lines that match a regular expression."""

    def download(self, namespace: str, name: str, query: LogQuery) -> AsyncIterator[bytes]:
        """The chosen logs as they are."""
