"""Actions that the backend rejected: when each is due again, and how the job's status describes it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from paddlejob.api.reasons import Reason
from paddlejob.delays import exponential_delay
from paddlejob.plan.actions import Action, Create, Delete, Plan
from paddlejob.plan.cause import Cause
from paddlejob.plan.times import earliest
from paddlejob.plan.world import Pod, Rejection, World

FIRST_DELAY = 2.0
LONGEST_DELAY = 60.0
LONGEST_HOLDING = 10.0
"""A job that holds pods while it waits for others tries more often: what another job releases must find a taker."""
BEING_DELETED_DELAY = 1.0
BEING_DELETED = "BeingDeleted"
DELETING = "deleting "


def name_of(action: Action) -> str:
    """The name under which the rejection of an action is remembered."""
    if isinstance(action, Delete):
        return deleting(action.name)
    return action.name if isinstance(action, Create) else type(action).__name__


def deleting(name: str) -> str:
    return f"{DELETING}{name}"


def of_creates(world: World) -> list[Rejection]:
    """Why objects are missing. A pod that was deleted by something else and exists again is not."""
    there = {pod.name for pod in world.pods}
    return [
        one
        for one in world.rejections
        if not one.name.startswith(DELETING) and not (one.reason == Reason.POD_DELETED and one.name in there)
    ]


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


def denied(world: World, pods: Iterable[Pod]) -> Cause | None:
    """Why the pods are not deleted: a policy denies it, or a permission is missing."""
    wanted = {deleting(pod.name) for pod in pods}
    found = newest(one for one in world.rejections if one.name in wanted)
    return describe(found) if found else None


def newest(found: Iterable[Rejection]) -> Rejection | None:
    return max(found, key=lambda one: one.at, default=None)


def is_over_quota(rejection: Rejection) -> bool:
    return "exceeded quota" in rejection.message


def may_be_freed(rejection: Rejection, attempt: int) -> bool:
    """A quota counts pods of the attempt before until they are gone, and for a moment longer."""
    return attempt > 1 and is_over_quota(rejection) and rejection.times == 1


def describe(rejection: Rejection) -> Cause:
    """For the job's status."""
    name, message = rejection.name, rejection.message
    if rejection.reason == BEING_DELETED:
        return Cause(Reason.WAITING_FOR_OLD_PODS, f"waiting for {name} of an earlier job to be deleted: {message}")
    if rejection.reason == Reason.POD_DELETED:
        again = f"{rejection.times} times so far" if rejection.times > 1 else "once so far"
        remedy = "find out what deletes it, for example a clean-up policy or a descheduler, and exempt the job's pods"
        return Cause(Reason.POD_DELETED, f"pod {name} is deleted by something else before it starts, {again}", remedy)
    if name.startswith(DELETING):
        remedy = f"the job goes on when its old pods are gone; change the policy or the permission: {message}"
        return Cause(Reason.ADMISSION_REJECTED, f"the API server rejected {name}", remedy)
    if rejection.reason == Reason.NAME_TAKEN:
        fact = f"{name} already exists and belongs to something else"
        return Cause(Reason.NAME_TAKEN, fact, f"delete it or rename the job: {message}")
    if rejection.reason == Reason.API_SERVER_ERROR:
        remedy = f"retrying. The job needs no change; check the API server and etcd: {message}"
        return Cause(Reason.API_SERVER_ERROR, f"the API server failed to create {name}", remedy)
    if is_over_quota(rejection):
        remedy = f"delete other objects, raise the quota or request less: {message}"
        return Cause(Reason.QUOTA_EXCEEDED, f"{name} exceeds the namespace's quota", remedy)
    if "failed calling webhook" in message:
        fact = f"{name} cannot be created because an admission webhook does not respond"
        remedy = "repair it, or delete its configuration if it is a leftover (`pdj doctor` names it)"
        return Cause(Reason.WEBHOOK_FAILED, fact, f"{remedy}: {message}")
    remedy = f"change the job accordingly: {message}"
    return Cause(Reason.ADMISSION_REJECTED, f"the API server rejected {name}", remedy)
