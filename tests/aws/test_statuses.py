"""Each status that a stack can be in when a verb is run: what is finished first, what is reported, what is rejected."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from paddlejob.cloud.aws.stack.events import Event, first_failure
from paddlejob.cloud.aws.stack.stack import Stack, Stacks
from paddlejob.cloud.aws.stack.up import scale
from paddlejob.cloud.aws.stack.up import up as up_both
from paddlejob.errors import BadInput

from .kinds import Configured
from .scripted import START, Script, message, up

DELETING = ("paddle-cluster", "DELETE_IN_PROGRESS", "User Initiated")


def deletes(aws: Script, status: str, after: str, *events: tuple[str, str, str]) -> None:
    aws.stack_is(status)
    aws.begins_to_delete(status, START)
    aws.stack_is(after)
    aws.reports(DELETING, *events)


@pytest.mark.parametrize("status", ["ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "REVIEW_IN_PROGRESS"])
def test_a_stack_that_holds_nothing_is_deleted_and_created_anew(
    stack: Stack, configured: Configured, progress: list[str], status: str
) -> None:
    with Script(stack) as aws:
        deletes(aws, status, "DELETE_COMPLETE")
        aws.knows_zones_and_caller()
        aws.no_stack()
        aws.takes("create_stack")
        aws.stack_is("CREATE_IN_PROGRESS")
        aws.stack_is("CREATE_COMPLETE")
        aws.reports(START)
        state, _ = up(stack, configured())
    assert state.status == "CREATE_COMPLETE"
    assert progress[0] == f"stack paddle-cluster is {status} and empty: deleting it first"


def test_where_what_is_left_cannot_be_deleted_the_reason_is_reported(stack: Stack, configured: Configured) -> None:
    with Script(stack) as aws:
        deletes(aws, "ROLLBACK_FAILED", "DELETE_FAILED", ("Vpc", "DELETE_FAILED", "The vpc has dependencies"))
        text = message(lambda: up(stack, configured()))
    assert text.startswith("stack paddle-cluster is DELETE_FAILED: Vpc (AWS::X::Vpc): The vpc has dependencies; ")


def test_a_rollback_that_cannot_be_finished_is_reported_with_its_cause(stack: Stack, configured: Configured) -> None:
    with Script(stack) as aws:
        aws.finishes_rollback("UPDATE_ROLLBACK_FAILED", ("Nodes", "UPDATE_FAILED", "Internal failure"))
        text = message(lambda: up(stack, configured()))
    assert text == "stack paddle-cluster is UPDATE_ROLLBACK_FAILED: Nodes (AWS::X::Nodes): Internal failure"


def test_what_failed_since_an_interrupted_up_is_reported_before_the_next_one_continues(
    stack: Stack, configured: Configured, progress: list[str]
) -> None:
    with Script(stack) as aws:
        aws.stack_is("UPDATE_IN_PROGRESS")
        aws.stack_is("UPDATE_ROLLBACK_COMPLETE")
        aws.reports(("paddle-cluster", "UPDATE_IN_PROGRESS", ""), ("Nodes", "UPDATE_FAILED", "Could not launch"))
        aws.knows_the_caller()
        aws.finds_no_changes()
        _, changed = up(stack, configured())
    assert not changed
    assert progress[0] == "stack paddle-cluster is UPDATE_IN_PROGRESS from an earlier run: following it"
    assert progress[-1].startswith("stack paddle-cluster is UPDATE_ROLLBACK_COMPLETE: Nodes (AWS::X::Nodes): Could not")


def test_a_creation_that_failed_and_needs_no_change_any_more_is_no_error(stack: Stack, configured: Configured) -> None:
    with Script(stack) as aws:
        aws.stack_is("UPDATE_FAILED")
        aws.knows_the_caller()
        aws.stack_is("UPDATE_FAILED")
        aws.reports(START)
        aws.rejects("update_stack", "ValidationError", "No updates are to be performed.")
        _, changed = up(stack, configured())
        assert not changed
        aws.stack_is("UPDATE_FAILED")
        aws.has_no_boundary()
        aws.stack_is("UPDATE_FAILED")
        aws.reports()
        aws.rejects("update_stack", "ValidationError", "Template format error")
        assert "AWS rejected cloudformation:update_stack: Template format error" in message(
            lambda: up(stack, configured())
        )
    assert not stack.operation_running, "Ctrl-C must not say that CloudFormation continues"


@pytest.mark.parametrize("status", ["CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"])
def test_a_complete_stack_is_changed_by_a_preview(stack: Stack, configured: Configured, status: str) -> None:
    with Script(stack) as aws:
        aws.begins_to_change(status)
        state, changed = up(stack, configured())
    assert (state.status, changed) == (status, False)


def test_a_cluster_is_scaled_to_nothing_but_not_below_and_not_created_without_nodes(
    stack: Stack, configured: Configured
) -> None:
    nodes = {"WorkerCount": "1", "MaxWorkerCount": "10"}
    accepted: list[str] = []
    with Script(stack) as aws:
        aws.stack_is("CREATE_COMPLETE", **nodes)
        aws.finds_no_changes()
        scale(stack, 0, lambda: accepted.append("0"))
        assert accepted == ["0"]
        for count in (-1, 11):
            aws.stack_is("CREATE_COMPLETE", **nodes)
            with pytest.raises(BadInput, match=f"workerCount: {count} is outside 0 to 10; raise maxWorkerCount"):
                scale(stack, count, lambda: accepted.append("too far"))
        aws.no_stack()
        with pytest.raises(BadInput, match="workerCount: 0 leaves no node for the add-ons; create the cluster with 1"):
            up_both(Stacks(stack, stack), configured(workerCount=0))
    assert accepted == ["0"]


def test_what_does_not_exist_cannot_be_scaled(stack: Stack) -> None:
    with Script(stack) as aws:
        aws.no_stack()
        assert message(lambda: scale(stack, 2)) == (
            "cluster paddle-cluster does not exist in us-west-2; run `pdj aws up`"
        )
        aws.stack_is("DELETE_COMPLETE")
        assert "does not exist in us-west-2" in message(lambda: scale(stack, 2))


def event(resource: str, status: str, reason: str = "", of_stack: bool = False) -> Event:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    return Event(resource, noon, resource, "AWS::EC2::VPC", status, reason, of_stack)


def test_a_line_of_progress_has_the_reason_once_there_is_one_to_read() -> None:
    assert event("Vpc", "CREATE_FAILED", "no quota").line().endswith(" AWS::EC2::VPC  no quota")
    assert event("Vpc", "CREATE_IN_PROGRESS", "Resource creation Initiated").line().endswith(" AWS::EC2::VPC")
    assert event("Vpc", "CREATE_COMPLETE").line() == (
        "12:00:00  CREATE_COMPLETE            Vpc                    AWS::EC2::VPC"
    )


def test_the_cause_is_the_first_failure_that_is_no_cancellation_and_of_the_stack_if_no_resource_failed() -> None:
    whole = event("paddle-cluster", "CREATE_FAILED", "The following resource(s) failed", of_stack=True)
    cancelled = event("Role", "CREATE_FAILED", "Resource creation Cancelled")
    cause, later = event("Vpc", "CREATE_FAILED", "no quota"), event("Nodes", "DELETE_FAILED", "in use")
    complete = event("Key", "CREATE_COMPLETE")
    assert first_failure([complete, whole, cancelled, cause, later]) == cause
    assert first_failure([complete, whole, cancelled]) == cancelled
    assert first_failure([complete, whole]) == whole
    assert first_failure([complete]) is None
