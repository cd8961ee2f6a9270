"""What verbs, the Python API and the web server need from this machine or a cluster."""

from __future__ import annotations

import difflib
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Any, Protocol

from paddlejob.errors import BadInput, NoSuchJob

if TYPE_CHECKING:
    from paddlejob.logs.follow import LogPiece
    from paddlejob.logs.search import Matches
    from paddlejob.logs.selection import LogSelection
    from paddlejob.logs.series import LoggedSample, Series
    from paddlejob.targets.capacity import MachineInfo
    from paddlejob.targets.log_views import LastLines, LastOutput, LogRef, LogStream
    from paddlejob.targets.views import JobView, Usage

OnRetry = Callable[[str], None]
DELETE_TIMEOUT = 120.0
MOST_NAMED = 10
"""Jobs that the error for a missing one lists."""


def ignore(reason: str) -> None:
    """Ignore the message."""


class Target(Protocol):
    name: str
    """`local` or `cluster`, as in URLs."""
    default_namespace: str
    remembered_namespace: str
    """The namespace of `pdj target`, if this is its target; else empty."""
    pause: float
    """Seconds between two looks at a job that somebody waits for."""

    @property
    def address(self) -> str:
        """`this machine`, or the URL of the cluster."""

    @property
    def problem(self) -> str:
        """Why `jobs` may be out of date while they are watched; empty if they are not."""

    @property
    def watched_namespace(self) -> str:
        """The only one whose jobs are watched; empty for all."""

    def flags(self, namespace: str) -> str:
        """The flags that select this target and namespace, with a leading space; empty for the defaults."""

    def start_command(self, namespace: str = "") -> str:
        """The command that starts a job here, in a namespace other than the default."""

    async def watch(self, namespace: str = "") -> None:
        """Until cancelled, answer `jobs` and `job` from memory; the view of a job that has not changed is the same.

        A namespace limits it to the jobs there.
        """

    async def jobs(self, namespace: str | None) -> list[JobView]:
        """The jobs in a namespace, or in all namespaces."""

    async def job(self, namespace: str, name: str) -> JobView:
        """One job; raises NoSuchJob that lists the existing jobs if it does not exist."""

    async def usage(self, view: JobView) -> dict[str, Usage]:
        """What the running replicas of a job use, by the name of the pod."""

    async def capacity(self, namespace: str = "") -> MachineInfo:
        """What there is to train with, and who holds it."""

    async def last_output(self, view: JobView) -> LastOutput | None:
        """The newest output of a job's replicas, if there is any."""

    async def delete(self, namespace: str, name: str, wait: bool) -> str:
        """Delete the job and return a message for the user."""

    async def change(self, namespace: str, name: str, **fields: Any) -> None:
        """Change fields of the spec; mappings are merged."""

    async def logs(
        self, namespace: str, name: str, selection: LogSelection, follow: bool = False, on_retry: OnRetry = ignore
    ) -> LogStream:
        """The selected lines; with `follow`, also those that are added until the job ends.

        `on_retry` gets the reason why a cluster is asked again.
        """

    def samples(self, namespace: str, name: str, follow: bool = False) -> AsyncGenerator[list[LoggedSample], None]:
        """What the first worker has logged of its progress, in all attempts that are kept, in batches."""

    async def series(self, namespace: str, name: str, first: int = -1) -> Series:
        """The same as curves, none of a job that was deleted.

        Of a log on a cluster that is read for the first time, only the last `first` lines count.
        """

    async def spark(self, namespace: str, name: str) -> tuple[float, ...] | None:
        """The shape of the loss in a few points; None where only the status tells it."""

    async def last_lines(self, view: JobView, count: int) -> LastLines:
        """The end of the log that explains best what the job does."""

    async def log_refs(self, namespace: str, name: str) -> list[LogRef]:
        """The logs that exist, oldest attempt first."""

    def log_pieces(self, namespace: str, name: str, selection: LogSelection) -> AsyncGenerator[list[LogPiece], None]:
        """The end of the selected logs, then what is added; an empty batch means that nothing was added."""

    async def search(self, namespace: str, name: str, selection: LogSelection, pattern: str) -> Matches:
        """The lines that match a regular expression."""

    def download(self, namespace: str, name: str, selection: LogSelection) -> AsyncGenerator[bytes, None]:
        """The selected logs as they are; with several, a line before each names it."""


def require_unfinished(view: JobView) -> None:
    """Raise BadInput if the job has ended: its spec can no longer change."""
    if view.job.status.finished:
        raise BadInput(f"job {view.job.name} has ended ({view.phase}) and cannot be changed; run it again")


def no_such_job(target: Target, namespace: str, name: str, others: list[str]) -> NoSuchJob:
    """The error for a job that does not exist."""
    close = difflib.get_close_matches(name, others, 1)
    if close:
        known = f"did you mean {close[0]}?"
    elif others:
        more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
        known = f"existing jobs: {', '.join(others[:MOST_NAMED])}{more}"
    else:
        known = f"start one with `{target.start_command(namespace)}`"
    return NoSuchJob(f"job {name} not found in namespace {namespace}; {known}")
