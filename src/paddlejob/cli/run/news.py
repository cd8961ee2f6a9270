"""Events that a screen has not shown: a restart without delay is over before its phase can be seen."""

from __future__ import annotations

from paddlejob.engine.backend import Key
from paddlejob.targets.views import JobView

LAST_EVENTS = 3
"""How many are shown of a job that has a history."""


class News:
    def __init__(self) -> None:
        self._events: dict[Key, int] = {}
        """How many events of each job were shown, or need not be."""
        self._headlines: dict[Key, set[str]] = {}
        """What the status of each job said."""

    def of(self, view: JobView) -> list[str]:
        """New events as lines, without those that the status says too."""
        key = (view.job.namespace, view.job.name)
        said = self._headlines.setdefault(key, set())
        said.add(view.headline)
        new = view.events[self._events.get(key, max(0, len(view.events) - LAST_EVENTS)) :]
        self._events[key] = len(view.events)
        lines = [(event.reason, event.message.partition("\n")[0]) for event in new]
        return [f"{reason}: {headline}" for reason, headline in lines if headline not in said]
