"""The printed policy does not amount to administrator rights: every step to more rights is denied."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cfnlint.decode import decode_str
from moto.iam.aws_managed_policies import aws_managed_policies_data

from paddlejob.cloud.aws.access.boundary import boundary, boundary_arn
from paddlejob.cloud.aws.access.policy import MAX_SIZE, policy, size
from paddlejob.cloud.aws.config.cluster import ClusterConfig
from paddlejob.cloud.aws.templates.compose import ROLE_KINDS
from paddlejob.cloud.aws.templates.render import cluster_template, parameters

from .aws_state import change, client
from .iam import allows, role_allows
from .kinds import ACCOUNT, Configured, Pdj

PATH = f"arn:aws:iam::{ACCOUNT}:role/paddlejob/paddle-cluster"
ROLE = f"{PATH}/worker/node/paddle-cluster-NodeRole-x"
CONTROL_PLANE = f"{PATH}/control-plane/paddle-cluster-ClusterRole-x"
# The holder sends a template of his own, so that CloudFormation makes the request for him.
BY_TEMPLATE = {"aws__CalledVia": "cloudformation.amazonaws.com", "aws__RequestedRegion": "us-west-2"}


@pytest.fixture(params=[{}, {"autoMode": True}], ids=["nodes", "auto mode"])
def config(configured: Configured, request: pytest.FixtureRequest) -> ClusterConfig:
    return configured(**request.param)


@pytest.fixture
def printed(config: ClusterConfig) -> dict[str, Any]:
    return policy(config, ACCOUNT)


@pytest.fixture
def border(configured: Configured) -> str:
    return boundary_arn("us-west-2", ACCOUNT, "paddle-cluster")


def test_a_role_without_the_boundary_can_be_neither_created_nor_given_rights(
    printed: dict[str, Any], border: str
) -> None:
    """A role NAME-NodeRole-x that trusts the holder, with an inline policy for everything, was all it took."""
    for action in ("iam:CreateRole", "iam:PutRolePolicy"):
        assert not allows(printed, action, ROLE, **BY_TEMPLATE)
        assert not allows(printed, action, ROLE, iam__PermissionsBoundary="arn:aws:iam::aws:policy/AdministratorAccess")
        assert allows(printed, action, ROLE, iam__PermissionsBoundary=border, **BY_TEMPLATE)


def test_a_role_with_the_boundary_and_a_policy_for_everything_cannot_get_more_rights(config: ClusterConfig) -> None:
    limits, role = boundary(config), CONTROL_PLANE
    assert role_allows(limits, role, "s3:GetObject", "arn:aws:s3:::paddle-cluster-data-bucket-1/model")
    for action in (
        *("iam:CreateUser", "iam:CreateAccessKey", "iam:AttachUserPolicy", "iam:PassRole", "iam:CreatePolicyVersion"),
        *("sts:AssumeRole", "lambda:CreateFunction", "ec2:ModifyInstanceAttribute", "iam:UpdateAssumeRolePolicy"),
        *("iam:CreateRole", "iam:PutRolePolicy", "organizations:LeaveOrganization", "cloudformation:CreateStack"),
    ):
        assert not role_allows(limits, role, action), action
    assert not role_allows(limits, role, "iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/admin")
    assert role_allows(limits, role, "ec2:RunInstances") is config.auto_mode, "with roles of the cluster only"
    for bucket in ("payroll/2026", "paddle-cluster-data-lake/2026"):
        assert not role_allows(limits, role, "s3:GetObject", f"arn:aws:s3:::{bucket}")


KINDS = {
    "control plane": CONTROL_PLANE,
    "node": ROLE,
    "add-on": f"{PATH}/worker/add-on/paddle-cluster-DriverRole-x",
    "job": f"{PATH}/worker/job/paddle-cluster-data-JobRole-x",
    "another cluster's control plane": CONTROL_PLANE.replace("/paddle-cluster/", "/paddle-cluster-b/"),
}


@pytest.mark.parametrize(
    ("action", "kinds"),
    [
        ("elasticloadbalancing:DeleteLoadBalancer", {"control plane"}),
        ("ec2:AuthorizeSecurityGroupIngress", {"control plane"}),
        ("ecr:BatchGetImage", {"node"}),
        ("ssmmessages:OpenDataChannel", {"node"}),
        ("ec2:DetachNetworkInterface", {"add-on"}),
        ("elasticfilesystem:DeleteAccessPoint", {"add-on"}),
        *((f"ec2:{verb}Volume", set[str]()) for verb in ("Create", "Attach", "Modify", "Delete")),
        *((f"ssm:{verb}", set[str]()) for verb in ("GetParameter", "GetParameters")),
    ],
)
def test_a_role_gets_no_more_than_its_kind_needs(configured: Configured, action: str, kinds: set[str]) -> None:
    limits = boundary(configured())
    assert {kind for kind, role in KINDS.items() if role_allows(limits, role, action)} == kinds


def test_auto_mode_attaches_volumes_of_this_cluster_only(configured: Configured) -> None:
    limits, tag = boundary(configured(autoMode=True)), "aws__ResourceTag/eks__eks-cluster-name"
    for name, expected in (("paddle-cluster", True), ("another", False)):
        assert role_allows(limits, CONTROL_PLANE, "ec2:AttachVolume", **{tag: name}) is expected
        assert not role_allows(limits, KINDS["job"], "ec2:AttachVolume", **{tag: name})


def test_a_role_of_the_control_plane_is_passed_to_neither_nodes_nor_pods(printed: dict[str, Any]) -> None:
    for service in ("ec2", "pods.eks"):
        passed = {"iam__PassedToService": f"{service}.amazonaws.com"}
        assert allows(printed, "iam:PassRole", ROLE, **passed)
        assert not allows(printed, "iam:PassRole", CONTROL_PLANE, **passed)


def test_the_boundary_itself_can_be_neither_changed_nor_removed(printed: dict[str, Any], border: str) -> None:
    for action in ("iam:CreatePolicyVersion", "iam:SetDefaultPolicyVersion", "iam:DeletePolicy", "iam:CreatePolicy"):
        assert not allows(printed, action, border, **BY_TEMPLATE)
    for held in ({}, {"iam__PermissionsBoundary": border}):
        assert not allows(printed, "iam:DeleteRolePermissionsBoundary", ROLE, **held, **BY_TEMPLATE)


def test_a_role_of_others_is_out_of_reach(printed: dict[str, Any], border: str) -> None:
    """Even one whose name begins with that of the cluster: its trust cannot be changed, nor what it may do."""
    for role in (ROLE, ROLE.replace("NodeRole-x", "admin"), f"arn:aws:iam::{ACCOUNT}:role/admin"):
        assert not allows(printed, "iam:UpdateAssumeRolePolicy", role, **BY_TEMPLATE)
        assert not allows(printed, "iam:PutRolePolicy", role, **BY_TEMPLATE)
        assert not allows(printed, "sts:AssumeRole", role)
    theirs = (f"arn:aws:iam::{ACCOUNT}:role/admin", f"arn:aws:iam::{ACCOUNT}:role/paddle-cluster-b-NodeRole-x")
    for role in (*theirs, ROLE.replace("/paddle-cluster/", "/paddle-cluster-b/")):
        assert not allows(printed, "iam:PassRole", role, iam__PassedToService="eks.amazonaws.com")
        assert not allows(printed, "iam:CreateRole", role, iam__PermissionsBoundary=border)
        assert not allows(printed, "iam:DeleteRolePolicy", role)


def test_a_role_gets_none_but_the_managed_policies_of_the_templates(printed: dict[str, Any], border: str) -> None:
    held = {"iam__PermissionsBoundary": border}
    for name, expected in (("AmazonEKSClusterPolicy", True), ("AdministratorAccess", False), ("IAMFullAccess", False)):
        arn = f"arn:aws:iam::aws:policy/{name}"
        assert allows(printed, "iam:AttachRolePolicy", ROLE, iam__PolicyARN=arn, **held) is expected


@pytest.mark.parametrize("service", ["lambda", "cloudformation", "ecs-tasks", "ssm"])
def test_a_role_is_passed_to_no_service_that_runs_code_of_the_holder(printed: dict[str, Any], service: str) -> None:
    assert allows(printed, "iam:PassRole", ROLE, iam__PassedToService="eks.amazonaws.com")
    assert not allows(printed, "iam:PassRole", ROLE, iam__PassedToService=f"{service}.amazonaws.com")


def test_the_stack_of_an_attachment_opens_no_other_way(configured: Configured) -> None:
    """Its template is the holder's too: a role that he makes there, and one of others that he gives to his pods."""
    document = policy(configured(clusterName="theirs"), ACCOUNT)
    stack = f"arn:aws:cloudformation:us-west-2:{ACCOUNT}:stack/theirs-attachment/1"
    assert allows(document, "cloudformation:CreateStack", stack)
    role = f"arn:aws:iam::{ACCOUNT}:role/paddlejob/theirs/theirs-attachment-AdminRole-x"
    for action in ("iam:CreateRole", "iam:PutRolePolicy", "iam:AttachRolePolicy", "iam:UpdateAssumeRolePolicy"):
        assert not allows(document, action, role, iam__PolicyARN="arn:aws:iam::aws:policy/IAMFullAccess", **BY_TEMPLATE)
    pods = {"iam__PassedToService": "pods.eks.amazonaws.com"}
    jobs = f"arn:aws:iam::{ACCOUNT}:role/paddlejob/theirs/worker/job/theirs-data-JobRole-x"
    assert allows(document, "iam:PassRole", jobs, **pods, **BY_TEMPLATE)
    assert not allows(document, "iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/admin", **pods, **BY_TEMPLATE)
    theirs = f"arn:aws:eks:us-west-2:{ACCOUNT}:cluster"
    assert allows(document, "eks:CreatePodIdentityAssociation", f"{theirs}/theirs", **BY_TEMPLATE)
    assert not allows(document, "eks:CreatePodIdentityAssociation", f"{theirs}/another", **BY_TEMPLATE)


def test_sessions_are_for_nodes_of_this_cluster(configured: Configured) -> None:
    printed = policy(configured(), ACCOUNT)
    node = f"arn:aws:ec2:us-west-2:{ACCOUNT}:instance/i-1"
    tag = "ssm__resourceTag/aws__eks__cluster-name"
    assert allows(printed, "ssm:StartSession", node, **{tag: "paddle-cluster"})
    assert not allows(printed, "ssm:StartSession", node, **{tag: "another"})
    assert not allows(printed, "ssm:StartSession", node)


def test_tags_that_the_holder_gives_open_no_session(configured: Configured) -> None:
    """AWS reserves tags that begin with aws:, and what exists already gets no tag at all."""
    printed = policy(configured(), ACCOUNT)
    node = f"arn:aws:ec2:us-west-2:{ACCOUNT}:instance/i-1"
    (session,) = [statement for statement in printed["Statement"] if statement["Sid"] == "Session"]
    assert all(key.partition("/")[2].startswith("aws:") for key in session["Condition"]["StringEquals"])
    assert not allows(printed, "ec2:CreateTags", node, **BY_TEMPLATE)
    assert not allows(printed, "ec2:DeleteTags", node, **BY_TEMPLATE)
    assert allows(printed, "ec2:CreateTags", node, ec2__CreateAction="RunInstances", **BY_TEMPLATE)


def test_records_of_other_names_are_out_of_reach(configured: Configured) -> None:
    printed = policy(configured(externalDNSName="paddle.example"), ACCOUNT)
    zone, key = "arn:aws:route53:::hostedzone/Z1", "route53__ChangeResourceRecordSetsNormalizedRecordNames"
    assert allows(printed, "route53:ChangeResourceRecordSets", zone, **{key: "api.paddle.example"}, **BY_TEMPLATE)
    assert not allows(printed, "route53:ChangeResourceRecordSets", zone, **{key: "www.example"}, **BY_TEMPLATE)


def test_nothing_is_created_in_another_region(printed: dict[str, Any]) -> None:
    elsewhere = {**BY_TEMPLATE, "aws__RequestedRegion": "eu-west-1"}
    assert allows(printed, "ec2:CreateVpc", **BY_TEMPLATE)
    assert not allows(printed, "ec2:CreateVpc", **elsewhere)
    assert not allows(printed, "eks:CreateCluster", **elsewhere)


# What load balancers do with certificates, web ACLs, user pools and Shield.
LEFT_OUT = ("acm:*", "cognito-idp:*", "shield:*", "wafv2:*")
NOT_NEEDED = {"ec2:ModifyInstanceAttribute", "ssm:GetParameter", "ssm:GetParameters"}
VOLUMES = {f"ec2:{verb}Volume" for verb in ("Attach", "Create", "Delete", "Detach", "Modify")}


def test_the_boundary_allows_what_the_roles_need(config: ClusterConfig) -> None:
    """By the managed policies that the template attaches to each, of which moto has a copy."""
    known, limits = json.loads(aws_managed_policies_data), boundary(config)
    made = decode_str(cluster_template(config, parameters(config)).text)[0]["Resources"]
    own = {"aws__ResourceTag/eks__eks-cluster-name": config.cluster_name}
    linked = {"iam__AWSServiceName": "elasticloadbalancing.amazonaws.com"}
    needed = {
        (f"{PATH}/{kind}/{name}-x", action)
        for name, kind in ROLE_KINDS.items()
        for arn in made.get(name, {"Properties": {}})["Properties"].get("ManagedPolicyArns", [])
        for statement in known[arn["Fn::Sub"].rpartition("/")[2]]["Document"]["Statement"]
        for action in _listed(statement["Action"])
        if not any(fnmatch.fnmatchcase(action, pattern) for pattern in LEFT_OUT)
    }
    assert len(needed) > 80
    passed = ("iam:PassRole", "iam:AddRoleToInstanceProfile")
    missing = {
        action
        for role, action in needed
        if not role_allows(limits, role, action, ROLE if action in passed else "*", **own, **linked)
    }
    assert missing == ({"ec2:ModifyInstanceAttribute"} if config.auto_mode else NOT_NEEDED | VOLUMES)
    assert size(limits) <= MAX_SIZE
    starred = {action for statement in limits["Statement"] for action in statement["Action"] if "*" in action}
    assert starred == {"ec2:Describe*s", "elasticloadbalancing:*"}


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


@pytest.mark.usefixtures("made", "initialised")
def test_where_an_administrator_made_the_boundary_every_role_gets_it(
    pdj: Pdj, facts: Callable[..., Any], tmp_path: Path
) -> None:
    document = pdj("policy", "--boundary")
    arn = client("iam").create_policy(PolicyName="paddle-cluster-boundary", PolicyDocument=document)["Policy"]["Arn"]
    pdj("up")
    roles = client("iam").list_roles()["Roles"]
    found = {
        client("iam")
        .get_role(RoleName=role["RoleName"])["Role"]
        .get("PermissionsBoundary", {})
        .get("PermissionsBoundaryArn")
        for role in roles
    }
    assert (found, len(roles)) == ({arn}, 5)
    change(tmp_path, "workerCount: 1", "workerCount: 2")
    pdj("up")
    stacks = client("cloudformation").describe_stacks()["Stacks"]
    values = [
        p["ParameterValue"] for stack in stacks for p in stack["Parameters"] if p["ParameterKey"] == "BoundaryArn"
    ]
    assert values == [arn, arn]
