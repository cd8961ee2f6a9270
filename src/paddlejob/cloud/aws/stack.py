"""One CloudFormation stack: find it, start an operation on it, follow that to its end."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from paddlejob.errors import NotPossible

from .events import SOUND, Event, advice, first_failure, of_this_operation
from .refusals import Disturbed, Refused
from .render import Parameters
from .session import Aws

OWNER_TAG = "paddlejob/cluster"
Say = Callable[[str], None]


@dataclass(frozen=True)
class StackState:
    id: str
    name: str
    status: str
    outputs: dict[str, str]
    parameters: dict[str, str]
    tags: dict[str, str]

    @property
    def busy(self) -> bool:
        """Whether CloudFormation is at work. A stack under review only waits for someone."""
        return self.status.endswith("_IN_PROGRESS") and self.status != "REVIEW_IN_PROGRESS"

    @property
    def gone(self) -> bool:
        return self.status == "DELETE_COMPLETE"

    @property
    def sound(self) -> bool:
        """Whether the stack can be updated as it is."""
        return self.status in SOUND

    @property
    def ours(self) -> bool:
        return self.tags.get(OWNER_TAG) == self.name


@dataclass
class Stack:
    """The stack of one cluster, which has the cluster's name."""

    aws: Aws
    name: str
    say: Say
    pause: float = 5.0
    patience: int = 60
    sleep: Callable[[float], None] = time.sleep
    at_work: bool = False
    """Whether CloudFormation may be at work for us, so that it goes on if we are interrupted."""
    _last_seen: str | None = field(default=None, repr=False)

    def find(self) -> StackState | None:
        """Its state, or None where there is no such stack. One that another program made is refused."""
        try:
            state = self._describe(self.name)
        except Refused as no:
            if no.code == "ValidationError" and "does not exist" in no.said:
                return None
            raise
        if not state.ours:
            raise NotPossible(
                f"the name {self.name} is taken by a CloudFormation stack that paddlejob did not make; choose "
                "another clusterName"
            )
        return None if state.gone else state

    def start(self, operation: str, **request: Any) -> None:
        """Send a request that changes the stack. A token makes botocore's retries harmless."""
        state = self.find()
        self._last_seen = self._newest_event(state.id) if state else None
        token = f"pdj-{uuid.uuid4()}"
        self.at_work = True
        try:
            self.aws.call("cloudformation", operation, StackName=self.name, ClientRequestToken=token, **request)
        except Refused:
            self.at_work = False
            raise

    def follow(self, stack_id: str | None = None) -> tuple[StackState, Event | None]:
        """Tell events until the operation has ended: the state then, and the first failure if there was one."""
        self.at_work = True
        target = stack_id or self._describe(self.name).id
        told: list[Event] = []
        while True:
            state = self._look_patiently(target, told)
            if not state.busy:
                self.at_work = False
                return state, first_failure(told)
            self.sleep(self.pause)

    def resources(self) -> dict[str, str]:
        """What the stack holds now: the id of each thing by its name in the template. A stack whose creation has
        failed has no outputs, but it has these."""
        summaries = self.aws.items(
            "cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=self.name
        )
        return {
            item["LogicalResourceId"]: item["PhysicalResourceId"]
            for item in summaries
            if item.get("PhysicalResourceId") and item["ResourceStatus"] != "DELETE_COMPLETE"
        }

    def was_complete(self) -> bool:
        """Whether it has ever been complete, as its events of the last 90 days tell."""
        return any(event.completes_operation() for event in self._events(self.name))

    def _look(self, stack_id: str, told: list[Event]) -> StackState:
        # The state is read before the events, so that no event of a finished operation is missed.
        state = self._describe(stack_id)
        known = {event.id for event in told}
        for event in of_this_operation(self._events(stack_id), self._last_seen):
            if event.id not in known:
                told.append(event)
                self.say(event.line())
        return state

    def _look_patiently(self, stack_id: str, told: list[Event]) -> StackState:
        for attempt in range(self.patience):
            try:
                return self._look(stack_id, told)
            except Disturbed as lost:
                if attempt == 0:
                    self.say(f"{lost}; CloudFormation goes on meanwhile, trying again")
                self.sleep(self.pause)
        raise NotPossible(
            f"no answer from AWS for {self.patience * self.pause:.0f} s; CloudFormation goes on with stack "
            f"{self.name}: run the same command again to follow it"
        )

    def _describe(self, name: str) -> StackState:
        item = self.aws.call("cloudformation", "describe_stacks", StackName=name)["Stacks"][0]
        return StackState(
            id=item["StackId"],
            name=item["StackName"],
            status=item["StackStatus"],
            outputs={o["OutputKey"]: o["OutputValue"] for o in item.get("Outputs", [])},
            parameters={p["ParameterKey"]: p.get("ParameterValue", "") for p in item.get("Parameters", [])},
            tags={tag["Key"]: tag["Value"] for tag in item.get("Tags", [])},
        )

    def _events(self, stack_id: str) -> Iterator[Event]:
        """Newest first, and no further page than is read."""
        request: dict[str, str] = {"StackName": stack_id}
        while True:
            page = self.aws.call("cloudformation", "describe_stack_events", **request)
            yield from map(Event.read, page["StackEvents"])
            if not page.get("NextToken"):
                return
            request["NextToken"] = page["NextToken"]

    def _newest_event(self, stack_id: str) -> str | None:
        return next((event.id for event in self._events(stack_id)), None)


def as_list(values: Parameters) -> list[dict[str, str]]:
    return [{"ParameterKey": name, "ParameterValue": value} for name, value in values.items()]


def changed_only(before: Parameters, **changes: str) -> list[dict[str, Any]]:
    """The deployed parameters with a few changed."""
    kept: list[dict[str, Any]] = [
        {"ParameterKey": name, "UsePreviousValue": True} for name in before if name not in changes
    ]
    return [*kept, *as_list(changes)]


def in_words(state: StackState, failure: Event | None) -> str:
    """Why an operation failed, from the failure that came first."""
    if failure is None:
        return f"stack {state.name} is {state.status}"
    what = f"stack {state.name} is {state.status}: {failure.resource} ({failure.type}): {failure.reason}"
    hint = advice(failure.reason)
    return f"{what}; {hint}" if hint else what
