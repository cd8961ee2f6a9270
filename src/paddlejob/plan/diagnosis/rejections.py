"""Actions that the backend rejected: when each is due again, and how the job's status describes it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from paddlejob.plan.actions import Action, Create, Plan
from paddlejob.plan.times import earliest, exponential_delay
from paddlejob.plan.world import Rejection, World

FIRST_DELAY = 2.0
LONGEST_DELAY = 60.0
LONGEST_HOLDING = 10.0
"""A job that holds pods while it waits for others tries more often: what another job releases must find a taker."""
BEING_DELETED_DELAY = 1.0
BEING_DELETED = "BeingDeleted"
NAME_TAKEN = "NameTaken"
SERVER_ERROR = "ApiServerError"


def name_of(action: Action) -> str:
    """The name under which the rejection of an action is remembered."""
    return action.name if isinstance(action, Create) else type(action).__name__


def hold_back(decided: Plan, world: World, now: float) -> Plan:
    """Leave out the actions that were rejected and are not due yet, and plan again when they are."""
    waits = {one.name: one for one in world.rejections if not is_due(one, world, now)}
    if not waits:
        return decided
    held = [waits[name_of(action)] for action in decided.actions if name_of(action) in waits]
    return replace(
        decided,
        actions=tuple(action for action in decided.actions if name_of(action) not in waits),
        wake_at=earliest(decided.wake_at, *(retry_at(one, world) for one in held)),
    )


def is_due(rejection: Rejection, world: World, now: float) -> bool:
    return now >= retry_at(rejection, world)


def retry_at(rejection: Rejection, world: World) -> float:
    """When the rejected action is tried again: after 2, 4, 8 ... seconds."""
    if rejection.reason == BEING_DELETED:
        return rejection.at + BEING_DELETED_DELAY
    longest = LONGEST_HOLDING if world.pods else LONGEST_DELAY
    return rejection.at + exponential_delay(rejection.times, FIRST_DELAY, longest)


def newest(found: Iterable[Rejection]) -> Rejection | None:
    return max(found, key=lambda one: one.at, default=None)


def is_over_quota(rejection: Rejection) -> bool:
    return "exceeded quota" in rejection.message


def describe(rejection: Rejection) -> tuple[str, str]:
    """The reason and the message for the job's status."""
    name, message = rejection.name, rejection.message
    if rejection.reason == BEING_DELETED:
        return "WaitingForOldPods", f"waiting for {name} of an earlier job to be deleted: {message}"
    if rejection.reason == NAME_TAKEN:
        return (
            NAME_TAKEN,
            f"{name} already exists and belongs to something else; delete it or rename the job: {message}",
        )
    if rejection.reason == SERVER_ERROR:
        return SERVER_ERROR, (
            f"the API server failed to create {name}; retrying. The job needs no change; check the API server and "
            f"etcd: {message}"
        )
    if is_over_quota(rejection):
        return "QuotaExceeded", (
            f"{name} exceeds the namespace's quota; delete other objects, raise the quota or request less: {message}"
        )
    if "failed calling webhook" in message:
        return "WebhookFailed", (
            f"{name} cannot be created because an admission webhook does not respond; repair it, or delete its "
            f"configuration if it is a leftover (`pdj doctor` names it): {message}"
        )
    return "AdmissionRefused", f"the API server rejected {name}; change the job accordingly: {message}"
