"""What CloudFormation tells while it works: progress, and which failure came first. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .refusals import QUOTA_ADVICE, is_quota

_STARTS = ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS")
SOUND = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE")


@dataclass(frozen=True)
class Event:
    id: str
    time: datetime
    resource: str
    type: str
    status: str
    reason: str
    of_stack: bool

    @classmethod
    def read(cls, item: dict[str, Any]) -> Event:
        return cls(
            id=item["EventId"],
            time=item["Timestamp"],
            resource=item["LogicalResourceId"],
            type=item.get("ResourceType", ""),
            status=item.get("ResourceStatus", ""),
            reason=item.get("ResourceStatusReason", ""),
            of_stack=item.get("PhysicalResourceId") == item["StackId"],
        )

    def starts_operation(self) -> bool:
        return self.of_stack and self.status in _STARTS

    def completes_operation(self) -> bool:
        return self.of_stack and self.status in SOUND

    def line(self) -> str:
        """One line of progress. The reason is shown where it tells more than the status."""
        reason = f"  {self.reason}" if self.reason and not self.status.endswith("_IN_PROGRESS") else ""
        return f"{self.time:%H:%M:%S}  {self.status:<26} {self.resource:<22} {self.type}{reason}"


def of_this_operation(newest_first: Iterable[Event], last_seen: str | None) -> list[Event]:
    """The events since `last_seen`, or since the operation began; oldest first."""
    found: list[Event] = []
    for event in newest_first:
        if event.id == last_seen:
            break
        found.append(event)
        if event.starts_operation():
            break
    return found[::-1]


def first_failure(oldest_first: Sequence[Event]) -> Event | None:
    """The failure that caused the others: those that it cancelled come after it and say so."""
    failed = [event for event in oldest_first if event.status.endswith("_FAILED") and not event.of_stack]
    causes = [event for event in failed if "cancelled" not in event.reason.lower()]
    whole = [event for event in oldest_first if event.status.endswith("_FAILED") and event.of_stack]
    return next(iter([*causes, *failed, *whole]), None)


def advice(reason: str) -> str:
    """What to change, for the reasons that are common."""
    small = reason.lower()
    if "replacement type updates" in small:
        return (
            "nodes cannot be exchanged before the cluster has once been complete: put workerInstanceType, workerSpot "
            "and availabilityZones back and run `pdj aws up`, then change them"
        )
    if is_quota(reason):
        return QUOTA_ADVICE
    if "already exist" in small:
        return "the name is taken by something that this stack did not make: choose another clusterName, or remove it"
    if "not authorized" in small or "accessdenied" in small or "access denied" in small:
        return "`pdj aws policy` prints the rights that are needed"
    if "insufficientinstancecapacity" in small or "insufficient capacity" in small or "could not launch" in small:
        return "AWS has no such instance free now: choose another workerInstanceType or zone, or try later"
    if "availability zone" in small or "unsupportedavailabilityzone" in small:
        return "choose other availabilityZones or another workerInstanceType"
    if "dependency" in small or "has dependencies" in small:
        return "something outside the stack still uses it: `pdj aws destroy` names it"
    if "not empty" in small:
        return "something wrote to the bucket meanwhile: run `pdj aws destroy` again"
    return ""
