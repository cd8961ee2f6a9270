"""Every failure of AWS ends in a message that says what to do, and `up` can be run again."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest
from botocore.stub import Stubber
from typer.testing import CliRunner

from paddlejob.cli.aws.app import app
from paddlejob.cloud.aws.access.tokens import token
from paddlejob.cloud.aws.session import Aws
from paddlejob.cloud.aws.stack.stack import Stack

from .kinds import Configured
from .scripted import START, Script, message, up


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


@pytest.mark.parametrize(
    ("code", "begins", "ends"),
    [
        ("ExpiredToken", "the AWS session has expired; sign in again", "run the same command to resume"),
        ("InvalidClientTokenId", "AWS does not accept these credentials", ""),
        (
            "AccessDenied",
            "AWS denied cloudformation:describe_stacks",
            "`pdj aws policy` prints the required permissions",
        ),
        ("Throttling", "AWS throttled cloudformation:describe_stacks", "run the same command again in a minute"),
    ],
)
def test_a_rejection_says_what_to_do(stack: Stack, configured: Configured, code: str, begins: str, ends: str) -> None:
    with Script(stack) as aws:
        aws.rejects("describe_stacks", code, "so it is")
        text = message(lambda: up(stack, configured()))
    assert text.startswith(begins)
    assert text.endswith(ends)


@pytest.mark.parametrize(
    ("code", "begins", "remedy"),
    [
        ("LimitExceededException", "an AWS quota is exhausted", "Service Quotas"),
        ("AlreadyExistsException", "", "choose another clusterName"),  # it was not there when `up` looked
    ],
)
def test_a_stack_that_cannot_be_created(
    stack: Stack, configured: Configured, code: str, begins: str, remedy: str
) -> None:
    with Script(stack) as aws:
        aws.no_stack()
        aws.knows_zones_and_caller()
        aws.no_stack()
        aws.rejects("create_stack", code, "so it is")
        text = message(lambda: up(stack, configured()))
    assert text.startswith(begins)
    assert remedy in text


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


def test_the_name_is_taken_by_an_eks_cluster(stack: Stack, configured: Configured) -> None:
    with Script(stack) as aws:
        aws.begins_to_create()
        aws.stack_is("CREATE_IN_PROGRESS")
        aws.stack_is("CREATE_FAILED")
        aws.reports(START, ("Cluster", "CREATE_FAILED", "Cluster already exists with name: paddle-cluster"))
        assert "choose another clusterName, or delete the resource" in message(lambda: up(stack, configured()))


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
