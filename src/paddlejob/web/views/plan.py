"""The objects that a job gets, as `pdj plan` prints them."""

from __future__ import annotations

from dataclasses import dataclass

from paddlejob.api.types import Status
from paddlejob.client.describe.formats import to_yaml
from paddlejob.client.planned import planned_objects
from paddlejob.errors import PaddleJobError
from paddlejob.targets.views import JobView

SHOWN = 20
"""A job of a thousand workers has as many pods, which differ in little but their index."""


@dataclass(frozen=True)
class PlanView:
    text: str
    objects: int
    shown: int


def plan_of(target: str, view: JobView) -> PlanView:
    """For a first attempt, with example addresses; a job whose objects cannot be planned says why."""
    job = view.job.model_copy(update={"status": Status()})
    try:
        objects = planned_objects(job, "local" if target == "local" else "kubernetes")
    except PaddleJobError as error:
        return PlanView(str(error), 0, 0)
    shown = sorted(objects, key=lambda one: one["kind"] == "Pod")[:SHOWN]
    return PlanView(to_yaml(*shown), len(objects), len(shown))
