"""Deleting a cluster that is incomplete, blocked or being changed; with scripted responses."""

from __future__ import annotations

import pytest

from paddlejob.cloud.aws.stack import destroy as removal
from paddlejob.cloud.aws.stack.stack import Stack, Stacks, StackState

from .scripted import START, Script, message

DELETING = ("paddle-cluster", "DELETE_IN_PROGRESS", "User Initiated")


def now(stack: Stack, aws: Script, status: str) -> StackState:
    aws.stack_is(status)
    state = stack.find()
    assert state
    return state


def destroy(stack: Stack, state: StackState) -> bool:
    """Delete a cluster that has no data."""
    return removal.destroy(Stacks(stack, stack), removal.Preflight(state, None, [], []))


def found(stack: Stack, aws: Script, status: str, *holds: str) -> StackState:
    """A stack in this status, of which `destroy` asks what it holds."""
    state = now(stack, aws, status)
    aws.holds(*holds)
    return state


def deleted(aws: Script, before: str) -> None:
    aws.begins_to_delete(before)
    aws.stack_is("DELETE_COMPLETE")
    aws.reports(DELETING)


@pytest.mark.parametrize("status", ["CREATE_COMPLETE", "CREATE_FAILED", "ROLLBACK_COMPLETE", "UPDATE_ROLLBACK_FAILED"])
def test_a_cluster_is_deleted_in_any_status(stack: Stack, status: str) -> None:
    with Script(stack) as aws:
        state = found(stack, aws, status)
        deleted(aws, status)
        assert not destroy(stack, state)


def test_a_deletion_under_way_is_followed_and_not_begun_again(stack: Stack) -> None:
    with Script(stack) as aws:
        state = found(stack, aws, "DELETE_IN_PROGRESS")
        aws.stack_is("DELETE_COMPLETE")
        aws.reports(DELETING)
        assert not destroy(stack, state)


def test_a_creation_under_way_is_waited_for(stack: Stack, progress: list[str]) -> None:
    with Script(stack) as aws:
        state = found(stack, aws, "CREATE_IN_PROGRESS")
        aws.stack_is("CREATE_FAILED")
        aws.reports(START)
        deleted(aws, "CREATE_FAILED")
        destroy(stack, state)
    assert progress[0] == "stack paddle-cluster is CREATE_IN_PROGRESS: waiting for it to finish"


def test_a_deletion_that_is_blocked_says_by_what(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paddlejob.cloud.aws.stack.destroy.blockers", lambda *_, **__: ["load balancer web: delete it"])
    reason = "The vpc 'vpc-1' has dependencies and cannot be deleted."
    with Script(stack) as aws:
        state = found(stack, aws, "CREATE_COMPLETE")
        aws.begins_to_delete("CREATE_COMPLETE", START)
        aws.stack_is("DELETE_FAILED")
        aws.reports(DELETING, ("Vpc", "DELETE_FAILED", reason))
        aws.holds("Vpc")
        text = message(lambda: destroy(stack, state))
    assert reason in text
    assert text.endswith("remove the cause and run `pdj aws destroy` again\n  load balancer web: delete it")


def test_a_session_that_expires_while_waiting_says_how_to_resume(stack: Stack) -> None:
    with Script(stack) as aws:
        state = found(stack, aws, "DELETE_IN_PROGRESS")
        aws.stack_is("DELETE_IN_PROGRESS")
        aws.reports(DELETING)
        aws.rejects("describe_stacks", "ExpiredToken", "The security token included in the request is expired")
        text = message(lambda: destroy(stack, state))
    assert text.startswith("the AWS session has expired; sign in again")
    assert text.endswith("then run the same command to resume")


def test_interfaces_that_nodes_left_are_deleted_between_the_nodes_and_the_cluster(
    stack: Stack, progress: list[str]
) -> None:
    """Not before: a node creates interfaces before it attaches them. Not later: they hold the cluster's group."""
    with Script(stack) as aws:
        state = found(stack, aws, "CREATE_COMPLETE", "Vpc", "Nodes", "Cluster")
        aws.begins_to_delete("CREATE_COMPLETE")
        aws.stack_is("DELETE_IN_PROGRESS")
        aws.reports(DELETING, ("Nodes", "DELETE_IN_PROGRESS", ""))
        aws.stack_is("DELETE_IN_PROGRESS")
        aws.reports(("Nodes", "DELETE_COMPLETE", ""))
        aws.has_left_interface("eni-1")
        aws.stack_is("DELETE_COMPLETE")
        aws.reports(("Cluster", "DELETE_COMPLETE", ""))
        destroy(stack, state)
    assert "network interface eni-1, left by a node, deleted" in progress
