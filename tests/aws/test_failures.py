"""Everything that goes wrong with AWS ends in a sentence that says what to do, and `up` can be run again."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from botocore.stub import Stubber

from paddlejob.cloud.aws.config import ClusterConfig
from paddlejob.cloud.aws.destroy import destroy
from paddlejob.cloud.aws.session import Aws
from paddlejob.cloud.aws.stack import Stack
from paddlejob.cloud.aws.tokens import token
from paddlejob.cloud.aws.up import up
from paddlejob.errors import NotPossible

from .scripted import Script

Configured = Callable[..., ClusterConfig]
START = ("paddle-cluster", "CREATE_IN_PROGRESS", "User Initiated")


def message(run: Callable[[], Any]) -> str:
    with pytest.raises(NotPossible) as refused:
        run()
    return str(refused.value)


def test_no_credentials(stack: Stack, configured: Configured, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name)
    assert message(lambda: up(stack, configured())).startswith("no AWS credentials")
    assert "run `aws configure`" in message(lambda: token(Aws("us-west-2"), "paddle-cluster"))


def test_a_profile_that_does_not_exist() -> None:
    said = message(lambda: Aws("us-west-2", profile="work").account())
    assert "work" in said
    assert "aws configure list-profiles" in said


@pytest.mark.parametrize("code", ["ExpiredToken", "ExpiredTokenException", "RequestExpired"])
def test_an_expired_token(stack: Stack, configured: Configured, code: str) -> None:
    with Script(stack) as aws:
        aws.refuses("describe_stacks", code, "The security token included in the request is expired")
        said = message(lambda: up(stack, configured()))
    assert said.startswith("the AWS session has expired; sign in again")
    assert "goes on where it was" in said


def test_wrong_credentials(stack: Stack, configured: Configured) -> None:
    with Script(stack) as aws:
        aws.refuses("describe_stacks", "InvalidClientTokenId", "The security token is invalid.")
        assert "AWS does not know these credentials" in message(lambda: up(stack, configured()))


def test_missing_rights_point_to_policy(stack: Stack, configured: Configured) -> None:
    with Script(stack) as aws:
        aws.refuses("describe_stacks", "AccessDenied", "User me is not authorized")
        said = message(lambda: up(stack, configured()))
    assert "cloudformation:describe_stacks" in said
    assert "`pdj aws policy` prints the rights" in said


def test_a_quota_of_stacks_is_reached(stack: Stack, configured: Configured) -> None:
    with Script(stack) as aws:
        aws.no_stack()
        aws.knows_zones_and_caller()
        aws.no_stack()
        aws.refuses("create_stack", "LimitExceededException", "Limit for stack has been exceeded")
        said = message(lambda: up(stack, configured()))
    assert said.startswith("a quota of the AWS account is reached")
    assert "Service Quotas" in said


def test_the_first_failure_is_told_and_not_what_it_cancelled(
    stack: Stack, configured: Configured, told: list[str]
) -> None:
    quota = "The maximum number of VPCs has been reached. (Service: Ec2, Status Code: 400)"
    with Script(stack) as aws:
        aws.no_stack()
        aws.knows_zones_and_caller()
        aws.no_stack()
        aws.takes("create_stack", DisableRollback=True, EnableTerminationProtection=True)
        aws.stack_is("CREATE_IN_PROGRESS")
        aws.stack_is("CREATE_IN_PROGRESS")
        aws.tells(START, ("Vpc", "CREATE_IN_PROGRESS", ""))
        aws.stack_is("CREATE_FAILED")
        aws.tells(
            ("Vpc", "CREATE_FAILED", quota),
            ("ClusterRole", "CREATE_FAILED", "Resource creation cancelled"),
            ("paddle-cluster", "CREATE_FAILED", "The following resource(s) failed to create: [Vpc, ClusterRole]."),
        )
        said = message(lambda: up(stack, configured()))
    assert said.startswith(f"stack paddle-cluster is CREATE_FAILED: Vpc (AWS::X::Vpc): {quota}; ask for more under")
    assert "run `pdj aws up` again: it goes on" in said
    assert [line.split()[1:3] for line in told] == [
        ["CREATE_IN_PROGRESS", "paddle-cluster"],
        ["CREATE_IN_PROGRESS", "Vpc"],
        ["CREATE_FAILED", "Vpc"],
        ["CREATE_FAILED", "ClusterRole"],
        ["CREATE_FAILED", "paddle-cluster"],
    ]


def test_after_a_failure_up_goes_on_and_does_not_tell_the_old_failure_again(
    stack: Stack, configured: Configured, told: list[str]
) -> None:
    with Script(stack) as aws:
        aws.stack_is("CREATE_FAILED")
        aws.knows_zones_and_caller()
        aws.stack_is("CREATE_FAILED")
        aws.tells(START, ("Nodes", "CREATE_FAILED", "no capacity"))
        aws.takes("update_stack", DisableRollback=True)
        aws.stack_is("UPDATE_IN_PROGRESS")
        aws.stack_is("UPDATE_IN_PROGRESS")
        aws.tells()
        aws.stack_is("UPDATE_COMPLETE")
        aws.tells(("paddle-cluster", "UPDATE_IN_PROGRESS", "User Initiated"), ("Nodes", "CREATE_COMPLETE", ""))
        state, changed = up(stack, configured())
    assert (state.status, changed) == ("UPDATE_COMPLETE", True)
    assert not any("no capacity" in line for line in told)


def test_the_name_is_taken_by_another_stack(stack: Stack, configured: Configured) -> None:
    with Script(stack) as aws:
        aws.stack_is("CREATE_COMPLETE", tags=False)
        said = message(lambda: up(stack, configured()))
    assert "taken by a CloudFormation stack that paddlejob did not make; choose another clusterName" in said


def test_the_name_is_taken_between_looking_and_creating(stack: Stack, configured: Configured) -> None:
    with Script(stack) as aws:
        aws.no_stack()
        aws.knows_zones_and_caller()
        aws.no_stack()
        aws.refuses("create_stack", "AlreadyExistsException", "Stack [paddle-cluster] already exists")
        assert "choose another clusterName" in message(lambda: up(stack, configured()))


def test_the_name_is_taken_by_an_eks_cluster(stack: Stack, configured: Configured) -> None:
    with Script(stack) as aws:
        aws.no_stack()
        aws.knows_zones_and_caller()
        aws.no_stack()
        aws.takes("create_stack")
        aws.stack_is("CREATE_IN_PROGRESS")
        aws.stack_is("CREATE_FAILED")
        aws.tells(START, ("Cluster", "CREATE_FAILED", "Cluster already exists with name: paddle-cluster"))
        assert "choose another clusterName, or remove it" in message(lambda: up(stack, configured()))


def test_a_stack_that_was_rolled_back_is_removed_and_made_anew(
    stack: Stack, configured: Configured, told: list[str]
) -> None:
    with Script(stack) as aws:
        aws.stack_is("ROLLBACK_COMPLETE")
        aws.takes("update_termination_protection", EnableTerminationProtection=False)
        aws.stack_is("ROLLBACK_COMPLETE")
        aws.tells(START, ("paddle-cluster", "ROLLBACK_COMPLETE", ""))
        aws.takes("delete_stack")
        aws.stack_is("DELETE_COMPLETE")
        aws.tells(("paddle-cluster", "DELETE_IN_PROGRESS", "User Initiated"))
        aws.knows_zones_and_caller()
        aws.no_stack()
        aws.takes("create_stack")
        aws.stack_is("CREATE_IN_PROGRESS")
        aws.stack_is("CREATE_COMPLETE")
        aws.tells(START)
        state, _ = up(stack, configured())
    assert state.status == "CREATE_COMPLETE"
    assert "holds nothing: removing it first" in told[0]


def test_rollback_is_asked_for_and_its_reason_told(stack: Stack, configured: Configured) -> None:
    with Script(stack) as aws:
        aws.no_stack()
        aws.knows_zones_and_caller()
        aws.no_stack()
        aws.takes("create_stack", DisableRollback=False)
        aws.stack_is("CREATE_IN_PROGRESS")
        aws.stack_is("ROLLBACK_COMPLETE")
        aws.tells(
            START,
            ("Nodes", "CREATE_FAILED", "Could not launch On-Demand Instances. InsufficientInstanceCapacity"),
            ("paddle-cluster", "ROLLBACK_IN_PROGRESS", "The following resource(s) failed to create: [Nodes]."),
            ("Vpc", "DELETE_COMPLETE", ""),
        )
        said = message(lambda: up(stack, configured(), rollback=True))
    assert "Nodes (AWS::X::Nodes): Could not launch" in said
    assert "choose another workerInstanceType or zone" in said
    assert "what was made stays" not in said


def test_an_update_whose_rollback_failed_is_finished_first(stack: Stack, configured: Configured) -> None:
    with Script(stack) as aws:
        aws.stack_is("UPDATE_ROLLBACK_FAILED")
        aws.stack_is("UPDATE_ROLLBACK_FAILED")
        aws.tells(START)
        aws.takes("continue_update_rollback")
        aws.stack_is("UPDATE_ROLLBACK_COMPLETE")
        aws.tells(("paddle-cluster", "UPDATE_ROLLBACK_COMPLETE", ""))
        aws.knows_zones_and_caller()
        aws.stack_is("UPDATE_ROLLBACK_COMPLETE")
        aws.tells()
        aws.refuses("update_stack", "ValidationError", "No updates are to be performed.")
        _, changed = up(stack, configured())
    assert not changed


def test_a_half_deleted_stack_is_not_built_upon(stack: Stack, configured: Configured) -> None:
    with Script(stack) as aws:
        aws.stack_is("DELETE_FAILED")
        assert "run `pdj aws destroy` again, then `pdj aws up`" in message(lambda: up(stack, configured()))


def test_throttling_while_following_is_waited_out(stack: Stack, configured: Configured, told: list[str]) -> None:
    with Script(stack) as aws:
        aws.no_stack()
        aws.knows_zones_and_caller()
        aws.no_stack()
        aws.takes("create_stack")
        aws.stack_is("CREATE_IN_PROGRESS")
        aws.refuses("describe_stacks", "Throttling", "Rate exceeded")
        aws.refuses("describe_stacks", "Throttling", "Rate exceeded")
        aws.stack_is("CREATE_COMPLETE")
        aws.tells(START)
        state, _ = up(stack, configured())
    assert state.status == "CREATE_COMPLETE"
    assert sum("asks to slow down" in line for line in told) == 1


def test_throttling_elsewhere_is_an_error_that_says_to_try_again(stack: Stack, configured: Configured) -> None:
    with Script(stack) as aws:
        aws.refuses("describe_stacks", "Throttling", "Rate exceeded")
        assert "run the same command again in a minute" in message(lambda: up(stack, configured()))


def test_the_network_is_gone_in_the_middle_and_the_next_up_goes_on(
    stack: Stack, configured: Configured, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Script(stack) as aws:
        aws.no_stack()
        aws.knows_zones_and_caller()
        aws.no_stack()
        aws.takes("create_stack")
        aws.stack_is("CREATE_IN_PROGRESS")
        with monkeypatch.context() as patch:
            cut_after(patch, stack, "describe_stack_events")
            said = message(lambda: up(stack, configured()))
    assert "CloudFormation goes on with stack paddle-cluster: run the same command again to follow it" in said
    assert "no answer from AWS" in told[0]

    again = Stack(Aws("us-west-2"), "paddle-cluster", told.append, sleep=lambda _: None)
    with Script(again) as aws:
        aws.stack_is("CREATE_IN_PROGRESS")
        aws.stack_is("CREATE_IN_PROGRESS")
        aws.tells(START, ("Cluster", "CREATE_IN_PROGRESS", ""))
        aws.stack_is("CREATE_COMPLETE")
        aws.tells(("Cluster", "CREATE_COMPLETE", ""), ("paddle-cluster", "CREATE_COMPLETE", ""))
        aws.knows_zones_and_caller()
        aws.stack_is("CREATE_COMPLETE")
        aws.tells()
        aws.refuses("update_stack", "ValidationError", "No updates are to be performed.")
        state, _ = up(again, configured())
    assert state.status == "CREATE_COMPLETE"
    assert any("CREATE_COMPLETE" in line and "Cluster" in line for line in told)


def cut_after(patch: pytest.MonkeyPatch, stack: Stack, operation: str) -> None:
    """From this operation on, no request reaches AWS."""
    client = stack.aws.client("cloudformation")
    patch.setattr(client, operation, unreachable)
    describe = client.describe_stacks
    calls = iter([describe, describe, describe])
    patch.setattr(client, "describe_stacks", lambda **request: next(calls, unreachable)(**request))


def unreachable(**_: object) -> Any:
    raise EndpointConnectionError(endpoint_url="https://cloudformation.us-west-2.amazonaws.com/")


def test_a_deletion_that_is_blocked_says_by_what(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paddlejob.cloud.aws.destroy.blockers", lambda aws, state: ["load balancer web: delete it"])
    reason = "The vpc 'vpc-1' has dependencies and cannot be deleted."
    with Script(stack) as aws:
        aws.stack_is("CREATE_COMPLETE")
        state = stack.find()
        assert state
        aws.takes("update_termination_protection", EnableTerminationProtection=False)
        aws.stack_is("CREATE_COMPLETE")
        aws.tells(START)
        aws.takes("delete_stack")
        aws.stack_is("DELETE_FAILED")
        aws.tells(("paddle-cluster", "DELETE_IN_PROGRESS", "User Initiated"), ("Vpc", "DELETE_FAILED", reason))
        said = message(lambda: destroy(stack, state))
    assert reason in said
    assert said.endswith("run `pdj aws destroy` again afterwards\n  load balancer web: delete it")


def test_a_role_is_the_administrator_with_its_path() -> None:
    aws = Aws("us-west-2")
    session = "arn:aws:sts::123456789012:assumed-role/AWSReservedSSO_Admin_1/me"
    path = "arn:aws:iam::123456789012:role/aws-reserved/sso.amazonaws.com/AWSReservedSSO_Admin_1"
    with Stubber(aws.client("sts")) as sts, Stubber(aws.client("iam")) as iam:
        sts.add_response("get_caller_identity", {"Arn": session})
        iam.add_response("get_role", {"Role": role(path)}, {"RoleName": "AWSReservedSSO_Admin_1"})
        assert aws.caller_arn() == path
        sts.add_response("get_caller_identity", {"Arn": session})
        iam.add_client_error("get_role", "AccessDenied", "no")
        assert aws.caller_arn() == "arn:aws:iam::123456789012:role/AWSReservedSSO_Admin_1"


def test_the_root_user_is_told_that_eks_gives_it_no_access() -> None:
    aws = Aws("us-west-2")
    with Stubber(aws.client("sts")) as sts:
        sts.add_response("get_caller_identity", {"Arn": "arn:aws:iam::123456789012:root"})
        assert "use an IAM user or role" in message(aws.caller_arn)


def role(arn: str) -> dict[str, Any]:
    from datetime import UTC, datetime

    return {"Path": "/", "RoleName": "r", "RoleId": "A" * 16, "Arn": arn, "CreateDate": datetime.now(UTC)}


def test_without_boto3_the_command_to_install_it_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    plainly = builtins.__import__

    def without_boto3(name: str, *rest: Any) -> Any:
        if name.startswith(("boto3", "botocore")):
            raise ImportError(name)
        return plainly(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_boto3)
    assert message(lambda: Aws("us-west-2").account()).endswith("pip install 'paddlejob[aws]'")
