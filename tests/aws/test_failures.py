"""Every failure of AWS ends in a message that says what to do, and `up` can be run again."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import UnauthorizedSSOTokenError
from botocore.stub import Stubber
from typer.testing import CliRunner

from paddlejob.cli.aws.app import app
from paddlejob.cloud.aws.access.tokens import token
from paddlejob.cloud.aws.config.cluster import ClusterConfig
from paddlejob.cloud.aws.errors import translate_errors
from paddlejob.cloud.aws.session import Aws
from paddlejob.cloud.aws.stack.stack import Stack

from .scripted import START, Script, message, up

Configured = Callable[..., ClusterConfig]


def test_no_credentials(stack: Stack, configured: Configured, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name)
    assert message(lambda: up(stack, configured())).startswith("no AWS credentials")
    assert "run `aws configure`" in message(lambda: token(Aws("us-west-2"), "paddle-cluster"))


def test_a_profile_that_does_not_exist() -> None:
    text = message(lambda: Aws("us-west-2", profile="work").account())
    assert "work" in text
    assert "aws configure list-profiles" in text


def test_keys_in_the_environment_win_over_a_profile_of_the_environment_as_with_the_aws_cli(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    credentials = tmp_path / "credentials"
    credentials.write_text("[work]\naws_access_key_id = of-the-profile\naws_secret_access_key = x\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(credentials))
    monkeypatch.setenv("AWS_PROFILE", "work")
    options = [Aws("us-west-2"), Aws("us-west-2", profile="work")]
    assert [aws.session().get_credentials().access_key for aws in options] == ["testing", "of-the-profile"]
    assert "AWS_PROFILE" not in CliRunner().invoke(app, ["up", "--help"]).output


@pytest.mark.parametrize("code", ["ExpiredToken", "ExpiredTokenException", "RequestExpired"])
def test_an_expired_token(stack: Stack, configured: Configured, code: str) -> None:
    with Script(stack) as aws:
        aws.rejects("describe_stacks", code, "The security token included in the request is expired")
        text = message(lambda: up(stack, configured()))
    assert text.startswith("the AWS session has expired; sign in again")
    assert text.endswith("run the same command to resume")


def test_wrong_credentials(stack: Stack, configured: Configured) -> None:
    with Script(stack) as aws:
        aws.rejects("describe_stacks", "InvalidClientTokenId", "The security token is invalid.")
        assert "AWS does not accept these credentials" in message(lambda: up(stack, configured()))


def test_missing_rights_point_to_policy(stack: Stack, configured: Configured) -> None:
    with Script(stack) as aws:
        aws.rejects("describe_stacks", "AccessDenied", "User me is not authorized")
        text = message(lambda: up(stack, configured()))
    assert "cloudformation:describe_stacks" in text
    assert "`pdj aws policy` prints the required permissions" in text


def test_a_quota_of_stacks_is_reached(stack: Stack, configured: Configured) -> None:
    with Script(stack) as aws:
        aws.no_stack()
        aws.knows_zones_and_caller()
        aws.no_stack()
        aws.rejects("create_stack", "LimitExceededException", "Limit for stack has been exceeded")
        text = message(lambda: up(stack, configured()))
    assert text.startswith("an AWS quota is exhausted")
    assert "Service Quotas" in text


def test_the_first_failure_is_reported_and_not_what_it_cancelled(
    stack: Stack, configured: Configured, progress: list[str]
) -> None:
    quota = "The maximum number of VPCs has been reached. (Service: Ec2, Status Code: 400)"
    with Script(stack) as aws:
        aws.no_stack()
        aws.knows_zones_and_caller()
        aws.no_stack()
        aws.takes("create_stack", DisableRollback=True, EnableTerminationProtection=True)
        aws.stack_is("CREATE_IN_PROGRESS")
        aws.stack_is("CREATE_IN_PROGRESS")
        aws.reports(START, ("Vpc", "CREATE_IN_PROGRESS", ""))
        aws.stack_is("CREATE_FAILED")
        aws.reports(
            ("Vpc", "CREATE_FAILED", quota),
            ("ClusterRole", "CREATE_FAILED", "Resource creation cancelled"),
            ("paddle-cluster", "CREATE_FAILED", "The following resource(s) failed to create: [Vpc, ClusterRole]."),
        )
        text = message(lambda: up(stack, configured()))
    assert text.startswith(
        f"stack paddle-cluster is CREATE_FAILED: Vpc (AWS::X::Vpc): {quota}; request an increase under"
    )
    assert "run the same command again to resume" in text
    assert [line.split()[1:3] for line in progress] == [
        ["CREATE_IN_PROGRESS", "paddle-cluster"],
        ["CREATE_IN_PROGRESS", "Vpc"],
        ["CREATE_FAILED", "Vpc"],
        ["CREATE_FAILED", "ClusterRole"],
        ["CREATE_FAILED", "paddle-cluster"],
    ]


def test_the_name_is_taken_by_another_stack(stack: Stack, configured: Configured) -> None:
    with Script(stack) as aws:
        aws.stack_is("CREATE_COMPLETE", tags=False)
        text = message(lambda: up(stack, configured()))
    assert (
        "a CloudFormation stack paddle-cluster exists that paddlejob did not create; choose another clusterName" in text
    )


def test_the_name_is_taken_between_looking_and_creating(stack: Stack, configured: Configured) -> None:
    with Script(stack) as aws:
        aws.no_stack()
        aws.knows_zones_and_caller()
        aws.no_stack()
        aws.rejects("create_stack", "AlreadyExistsException", "Stack [paddle-cluster] already exists")
        assert "choose another clusterName" in message(lambda: up(stack, configured()))


def test_the_name_is_taken_by_an_eks_cluster(stack: Stack, configured: Configured) -> None:
    with Script(stack) as aws:
        aws.begins_to_create()
        aws.stack_is("CREATE_IN_PROGRESS")
        aws.stack_is("CREATE_FAILED")
        aws.reports(START, ("Cluster", "CREATE_FAILED", "Cluster already exists with name: paddle-cluster"))
        assert "choose another clusterName, or delete the resource" in message(lambda: up(stack, configured()))


def test_an_sso_session_that_expires_is_reported_in_the_same_way() -> None:
    def expired() -> None:
        with translate_errors("cloudformation:describe_stacks"):
            raise UnauthorizedSSOTokenError

    assert "run `aws sso login`, then the same command" in message(expired)


def test_a_boto3_that_is_too_old_is_reported() -> None:
    text = message(lambda: Aws("us-west-2").call("eks", "describe_clouds"))
    assert text == "boto3 is too old for eks:describe_clouds; run `pip install --upgrade 'paddlejob[aws]'`"


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


def test_the_root_user_is_rejected_because_eks_gives_it_no_access() -> None:
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
    assert message(lambda: Aws("us-west-2").account()).endswith("run `pip install 'paddlejob[aws]'`")
