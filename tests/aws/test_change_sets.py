"""A change of a cluster is prepared by CloudFormation, shown, and left behind nowhere if it is not wanted."""

from __future__ import annotations

import pytest
from botocore.stub import Stubber

from paddlejob.cloud.aws.stack.changes import Change, accept, start_change
from paddlejob.cloud.aws.stack.stack import Stack
from paddlejob.errors import BadInput

NODES = {"Action": "Modify", "LogicalResourceId": "Nodes", "ResourceType": "AWS::EKS::Nodegroup"}


def change(properties: str = "", **changes: str) -> Change:
    details = [{"Target": {"Name": name}} for name in properties.split()]
    return Change.parse({"ResourceChange": {**NODES, "Details": [*details, {}], **changes}})


@pytest.mark.parametrize("status", ["CREATE_PENDING", "CREATE_IN_PROGRESS"])
def test_a_change_is_not_executed_before_cloudformation_has_prepared_it(stack: Stack, status: str) -> None:
    slept: list[float] = []
    stack.sleep = slept.append
    with Stubber(stack.aws.client("cloudformation")) as aws:
        aws.add_response("create_change_set", {})
        for _ in range(2):
            aws.add_response("describe_change_set", {"Status": status})
        aws.add_response("describe_change_set", {"Status": "FAILED", "StatusReason": "No updates are to be performed."})
        aws.add_response("delete_change_set", {})
        assert not start_change(stack, accept)
        aws.assert_no_pending_responses()
    assert slept == [stack.poll_interval] * 2


@pytest.mark.parametrize(
    "reason", ["The submitted information didn't contain changes.", "No updates are to be performed."]
)
def test_a_change_set_without_changes_is_deleted_and_is_no_error(stack: Stack, reason: str) -> None:
    with Stubber(stack.aws.client("cloudformation")) as aws:
        aws.add_response("create_change_set", {})
        aws.add_response("describe_change_set", {"Status": "FAILED", "StatusReason": reason})
        aws.add_response("delete_change_set", {})
        assert not start_change(stack, accept)
        aws.assert_no_pending_responses()


def test_a_change_that_the_user_does_not_want_is_deleted_and_not_executed(stack: Stack) -> None:
    shown: list[Change] = []

    def declined(name: str, changes: list[Change]) -> None:
        shown.extend(changes)
        raise BadInput("nothing was changed")

    with Stubber(stack.aws.client("cloudformation")) as aws:
        prepared = {"Status": "CREATE_COMPLETE", "Changes": [{"ResourceChange": NODES}]}
        first = {**prepared, "NextToken": "2"}
        aws.add_response("create_change_set", {})
        for answer in (first, first, {**prepared, "Changes": [{"ResourceChange": {**NODES, "Action": "Remove"}}]}):
            aws.add_response("describe_change_set", answer)
        aws.add_response("delete_change_set", {})
        with pytest.raises(BadInput, match="nothing was changed"):
            start_change(stack, declined)
        aws.assert_no_pending_responses()
    assert [one.action for one in shown] == ["Modify", "Remove"], "the changes of all pages"
    assert not stack.operation_running


@pytest.mark.parametrize("name", ["LaunchTemplate", "ReleaseVersion", "Version"])
def test_what_makes_eks_replace_every_node_is_disruptive(name: str) -> None:
    rolled = change(f"Tags {name}")
    assert rolled.disruptive
    assert rolled.line().endswith(
        f"{', '.join(sorted([name, 'Tags']))} (replaces every node in turn and evicts its pods)"
    )


@pytest.mark.parametrize("changed", [change("ScalingConfig"), change("Tags", Action="Add"), change("", Action="Add")])
def test_more_nodes_and_new_resources_disrupt_nothing(changed: Change) -> None:
    assert (changed.disruptive, changed.effect) == (False, "")
    assert not changed.line().endswith(")")


@pytest.mark.parametrize(
    ("changed", "note"),
    [
        (change("InstanceTypes", Replacement="True"), "(creates new nodes, then deletes the old ones with their pods)"),
        (change("RoleArn", Replacement="True", LogicalResourceId="Cluster"), "(replaced)"),
        (change("", Action="Remove"), "Nodes                  "),
    ],
)
def test_what_is_replaced_or_removed_needs_confirmation(changed: Change, note: str) -> None:
    assert changed.disruptive
    assert changed.line().endswith(note)


def test_the_version_of_another_resource_replaces_no_nodes() -> None:
    assert not change("Version", LogicalResourceId="NetworkPlugin").disruptive
    assert not change("Name", Replacement="Conditional", LogicalResourceId="ApiName").disruptive
