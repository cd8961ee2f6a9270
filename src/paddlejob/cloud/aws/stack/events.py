"""The events of a CloudFormation stack: progress lines, and the failure that caused the others. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from paddlejob.cloud.aws.errors import QUOTA_ADVICE, is_quota

_STARTS = ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS")
STABLE = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE")


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
    def parse(cls, item: dict[str, Any]) -> Event:
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

    def line(self) -> str:
        """Format one line of progress. The reason is omitted while an operation is in progress."""
        reason = f"  {self.reason}" if self.reason and not self.status.endswith("_IN_PROGRESS") else ""
        return f"{self.time:%H:%M:%S}  {self.status:<26} {self.resource:<22} {self.type}{reason}"


def of_this_operation(newest_first: Iterable[Event], last_seen: str | None) -> list[Event]:
    """Return the events since `last_seen`, or since the operation started; oldest first."""
    found: list[Event] = []
    for event in newest_first:
        if event.id == last_seen:
            break
        found.append(event)
        if event.starts_operation():
            break
    return found[::-1]


def first_failure(oldest_first: Sequence[Event]) -> Event | None:
    """Return the failure that caused the others; operations cancelled by it fail later and say so."""
    failed = [event for event in oldest_first if event.status.endswith("_FAILED") and not event.of_stack]
    causes = [event for event in failed if "cancelled" not in event.reason.lower()]
    whole = [event for event in oldest_first if event.status.endswith("_FAILED") and event.of_stack]
    return next(iter([*causes, *failed, *whole]), None)


# Parts of the reasons of failures, in lower case, and the remedy.
_ADVICE = {
    ("replacement type updates",): (
        "nodes cannot be replaced before the cluster has been created completely: restore workerInstanceType, "
        "workerSpot and availabilityZones and run `pdj aws up`, then change them"
    ),
    ("already exist",): (
        "a resource of that name exists outside this stack: choose another clusterName, or delete the resource"
    ),
    ("not authorized", "accessdenied", "access denied"): "`pdj aws policy` prints the required permissions",
    ("insufficientinstancecapacity", "insufficient capacity", "could not launch"): (
        "AWS has no capacity for this instance type: choose another workerInstanceType or zone, or try later"
    ),
    ("availability zone", "unsupportedavailabilityzone"): (
        "choose other availabilityZones or another workerInstanceType"
    ),
    (
        "dependency",
        "has dependencies",
    ): "a resource outside the stack still uses it: `pdj aws destroy` lists such resources",
    ("not empty",): "objects were added to the bucket meanwhile: run `pdj aws destroy` again",
}


def advice(reason: str) -> str:
    """Return the remedy for common failure reasons, or an empty string."""
    if is_quota(reason):
        return QUOTA_ADVICE
    lowered = reason.lower()
    return next((remedy for parts, remedy in _ADVICE.items() if any(part in lowered for part in parts)), "")
