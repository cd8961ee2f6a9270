"""Where jobs are: the few things that differ between this machine and a cluster, for verbs that do not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from paddlejob.api.types import PaddleJob
from paddlejob.cli.plugin import is_plugin


@dataclass(frozen=True)
class PodView:
    name: str
    role: str
    index: int
    state: str
    """Pending, Waiting, Running, Succeeded, Failed or Stopped."""
    attempt: int = 0
    address: str = ""
    exit_code: int | None = None
    message: str = ""
    log: str = ""
    """A file, where there is one."""
    started: str = ""
    ended: str = ""


@dataclass(frozen=True)
class EventView:
    time: str
    reason: str
    message: str
    warning: bool = False


@dataclass(frozen=True)
class JobView:
    """A job as people look at it."""

    job: PaddleJob
    document: dict[str, Any]
    """As it is stored, status included."""
    phase: str
    """The phase, or what the place knows better: Interrupted, Deleting."""
    note: str = ""
    """What the place has to add, in words."""
    pods: list[PodView] = field(default_factory=list)
    events: list[EventView] = field(default_factory=list)
    flags: str = ""
    """What a command has to say to find the job, with a space before it; empty where nothing is needed."""


@dataclass(frozen=True)
class LogChoice:
    """Which logs: all pods where nothing is said, of the newest attempt."""

    role: str = ""
    index: int | None = None
    attempt: int = 0
    container: str = ""
    follow: bool = False
    tail: int = -1


class Target(Protocol):
    default_namespace: str
    begin: str
    """The command that starts a job here."""

    def flags(self, namespace: str) -> str:
        """What a command has to say to mean this place and namespace, with a space before it; mostly nothing."""

    def jobs(self, namespace: str | None) -> list[JobView]:
        """All jobs of a namespace, or of all."""

    def job(self, namespace: str, name: str) -> JobView:
        """One job, or BadInput that names those there are."""

    def logs(self, namespace: str, name: str, choice: LogChoice) -> Iterator[bytes]:
        """The chosen logs, in pieces."""

    def delete(self, namespace: str, name: str, wait: bool) -> str:
        """Delete the job; answers what was done, in words."""

    def change(self, namespace: str, name: str, **fields: Any) -> None:
        """Change fields of the spec; a mapping is merged into the one that is there."""


def choose_target(cluster: bool = False, context: str = "") -> Target:
    """This machine, unless the user asks for a cluster: by an option, or by saying `kubectl pdj`."""
    if cluster or context or is_plugin():
        from paddlejob.cli.targets.cluster import ClusterTarget

        return ClusterTarget(context)
    from paddlejob.cli.targets.local import LocalTarget

    return LocalTarget()
