"""Deleting a cluster that is incomplete or blocked never deletes data that was to be kept."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.cloud.aws.stack.destroy import destroy
from paddlejob.cloud.aws.stack.stack import Stack, StackState

from .scripted import Script, message

START = ("paddle-cluster", "CREATE_IN_PROGRESS", "User Initiated")
DELETING = ("paddle-cluster", "DELETE_IN_PROGRESS", "User Initiated")
COMPLETE = ("paddle-cluster", "CREATE_COMPLETE", "")
TEMPLATE = "A:\n  DeletionPolicy: Delete\nB:\n  DeletionPolicy: Delete\n"
KEEPING = TEMPLATE.replace("Delete\n", "Retain\n")


def now(stack: Stack, aws: Script, status: str, **parameters: str) -> StackState:
    aws.stack_is(status, **parameters)
    state = stack.find()
    assert state
    return state


def deleted(aws: Script, before: str = "CREATE_COMPLETE", **request: Any) -> None:
    """The stack is deleted by a request with these parts."""
    aws.takes("update_termination_protection", EnableTerminationProtection=False)
    aws.stack_is(before)
    aws.reports()
    aws.takes("delete_stack", **request)
    aws.stack_is("DELETE_COMPLETE")
    aws.reports(DELETING)


def kept_by_an_update(aws: Script, before: str, after: str = "UPDATE_COMPLETE", template: str = KEEPING) -> None:
    aws.has_template(TEMPLATE if template == KEEPING else KEEPING)
    aws.stack_is(before)
    aws.reports()
    aws.takes("update_stack", TemplateBody=template, DisableRollback=False, Tags=None)
    aws.stack_is("UPDATE_IN_PROGRESS")
    aws.stack_is(after)
    aws.reports(("paddle-cluster", "UPDATE_IN_PROGRESS", "User Initiated"))


def rolled_back_then_deleted(aws: Script, status: str, by: str) -> None:
    """A failed update is undone, its data marked to be kept, and then the stack deleted."""
    aws.stack_is(status)
    aws.reports()
    aws.takes(by)
    aws.stack_is("UPDATE_ROLLBACK_COMPLETE")
    aws.reports(("paddle-cluster", "UPDATE_ROLLBACK_COMPLETE", ""))
    kept_by_an_update(aws, "UPDATE_ROLLBACK_COMPLETE")
    deleted(aws, "UPDATE_COMPLETE")


def test_data_is_kept_by_an_update_of_the_deletion_policies(stack: Stack) -> None:
    with Script(stack) as aws:
        state = now(stack, aws, "CREATE_COMPLETE")
        aws.holds("FileSystem", "Bucket", "Vpc")
        kept_by_an_update(aws, "CREATE_COMPLETE")
        deleted(aws, "UPDATE_COMPLETE")
        assert destroy(stack, state, keep_data=True)


def test_where_the_policies_cannot_be_changed_nothing_is_deleted(stack: Stack) -> None:
    with Script(stack) as aws:
        state = now(stack, aws, "CREATE_COMPLETE")
        aws.holds("FileSystem")
        kept_by_an_update(aws, "CREATE_COMPLETE", after="UPDATE_ROLLBACK_COMPLETE")
        text = message(lambda: destroy(stack, state, keep_data=True))
    assert "the update was rolled back; fix the cause and run the same command again" in text


def test_of_a_half_deleted_stack_what_is_left_of_the_data_is_retained(stack: Stack) -> None:
    with Script(stack) as aws:
        state = now(stack, aws, "DELETE_FAILED")
        aws.holds("FileSystem", "Vpc", gone=("Bucket",))
        deleted(aws, "DELETE_FAILED", RetainResources=["FileSystem"])
        assert destroy(stack, state, keep_data=True)


def test_a_failed_update_of_a_cluster_that_was_complete_is_rolled_back_first(stack: Stack) -> None:
    with Script(stack) as aws:
        state = now(stack, aws, "UPDATE_FAILED")
        aws.holds("FileSystem", "Bucket")
        aws.reports(START, COMPLETE)
        rolled_back_then_deleted(aws, "UPDATE_FAILED", by="rollback_stack")
        assert destroy(stack, state, keep_data=True)


def test_a_failed_update_of_a_cluster_that_never_was_complete_is_not_rolled_back_to_nothing(stack: Stack) -> None:
    """RollbackStack deletes a stack that has no complete state to go back to, and its data with it."""
    with Script(stack) as aws:
        state = now(stack, aws, "UPDATE_FAILED")
        aws.holds("FileSystem")
        aws.reports(START, ("Nodes", "CREATE_FAILED", "no capacity"), ("paddle-cluster", "CREATE_FAILED", ""))
        text = message(lambda: destroy(stack, state, keep_data=True))
    assert "is UPDATE_FAILED, and CloudFormation cannot keep data in this status; run `pdj aws up`" in text


@pytest.mark.parametrize("status", ["CREATE_FAILED", "ROLLBACK_FAILED"])
def test_data_of_a_cluster_that_failed_to_be_made_is_not_deleted_where_it_was_to_be_kept(
    stack: Stack, status: str
) -> None:
    with Script(stack) as aws:
        state = now(stack, aws, status)
        aws.holds("Bucket")
        assert f"is {status}, and CloudFormation cannot keep data" in message(lambda: destroy(stack, state, True))


def test_where_there_is_no_data_there_is_nothing_to_keep(stack: Stack) -> None:
    with Script(stack) as aws:
        state = now(stack, aws, "ROLLBACK_COMPLETE")
        aws.holds("Vpc", gone=("FileSystem", "Bucket"))
        deleted(aws, "ROLLBACK_COMPLETE")
        destroy(stack, state, keep_data=True)


def test_an_update_whose_rollback_failed_is_finished_before_data_is_kept(stack: Stack) -> None:
    with Script(stack) as aws:
        state = now(stack, aws, "UPDATE_ROLLBACK_FAILED")
        aws.holds("FileSystem")
        rolled_back_then_deleted(aws, "UPDATE_ROLLBACK_FAILED", by="continue_update_rollback")
        assert destroy(stack, state, keep_data=True)


def test_run_again_after_the_policies_were_changed_it_continues_with_the_deletion(stack: Stack) -> None:
    with Script(stack) as aws:
        state = now(stack, aws, "UPDATE_COMPLETE", KeepData="yes")
        aws.holds("FileSystem")
        deleted(aws, "UPDATE_COMPLETE")
        assert destroy(stack, state, keep_data=True)


def test_who_changes_the_mind_after_an_interrupted_keep_data_does_not_pay_for_what_stays(stack: Stack) -> None:
    with Script(stack) as aws:
        state = now(stack, aws, "UPDATE_COMPLETE", KeepData="yes")
        kept_by_an_update(aws, "UPDATE_COMPLETE", template=TEMPLATE)
        aws.holds("FileSystem")
        deleted(aws, "UPDATE_COMPLETE")
        assert not destroy(stack, state)


def test_a_bucket_that_is_kept_in_any_case_is_not_emptied_and_is_reported(stack: Stack) -> None:
    with Script(stack) as aws:
        state = now(stack, aws, "DELETE_FAILED", KeepData="yes")
        deleted(aws, "DELETE_FAILED")
        assert destroy(stack, state)


def test_a_deletion_under_way_is_followed_and_not_begun_again(stack: Stack) -> None:
    with Script(stack) as aws:
        state = now(stack, aws, "DELETE_IN_PROGRESS")
        aws.stack_is("DELETE_COMPLETE")
        aws.reports(DELETING)
        assert not destroy(stack, state)
        aws.stack_is("DELETE_IN_PROGRESS")
        late = message(lambda: destroy(stack, stack.find() or state, keep_data=True))
    assert "an earlier run is deleting stack paddle-cluster together with its data" in late


def test_a_creation_under_way_is_waited_for(stack: Stack, progress: list[str]) -> None:
    with Script(stack) as aws:
        state = now(stack, aws, "CREATE_IN_PROGRESS")
        aws.stack_is("CREATE_FAILED")
        aws.reports(START)
        aws.holds("Vpc")
        deleted(aws, "CREATE_FAILED")
        destroy(stack, state)
    assert progress[0] == "stack paddle-cluster is CREATE_IN_PROGRESS: waiting for it to finish"


def test_a_deletion_that_is_blocked_says_by_what(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paddlejob.cloud.aws.stack.destroy.blockers", lambda *_: ["load balancer web: delete it"])
    reason = "The vpc 'vpc-1' has dependencies and cannot be deleted."
    with Script(stack) as aws:
        state = now(stack, aws, "CREATE_COMPLETE")
        aws.holds("Vpc")
        aws.takes("update_termination_protection", EnableTerminationProtection=False)
        aws.stack_is("CREATE_COMPLETE")
        aws.reports(START)
        aws.takes("delete_stack")
        aws.stack_is("DELETE_FAILED")
        aws.reports(DELETING, ("Vpc", "DELETE_FAILED", reason))
        aws.holds("Vpc")
        text = message(lambda: destroy(stack, state))
    assert reason in text
    assert text.endswith("remove the cause and run `pdj aws destroy` again\n  load balancer web: delete it")


def test_a_session_that_expires_while_waiting_says_how_to_resume(stack: Stack) -> None:
    with Script(stack) as aws:
        state = now(stack, aws, "DELETE_IN_PROGRESS")
        aws.stack_is("DELETE_IN_PROGRESS")
        aws.reports(DELETING)
        aws.rejects("describe_stacks", "ExpiredToken", "The security token included in the request is expired")
        text = message(lambda: destroy(stack, state))
    assert text.startswith("the AWS session has expired; sign in again")
    assert text.endswith("then run the same command to resume")
