"""Each service of AWS spells a failure in its own way; a user reads the same remedy for all of them."""

from __future__ import annotations

from typing import Any

import pytest
from botocore import exceptions as boto
from botocore.awsrequest import AWSResponse
from botocore.stub import Stubber

from paddlejob.cloud.aws.errors import AwsError, AwsUnavailable, translate_errors
from paddlejob.cloud.aws.session import Aws
from paddlejob.cloud.aws.stack.events import advice
from paddlejob.errors import NotPossible


def said(error: Exception) -> NotPossible:
    """What becomes of an exception of botocore."""
    with pytest.raises(NotPossible) as rejected, translate_errors("eks:describe_cluster"):
        raise error
    return rejected.value


def rejection(code: str, message: str = "so it is") -> boto.ClientError:
    return boto.ClientError({"Error": {"Code": code, "Message": message}}, "DescribeCluster")


@pytest.mark.parametrize(
    ("codes", "remedy"),
    [
        # S3 and STS, EKS, EC2, tokens of temporary sessions in S3
        ("ExpiredToken ExpiredTokenException RequestExpired TokenRefreshRequired", "sign in again"),
        # STS and IAM, EKS, EC2, all services
        (
            "InvalidClientTokenId UnrecognizedClientException AuthFailure SignatureDoesNotMatch",
            "check `aws configure list` and AWS_PROFILE",
        ),
        # IAM and S3, EKS and KMS, EC2, HEAD requests of S3
        (
            "AccessDenied AccessDeniedException UnauthorizedOperation Forbidden 403",
            "so it is; `pdj aws policy` prints the required permissions",
        ),
        ("AlreadyExistsException AlreadyExists", "(eks:describe_cluster: so it is); choose another clusterName"),
        # CloudFormation and IAM, EC2, EKS
        (
            "LimitExceeded LimitExceededException VcpuLimitExceeded ServiceQuotaExceededException",
            "(eks:describe_cluster: so it is); request an increase under Service Quotas",
        ),
        ("InvalidParameterException", "AWS rejected eks:describe_cluster: so it is (InvalidParameterException)"),
    ],
)
def test_a_rejection_says_what_to_do_whatever_the_service_calls_it(codes: str, remedy: str) -> None:
    for code in codes.split():
        error = said(rejection(code))
        assert remedy in str(error)
        assert isinstance(error, AwsError)
        assert (error.code, error.message) == (code, "so it is")


@pytest.mark.parametrize(
    "code",
    [
        *("Throttling", "ThrottlingException", "ThrottledException", "RequestThrottled", "RequestLimitExceeded"),
        *("TooManyRequestsException", "SlowDown", "PriorRequestNotComplete"),
    ],
)
def test_a_throttled_request_may_be_sent_again(code: str) -> None:
    error = said(rejection(code))
    assert isinstance(error, AwsUnavailable), "who follows a stack waits and asks again"
    assert str(error) == f"AWS throttled eks:describe_cluster ({code}); run the same command again in a minute"


def test_a_rejection_without_a_message_still_says_something() -> None:
    assert "DescribeCluster" in str(said(rejection("Whatever", "")))


@pytest.mark.parametrize(
    ("error", "kind", "remedy"),
    [
        (boto.NoCredentialsError(), NotPossible, "run `aws configure`"),
        (boto.PartialCredentialsError(provider="env", cred_var="key"), NotPossible, "run `aws configure`"),
        (boto.CredentialRetrievalError(provider="sso", error_msg="x"), NotPossible, "run `aws configure`"),
        (boto.UnauthorizedSSOTokenError(), NotPossible, "run `aws sso login`"),
        (boto.TokenRetrievalError(provider="sso", error_msg="x"), NotPossible, "run `aws sso login`"),
        (boto.ProfileNotFound(profile="work"), NotPossible, "aws configure list-profiles"),
        (boto.EndpointConnectionError(endpoint_url="https://x"), AwsUnavailable, "check the network and the region"),
        (boto.ReadTimeoutError(endpoint_url="https://x"), AwsUnavailable, "check the network and the region"),
        (boto.ConnectionClosedError(endpoint_url="https://x"), AwsUnavailable, "check the network and the region"),
        (boto.ParamValidationError(report="bad name"), NotPossible, "AWS eks:describe_cluster: Parameter validation"),
        (boto.InvalidConfigError(error_msg="odd."), NotPossible, "odd; check --profile, the AWS configuration file"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_a_request_that_is_never_answered_says_whether_to_sign_in_or_to_check_the_network(
    error: Exception, kind: type[NotPossible], remedy: str
) -> None:
    found = said(error)
    assert type(found) is kind
    assert remedy in str(found)


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ("The maximum number of VPCs has been reached. (Service: Ec2, Status Code: 400)", "Service Quotas"),
        ("You have requested more vCPU capacity than your current vCPU limit of 0 allows", "Service Quotas"),
        ("Resource handler returned message: AddressLimitExceeded", "Service Quotas"),
        ("Account has exceeded its quota of clusters", "Service Quotas"),
        ("Could not launch Spot Instances. MaxSpotInstanceCountExceeded - Max spot instance count", "Service Quotas"),
        ("Replacement type updates not supported on stack with disable-rollback.", "restore workerInstanceType"),
        ("paddle-cluster already exists in stack arn:aws:cloudformation:x", "choose another clusterName"),
        ("User: arn:aws:iam::1:user/me is not authorized to perform: eks:CreateCluster", "`pdj aws policy` prints"),
        ("Resource handler returned message: AccessDenied", "`pdj aws policy` prints"),
        ("Access Denied (Service: S3, Status Code: 403)", "`pdj aws policy` prints"),
        ("InsufficientInstanceCapacity - We currently do not have sufficient capacity", "no capacity for this"),
        ("There is insufficient capacity for p5.48xlarge", "no capacity for this"),
        ("Could not launch Spot Instances", "no capacity for this"),
        ("Cannot create cluster because us-east-1e, the targeted Availability Zone, is full", "availabilityZones or"),
        ("UnsupportedAvailabilityZoneException", "availabilityZones or"),
        ("Network vpc-1 has a dependency", "`pdj aws destroy` lists such resources"),
        ("The vpc 'vpc-1' has dependencies and cannot be deleted.", "`pdj aws destroy` lists such resources"),
        ("The bucket you tried to delete is not empty", "run `pdj aws destroy` again"),
    ],
)
def test_the_reason_of_a_failed_resource_comes_with_the_remedy(reason: str, remedy: str) -> None:
    assert remedy in advice(reason)


def test_a_reason_that_is_not_known_gets_no_wrong_advice() -> None:
    assert advice("Internal failure") == ""


def test_a_request_that_aws_throttles_seven_times_in_a_row_succeeds_without_the_users_help(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """botocore alone would give up after five attempts."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    aws, sent = Aws("us-west-2"), []

    def answered(**_: Any) -> AWSResponse:
        sent.append(1)
        body = b'{"cluster": {"name": "paddle-cluster"}}' if len(sent) > 7 else b"{}"
        response = AWSResponse("", 200 if len(sent) > 7 else 503, {}, None)
        response._content = body
        return response

    aws.client("eks").meta.events.register("before-send.eks.DescribeCluster", answered)
    assert aws.call("eks", "describe_cluster", name="paddle-cluster")["cluster"] == {"name": "paddle-cluster"}
    assert len(sent) == 8


def test_a_list_without_items_is_empty_whether_aws_sends_an_empty_list_or_none() -> None:
    aws = Aws("us-west-2")
    with Stubber(aws.client("ec2")) as ec2:
        for answer in ({}, {"Reservations": []}):
            ec2.add_response("describe_instances", answer)
            assert aws.items("ec2", "describe_instances", "Reservations") == []


def test_all_pages_of_a_list_are_read_and_only_an_absence_is_an_empty_list() -> None:
    aws = Aws("us-west-2")
    with Stubber(aws.client("eks")) as eks:
        request = {"clusterName": "paddle-cluster"}
        eks.add_response("list_nodegroups", {"nodegroups": ["a"], "nextToken": "2"}, request)
        eks.add_response("list_nodegroups", {"nodegroups": ["b"]}, {**request, "nextToken": "2"})
        assert aws.items("eks", "list_nodegroups", "nodegroups", **request) == ["a", "b"]
        eks.add_client_error("list_nodegroups", "ResourceNotFoundException")
        absent: Any = {"absent": "ResourceNotFoundException", **request}
        assert aws.items("eks", "list_nodegroups", "nodegroups", **absent) == []
        eks.add_client_error("list_nodegroups", "AccessDeniedException")
        with pytest.raises(AwsError, match="AWS denied eks:list_nodegroups"):
            aws.items("eks", "list_nodegroups", "nodegroups", **absent)
