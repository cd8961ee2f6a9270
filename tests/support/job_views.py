"""Jobs as commands show them, with any status."""

from __future__ import annotations

from typing import Any

from paddlejob.targets.views import JobView, PodView
from tests.support.builders import job

ENDED = {"completionTime": "2027-01-15T08:01:30Z", "startTime": "2027-01-15T08:00:00Z"}


def view(
    phase: str = "Running",
    *,
    pods: list[PodView] | tuple[PodView, ...] = (),
    flags: str = "",
    note: str = "",
    spec: dict[str, Any] | None = None,
    **status: Any,
) -> JobView:
    made = job(status={"phase": phase, "attempt": 1, **status}, **spec or {})
    return JobView(made, {}, phase, note, list(pods), flags=flags)
