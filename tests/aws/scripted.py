"""Scripted responses of CloudFormation, request by request, through botocore's Stubber."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.stub import ANY, Stubber

from paddlejob.cloud.aws.config.cluster import ClusterConfig
from paddlejob.cloud.aws.stack.apply import Options, apply, make_updatable
from paddlejob.cloud.aws.stack.stack import Stack, StackState
from paddlejob.cloud.aws.stack.up import resolve_parameters
from paddlejob.cloud.aws.templates.render import cluster_template, from_data
from paddlejob.errors import NotPossible

STACK_ID = "arn:aws:cloudformation:us-west-2:123456789012:stack/paddle-cluster/1"
_NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
_DEPLOYED = {"Zone1": "us-west-2a", "Zone2": "us-west-2b", "Zone3": "", "VpcCidr": "10.0.0.0/16", "KmsKeyArn": ""}


START = ("paddle-cluster", "CREATE_IN_PROGRESS", "User Initiated")
"""The first event of a stack."""


def up(stack: Stack, config: ClusterConfig, rollback: bool = False) -> tuple[StackState, bool]:
    """`up` of the cluster's stack alone, with data that is there."""
    state = make_updatable(stack)
    values = resolve_parameters(stack.aws, config, state) | from_data({})
    return apply(stack, state, cluster_template(config, values), Options(rollback=rollback))


def message(run: Callable[[], Any]) -> str:
    """Return the message of the NotPossible that `run` raises."""
    with pytest.raises(NotPossible) as rejected:
        run()
    return str(rejected.value)


class Script:
    """Each call adds the next answer. A request that is not in the script, or not reached, fails the test."""

    def __init__(self, stack: Stack) -> None:
        self._stubber = Stubber(stack.aws.client("cloudformation"))
        self._others = {name: Stubber(stack.aws.client(name)) for name in ("ec2", "iam", "sts")}
        self._events: list[dict[str, Any]] = []

    def __enter__(self) -> Script:
        for stubber in (self._stubber, *self._others.values()):
            stubber.activate()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            for stubber in (self._stubber, *self._others.values()):
                stubber.assert_no_pending_responses()

    def no_stack(self) -> None:
        self.rejects("describe_stacks", "ValidationError", "Stack with id paddle-cluster does not exist")

    def begins_to_create(self) -> None:
        """What `up` asks where there is nothing yet, until CloudFormation has taken the stack."""
        self.no_stack()
        self.knows_zones_and_caller()
        self.no_stack()
        self.takes("create_stack")

    def begins_to_change(self, status: str, *changes: dict[str, Any], reason: str = "") -> None:
        """What `up` asks where there is a stack, until the preview of its changes; by default it has none."""
        self.stack_is(status)
        self.knows_the_caller()
        self.previews(*changes, reason=reason or "The submitted information didn't contain changes.")

    def completes_creation(self, *events: tuple[str, str, str]) -> None:
        """`up` of a stack whose creation failed, with these events so far, until CloudFormation is at work again."""
        self.stack_is("CREATE_FAILED")
        self.knows_the_caller()
        self.stack_is("CREATE_FAILED")
        self.reports(START, *events)
        self.takes("update_stack", DisableRollback=True)  # all that CloudFormation accepts in this state
        self.stack_is("UPDATE_IN_PROGRESS")

    def begins_to_delete(self, status: str, *events: tuple[str, str, str]) -> None:
        self.takes("update_termination_protection", EnableTerminationProtection=False)
        self.stack_is(status)
        self.reports(*events)
        self.takes("delete_stack")

    def stack_is(self, status: str, tags: bool = True, **parameters: str) -> None:
        item = {
            "StackId": STACK_ID,
            "StackName": "paddle-cluster",
            "StackStatus": status,
            "CreationTime": _NOON,
            "Tags": [{"Key": "paddlejob/cluster", "Value": "paddle-cluster"}] if tags else [],
            "Parameters": [{"ParameterKey": k, "ParameterValue": v} for k, v in {**_DEPLOYED, **parameters}.items()],
        }
        self._stubber.add_response("describe_stacks", {"Stacks": [item]})

    def reports(self, *events: tuple[str, str, str]) -> None:
        """New events (resource, status, reason); as from AWS, earlier events follow them."""
        for resource, status, reason in events:
            whole = resource == "paddle-cluster"
            number = len(self._events)
            event = {
                "StackId": STACK_ID,
                "StackName": "paddle-cluster",
                "EventId": str(number),
                "LogicalResourceId": resource,
                "PhysicalResourceId": STACK_ID if whole else resource,
                "ResourceType": "AWS::CloudFormation::Stack" if whole else f"AWS::X::{resource}",
                "ResourceStatus": status,
                "ResourceStatusReason": reason,
                "Timestamp": _NOON + timedelta(seconds=number),
            }
            self._events.append(event)
        self._stubber.add_response("describe_stack_events", {"StackEvents": self._events[::-1]})

    def finishes_rollback(self, status: str, *events: tuple[str, str, str]) -> None:
        """A rollback that failed is continued, and the stack is then in this status."""
        self.stack_is("UPDATE_ROLLBACK_FAILED")
        self.stack_is("UPDATE_ROLLBACK_FAILED")
        self.reports(START)
        self.takes("continue_update_rollback")
        self.stack_is(status)
        self.reports(*events)

    def holds(self, *names: str, gone: tuple[str, ...] = ()) -> None:
        """The resources of the stack, by their names in the template."""
        statuses = {**dict.fromkeys(names, "CREATE_COMPLETE"), **dict.fromkeys(gone, "DELETE_COMPLETE")}
        summaries = [
            {
                "LogicalResourceId": name,
                "PhysicalResourceId": f"{name.lower()}-1",
                "ResourceType": f"AWS::X::{name}",
                "ResourceStatus": status,
                "LastUpdatedTimestamp": _NOON,
            }
            for name, status in statuses.items()
        ]
        self._stubber.add_response("list_stack_resources", {"StackResourceSummaries": summaries})

    def takes(self, operation: str, **expected: Any) -> None:
        answer = {"StackId": STACK_ID} if operation in ("create_stack", "update_stack") else {}
        self._stubber.add_response(operation, answer, _any_but(operation, expected))

    def previews(self, *changes: dict[str, Any], reason: str = "") -> None:
        """A change set with these changes; with none, CloudFormation says why."""
        self._stubber.add_response("create_change_set", {})
        common = {"StackName": "paddle-cluster", "Status": "CREATE_COMPLETE" if changes else "FAILED"}
        answer = {**common, "StatusReason": reason, "Changes": [{"ResourceChange": change} for change in changes]}
        self._stubber.add_response("describe_change_set", answer)
        self._stubber.add_response(*(("describe_change_set", answer) if changes else ("delete_change_set", {})))

    def finds_no_changes(self) -> None:
        self.previews(reason="The submitted information didn't contain changes.")

    def rejects(self, operation: str, code: str, reason: str) -> None:
        self._stubber.add_client_error(operation, code, reason)

    def knows_zones_and_caller(self) -> None:
        self.knows_zones()
        self.knows_the_caller()

    def knows_zones(self) -> None:
        zones = [{"ZoneName": f"us-west-2{letter}", "ZoneId": f"usw2-az{letter}"} for letter in "abc"]
        self._others["ec2"].add_response("describe_availability_zones", {"AvailabilityZones": zones})

    def knows_the_caller(self) -> None:
        self._others["sts"].add_response(
            "get_caller_identity", {"Arn": "arn:aws:iam::123456789012:user/me", "Account": "123456789012"}
        )
        self.has_no_boundary()

    def has_left_interface(self, name: str) -> None:
        ec2 = self._others["ec2"]
        ec2.add_response("describe_network_interfaces", {"NetworkInterfaces": [{"NetworkInterfaceId": name}]})
        ec2.add_response("delete_network_interface", {}, {"NetworkInterfaceId": name})

    def has_no_boundary(self) -> None:
        self._others["iam"].add_client_error("get_policy", "NoSuchEntity")


_SENT = {
    "create_stack": (
        *("StackName", "ClientRequestToken", "TemplateBody", "Parameters", "Capabilities", "Tags"),
        *("DisableRollback", "EnableTerminationProtection"),
    ),
    "update_stack": (
        *("StackName", "ClientRequestToken", "TemplateBody", "Parameters", "Capabilities", "Tags", "DisableRollback"),
    ),
    "delete_stack": ("StackName", "ClientRequestToken"),
    "continue_update_rollback": ("StackName", "ClientRequestToken"),
    "execute_change_set": ("StackName", "ChangeSetName", "ClientRequestToken", "DisableRollback"),
    "update_termination_protection": ("StackName", "EnableTerminationProtection"),
}


def _any_but(operation: str, expected: dict[str, Any]) -> dict[str, Any]:
    """What is sent must be there, whatever it is, but for what is expected; None means that it is not sent."""
    sent = {**dict.fromkeys(_SENT[operation], ANY), **expected}
    return {name: value for name, value in sent.items() if value is not None}
