"""The printed policy does not amount to administrator rights: every step to more rights is denied."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from moto.iam.aws_managed_policies import aws_managed_policies_data

from paddlejob.cloud.aws.access.boundary import boundary, boundary_arn
from paddlejob.cloud.aws.access.policy import MAX_SIZE, managed, policy, size
from paddlejob.cloud.aws.config.cluster import ClusterConfig

from .aws_state import change, client
from .iam import allows, role_allows

ACCOUNT = "123456789012"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/paddle-cluster-NodeRole-x"
ANYTHING = {"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
Configured = Callable[..., ClusterConfig]
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
    limits = boundary(config)
    assert role_allows(limits, ANYTHING, "s3:GetObject", "arn:aws:s3:::paddle-cluster-data-bucket-1/model")
    for action in (
        *("iam:CreateUser", "iam:CreateAccessKey", "iam:AttachUserPolicy", "iam:PassRole", "iam:CreatePolicyVersion"),
        *("sts:AssumeRole", "lambda:CreateFunction", "ec2:ModifyInstanceAttribute", "iam:UpdateAssumeRolePolicy"),
        *("iam:CreateRole", "iam:PutRolePolicy", "organizations:LeaveOrganization", "cloudformation:CreateStack"),
    ):
        assert not role_allows(limits, ANYTHING, action), action
    assert not role_allows(limits, ANYTHING, "iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/admin")
    assert role_allows(limits, ANYTHING, "ec2:RunInstances") is config.auto_mode, "with roles of the cluster only"
    for bucket in ("payroll/2026", "paddle-cluster-data-lake/2026"):
        assert not role_allows(limits, ANYTHING, "s3:GetObject", f"arn:aws:s3:::{bucket}")


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
    assert not allows(
        printed, "iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/admin", iam__PassedToService="eks.amazonaws.com"
    )


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
    role = f"arn:aws:iam::{ACCOUNT}:role/theirs-attachment-AdminRole-x"
    for action in ("iam:CreateRole", "iam:PutRolePolicy", "iam:AttachRolePolicy", "iam:UpdateAssumeRolePolicy"):
        assert not allows(document, action, role, iam__PolicyARN="arn:aws:iam::aws:policy/IAMFullAccess", **BY_TEMPLATE)
    pods = {"iam__PassedToService": "pods.eks.amazonaws.com"}
    assert allows(document, "iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/theirs-data-JobRole-x", **pods, **BY_TEMPLATE)
    assert not allows(document, "iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/admin", **pods, **BY_TEMPLATE)
    theirs = f"arn:aws:eks:us-west-2:{ACCOUNT}:cluster"
    assert allows(document, "eks:CreatePodIdentityAssociation", f"{theirs}/theirs", **BY_TEMPLATE)
    assert not allows(document, "eks:CreatePodIdentityAssociation", f"{theirs}/another", **BY_TEMPLATE)


def test_sessions_are_for_nodes_of_this_cluster(configured: Configured) -> None:
    printed = policy(configured(), ACCOUNT)
    node = f"arn:aws:ec2:us-west-2:{ACCOUNT}:instance/i-1"
    tag = "ssm__resourceTag/eks__cluster-name"
    assert allows(printed, "ssm:StartSession", node, **{tag: "paddle-cluster"})
    assert not allows(printed, "ssm:StartSession", node, **{tag: "another"})
    assert not allows(printed, "ssm:StartSession", node)


def test_nothing_is_created_in_another_region(printed: dict[str, Any]) -> None:
    elsewhere = {**BY_TEMPLATE, "aws__RequestedRegion": "eu-west-1"}
    assert allows(printed, "ec2:CreateVpc", **BY_TEMPLATE)
    assert not allows(printed, "ec2:CreateVpc", **elsewhere)
    assert not allows(printed, "eks:CreateCluster", **elsewhere)


# What load balancers do with certificates, web ACLs, user pools and Shield.
LEFT_OUT = ("acm:*", "cognito-idp:*", "shield:*", "wafv2:*")


def test_the_boundary_allows_what_the_roles_need(config: ClusterConfig) -> None:
    """By the managed policies that the templates attach, of which moto has a copy."""
    known = json.loads(aws_managed_policies_data)
    patterns = [action for statement in boundary(config)["Statement"] for action in _listed(statement["Action"])]
    needed = {
        action
        for name in managed(config)
        for statement in known[name.removeprefix("service-role/")]["Document"]["Statement"]
        for action in _listed(statement["Action"])
    }
    assert len(needed) > 80
    missing = {action for action in needed if not any(fnmatch.fnmatchcase(action, p) for p in (*patterns, *LEFT_OUT))}
    assert missing == {"ec2:ModifyInstanceAttribute"}
    assert size(boundary(config)) <= MAX_SIZE
    assert {p for p in patterns if "*" in p} == {"ec2:Describe*s", "elasticloadbalancing:*"}


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


@pytest.mark.usefixtures("made", "initialised")
def test_where_an_administrator_made_the_boundary_every_role_gets_it(
    pdj: Callable[..., str], facts: Callable[..., Any], tmp_path: Path
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
