"""A CloudFormation stack: find it, start an operation on it, and follow the operation to its end."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from paddlejob.cloud.aws.errors import AwsError, AwsUnavailable
from paddlejob.cloud.aws.session import Aws
from paddlejob.cloud.aws.stack.events import STABLE, Event, advice, first_failure, of_this_operation
from paddlejob.cloud.aws.templates.compose import OWNER_TAG
from paddlejob.errors import NotPossible

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
    def in_progress(self) -> bool:
        """Whether CloudFormation is running an operation; a stack under review only waits for approval."""
        return self.status.endswith("_IN_PROGRESS") and self.status != "REVIEW_IN_PROGRESS"

    @property
    def deleted(self) -> bool:
        return self.status == "DELETE_COMPLETE"

    @property
    def stable(self) -> bool:
        """Whether the stack can be updated in its present status."""
        return self.status in STABLE


@dataclass
class Stack:
    """A stack of one cluster."""

    aws: Aws
    name: str
    say: Say
    cluster: str
    """The cluster that it belongs to, which is its tag."""
    undo: str = "pdj aws destroy"
    """The command that deletes it, for messages."""
    poll_interval: float = 5.0
    max_retries: int = 60
    sleep: Callable[[float], None] = time.sleep
    operation_running: bool = False
    """Whether CloudFormation may be running an operation, which continues if this process is interrupted."""
    _last_seen: str | None = field(default=None, repr=False)

    def find(self) -> StackState | None:
        """Return its state, or None if it does not exist. A stack that paddlejob did not create is an error."""
        try:
            state = self._describe(self.name)
        except AwsError as error:
            if error.code == "ValidationError" and "does not exist" in error.message:
                return None
            raise
        if state.tags.get(OWNER_TAG) != self.cluster:
            raise NotPossible(
                f"a CloudFormation stack {self.name} exists that paddlejob did not create; choose another clusterName"
            )
        return None if state.deleted else state

    def start(self, operation: str, **request: Any) -> None:
        """Send a request that changes the stack. The token makes botocore's retries idempotent."""
        state = self.find()
        self._last_seen = self._newest_event(state.id) if state else None
        token = f"pdj-{uuid.uuid4()}"
        self.operation_running = True
        try:
            self.aws.call("cloudformation", operation, StackName=self.name, ClientRequestToken=token, **request)
        except AwsError:
            self.operation_running = False
            raise

    def delete(self) -> None:
        """Start the deletion, which termination protection would reject."""
        names = {"StackName": self.name, "EnableTerminationProtection": False}
        self.aws.call("cloudformation", "update_termination_protection", **names)
        self.start("delete_stack")

    def follow(
        self, stack_id: str | None = None, meanwhile: Callable[[list[Event]], None] = lambda _: None
    ) -> tuple[StackState, Event | None]:
        """Report events until the operation ends. Returns the final state and the first failure, if any.

        `meanwhile` is called with the events of the operation as long as it runs.
        """
        self.operation_running = True
        target = stack_id or self._describe(self.name).id
        seen: list[Event] = []
        while True:
            state = self._poll_with_retries(target, seen)
            if not state.in_progress:
                self.operation_running = False
                return state, first_failure(seen)
            meanwhile(seen)
            self.sleep(self.poll_interval)

    def resources(self) -> dict[str, str]:
        """Map the logical name of each resource that exists to its physical id.

        Unlike outputs, these exist even if the creation of the stack failed.
        """
        summaries = self.aws.items(
            "cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=self.name
        )
        return {
            item["LogicalResourceId"]: item["PhysicalResourceId"]
            for item in summaries
            if item.get("PhysicalResourceId") and item["ResourceStatus"] != "DELETE_COMPLETE"
        }

    def _poll(self, stack_id: str, seen: list[Event]) -> StackState:
        # The state is read before the events, so that no event of a finished operation is missed.
        state = self._describe(stack_id)
        known = {event.id for event in seen}
        for event in of_this_operation(self._events(stack_id), self._last_seen):
            if event.id not in known:
                seen.append(event)
                self.say(event.line())
        return state

    def _poll_with_retries(self, stack_id: str, seen: list[Event]) -> StackState:
        for attempt in range(self.max_retries):
            try:
                return self._poll(stack_id, seen)
            except AwsUnavailable as error:
                if attempt == 0:
                    self.say(f"{error}; CloudFormation continues meanwhile; retrying")
                self.sleep(self.poll_interval)
        raise NotPossible(
            f"no answer from AWS for {self.max_retries * self.poll_interval:.0f} s; CloudFormation continues with "
            f"{self.name}; run the same command again to follow it"
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
        """Yield events newest first, fetching pages on demand."""
        found = self.aws.iterate("cloudformation", "describe_stack_events", "StackEvents", StackName=stack_id)
        return map(Event.parse, found)

    def _newest_event(self, stack_id: str) -> str | None:
        return next((event.id for event in self._events(stack_id)), None)


@dataclass(frozen=True)
class Stacks:
    """The two stacks of a cluster. The data outlives the cluster, and the next cluster of the name takes it up."""

    cluster: Stack
    data: Stack

    @classmethod
    def of(cls, aws: Aws, name: str, say: Say, **options: Any) -> Stacks:
        return cls(Stack(aws, name, say, name, **options), Stack(aws, f"{name}-data", say, name, **options))

    @property
    def running(self) -> Stack | None:
        """The stack on which CloudFormation may be running an operation."""
        return next((stack for stack in (self.cluster, self.data) if stack.operation_running), None)

    def outputs(self) -> dict[str, str]:
        """Return the outputs of both stacks."""
        states = (self.cluster.find(), self.data.find())
        return {name: value for state in states if state for name, value in state.outputs.items()}


def describe_failure(state: StackState, failure: Event | None) -> str:
    """Say why an operation failed, from its first failure."""
    if failure is None:
        return f"stack {state.name} is {state.status}"
    text = f"stack {state.name} is {state.status}: {failure.resource} ({failure.type}): {failure.reason}"
    hint = advice(failure.reason)
    return f"{text}; {hint}" if hint else text
