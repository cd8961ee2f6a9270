"""After a failure or a lost connection, `up` is run again and resumes."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from paddlejob.cloud.aws.session import Aws
from paddlejob.cloud.aws.stack.stack import Stack

from .kinds import Configured
from .scripted import START, Script, message, up

NODES = {"Action": "Modify", "LogicalResourceId": "Nodes", "ResourceType": "AWS::EKS::Nodegroup"}


def test_after_a_failure_up_continues_and_does_not_report_the_old_failure_again(
    stack: Stack, configured: Configured, progress: list[str]
) -> None:
    with Script(stack) as aws:
        aws.completes_creation(("Nodes", "CREATE_FAILED", "no capacity"))
        aws.stack_is("UPDATE_IN_PROGRESS")
        aws.reports()
        aws.stack_is("UPDATE_COMPLETE")
        aws.reports(("paddle-cluster", "UPDATE_IN_PROGRESS", "User Initiated"), ("Nodes", "CREATE_COMPLETE", ""))
        state, changed = up(stack, configured())
    assert (state.status, changed) == ("UPDATE_COMPLETE", True)
    assert not any("no capacity" in line for line in progress)


def test_a_requested_rollback_reports_its_reason(stack: Stack, configured: Configured) -> None:
    with Script(stack) as aws:
        aws.no_stack()
        aws.knows_zones_and_caller()
        aws.no_stack()
        aws.takes("create_stack", DisableRollback=False)
        aws.stack_is("CREATE_IN_PROGRESS")
        aws.stack_is("ROLLBACK_COMPLETE")
        aws.reports(
            START,
            ("Nodes", "CREATE_FAILED", "Could not launch On-Demand Instances. InsufficientInstanceCapacity"),
            ("paddle-cluster", "ROLLBACK_IN_PROGRESS", "The following resource(s) failed to create: [Nodes]."),
            ("Vpc", "DELETE_COMPLETE", ""),
        )
        text = message(lambda: up(stack, configured(), rollback=True))
    assert "Nodes (AWS::X::Nodes): Could not launch" in text
    assert "choose another workerInstanceType or zone" in text
    assert "resources created so far remain" not in text


def test_an_update_of_a_complete_cluster_that_fails_is_undone(stack: Stack, configured: Configured) -> None:
    with Script(stack) as aws:
        aws.begins_to_change("CREATE_COMPLETE", NODES)
        aws.stack_is("CREATE_COMPLETE")
        aws.reports(START)
        aws.takes("execute_change_set", DisableRollback=False)
        aws.stack_is("UPDATE_IN_PROGRESS")
        aws.stack_is("UPDATE_ROLLBACK_COMPLETE")
        aws.reports(
            ("paddle-cluster", "UPDATE_IN_PROGRESS", "User Initiated"),
            ("Nodes", "UPDATE_FAILED", "Could not launch On-Demand Instances. InsufficientInstanceCapacity"),
        )
        text = message(lambda: up(stack, configured()))
    assert "Nodes (AWS::X::Nodes): Could not launch" in text
    assert text.endswith("the update was rolled back; fix the cause and run the same command again")


def test_a_change_that_cloudformation_rejects_is_an_error_with_its_reason(stack: Stack, configured: Configured) -> None:
    with Script(stack) as aws:
        aws.begins_to_change("CREATE_COMPLETE", reason="Circular dependency between resources")
        text = message(lambda: up(stack, configured()))
    assert text == "CloudFormation rejected the change of paddle-cluster: Circular dependency between resources"


def test_nodes_of_a_cluster_that_never_was_complete_cannot_be_exchanged_and_that_is_explained(
    stack: Stack, configured: Configured
) -> None:
    with Script(stack) as aws:
        aws.completes_creation()
        aws.stack_is("UPDATE_FAILED")
        rejection = "Replacement type updates not supported on stack with disable-rollback."
        aws.reports(("paddle-cluster", "UPDATE_IN_PROGRESS", ""), ("Nodes", "UPDATE_FAILED", rejection))
        text = message(lambda: up(stack, configured()))
    assert "restore workerInstanceType, workerSpot and availabilityZones and run `pdj aws up`" in text


def test_a_session_that_expires_while_up_waits_says_how_to_resume_and_the_next_up_does(
    stack: Stack, configured: Configured, progress: list[str]
) -> None:
    with Script(stack) as aws:
        aws.begins_to_create()
        aws.stack_is("CREATE_IN_PROGRESS")
        aws.stack_is("CREATE_IN_PROGRESS")
        aws.reports(START)
        aws.rejects("describe_stacks", "ExpiredToken", "The security token included in the request is expired")
        text = message(lambda: up(stack, configured()))
        assert "sign in again (with SSO: `aws sso login`), then run the same command to resume" in text
        aws.stack_is("CREATE_IN_PROGRESS")
        aws.stack_is("CREATE_COMPLETE")
        aws.reports(("paddle-cluster", "CREATE_COMPLETE", ""))
        aws.has_no_boundary()
        aws.finds_no_changes()
        state, _ = up(stack, configured())
    assert state.status == "CREATE_COMPLETE"
    assert "stack paddle-cluster is CREATE_IN_PROGRESS from an earlier run: following it" in progress


def test_an_update_whose_rollback_failed_is_finished_first(stack: Stack, configured: Configured) -> None:
    with Script(stack) as aws:
        aws.finishes_rollback("UPDATE_ROLLBACK_COMPLETE", ("paddle-cluster", "UPDATE_ROLLBACK_COMPLETE", ""))
        aws.knows_the_caller()
        aws.finds_no_changes()
        _, changed = up(stack, configured())
    assert not changed


def test_a_half_deleted_stack_is_not_built_upon(stack: Stack, configured: Configured) -> None:
    with Script(stack) as aws:
        aws.stack_is("DELETE_FAILED")
        assert "run `pdj aws destroy` again, then create it anew" in message(lambda: up(stack, configured()))


def test_throttling_while_following_is_waited_out(stack: Stack, configured: Configured, progress: list[str]) -> None:
    with Script(stack) as aws:
        aws.begins_to_create()
        aws.stack_is("CREATE_IN_PROGRESS")
        aws.rejects("describe_stacks", "Throttling", "Rate exceeded")
        aws.rejects("describe_stacks", "Throttling", "Rate exceeded")
        aws.stack_is("CREATE_COMPLETE")
        aws.reports(START)
        state, _ = up(stack, configured())
    assert state.status == "CREATE_COMPLETE"
    assert sum("AWS throttled cloudformation:describe_stacks" in line for line in progress) == 1


def test_after_a_network_failure_the_next_up_resumes(
    stack: Stack, configured: Configured, progress: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Script(stack) as aws:
        aws.begins_to_create()
        aws.stack_is("CREATE_IN_PROGRESS")
        with monkeypatch.context() as patch:
            cut_after(patch, stack, "describe_stack_events")
            text = message(lambda: up(stack, configured()))
    assert "CloudFormation continues with paddle-cluster; run the same command again to follow it" in text
    assert "no answer from AWS" in progress[0]

    again = Stack(Aws("us-west-2"), "paddle-cluster", progress.append, "paddle-cluster", sleep=lambda _: None)
    with Script(again) as aws:
        aws.stack_is("CREATE_IN_PROGRESS")
        aws.stack_is("CREATE_IN_PROGRESS")
        aws.reports(START, ("Cluster", "CREATE_IN_PROGRESS", ""))
        aws.stack_is("CREATE_COMPLETE")
        aws.reports(("Cluster", "CREATE_COMPLETE", ""), ("paddle-cluster", "CREATE_COMPLETE", ""))
        aws.knows_the_caller()
        aws.finds_no_changes()
        state, _ = up(again, configured())
    assert state.status == "CREATE_COMPLETE"
    assert any("CREATE_COMPLETE" in line and "Cluster" in line for line in progress)


def cut_after(patch: pytest.MonkeyPatch, stack: Stack, operation: str) -> None:
    """From this operation on, no request reaches AWS."""
    client = stack.aws.client("cloudformation")
    patch.setattr(client, operation, unreachable)
    describe = client.describe_stacks
    calls = iter([describe, describe, describe])
    patch.setattr(client, "describe_stacks", lambda **request: next(calls, unreachable)(**request))


def unreachable(**_: object) -> Any:
    raise EndpointConnectionError(endpoint_url="https://cloudformation.us-west-2.amazonaws.com/")
