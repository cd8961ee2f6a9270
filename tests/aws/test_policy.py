"""The least policy: enough for every request of ours and of CloudFormation on our behalf, and little more."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Callable
from typing import Any

import boto3
import pytest
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from paddlejob.cloud.aws import render
from paddlejob.cloud.aws.config import ClusterConfig
from paddlejob.cloud.aws.policy import policy

Configured = Callable[..., ClusterConfig]

# Rights that a resource type asks for features that the template does not use.
UNUSED = (
    "s3tables:*",
    "s3:*Abac",
    "s3:*Acl",
    "s3:*Accelerate*",
    "s3:*Analytics*",
    "s3:*Annotation*",
    "s3:*CORS",
    "s3:*Cors",
    "s3:*Inventory*",
    "s3:*Journal*",
    "s3:*Lifecycle*",
    "s3:*Lock*",
    "s3:*Logging",
    "s3:*MetadataTable*",
    "s3:*Metrics*",
    "s3:*Notification",
    "s3:*OwnershipControls",
    "s3:*Replication*",
    "s3:*Tiering*",
    "s3:*Versioning",
    "s3:*Website",
    "s3:DeleteBucketEncryption",
    "elasticfilesystem:*Replication*",
    "elasticfilesystem:*FileSystemPolicy",
    "elasticfilesystem:*Protection",
    "elasticfilesystem:DeleteTags",
    "kms:GenerateDataKeyWithoutPlaintext",
    "iam:*Group*",
    "iam:*User*",
    "iam:*Boundary",
    "iam:*InstanceProfile",
    "route53:*QueryLogging*",
    "route53:*Features",
    "route53:DisassociateVPC*",
    "ec2:*Vpn*",
    "ec2:*PrivateNatGatewayAddress",
    "ec2:*NatGatewayAddress",
    "ec2:*EncryptionControl",
    "ec2:*SubnetCidrBlock",
    "ec2:*Tenancy",
    "ec2:AcceptAddressTransfer",
    "ec2:ReplaceRouteTableAssociation",
    "ec2:UpdateSecurityGroupRuleDescriptions*",
    "eks:ActivateCertificateAuthority",
)


def allowed(document: dict[str, Any]) -> list[str]:
    return [action for statement in document["Statement"] for action in statement["Action"]]


def matches(action: str, patterns: Any) -> bool:
    return any(fnmatch.fnmatchcase(action, pattern) for pattern in patterns)


def test_it_covers_what_each_resource_type_says_it_needs(configured: Configured) -> None:
    patterns = allowed(policy(configured(), "123456789012"))
    types = set(re.findall(r"Type: (AWS::\w+::\w+)", render.template(render.parameters(configured()))))
    assert len(types) > 15
    needed = {
        action
        for name in types
        for does, handler in PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-west-2", name).schema["handlers"].items()
        for action in handler["permissions"]
        if does != "list"  # of every resource in the account, which a stack does not do
        if not matches(action, UNUSED)
    }
    assert {action for action in needed if not matches(action, patterns)} == set()


@pytest.mark.usefixtures("made", "initialised")
def test_it_covers_every_request_of_a_whole_life(
    pdj: Callable[..., str], configured: Configured, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: set[str] = set()
    plainly = boto3.Session.client

    def recording(self: Any, name: str, **options: Any) -> Any:
        client = plainly(self, name, **options)
        prefix = {"elbv2": "elasticloadbalancing", "elb": "elasticloadbalancing", "efs": "elasticfilesystem"}
        client.meta.events.register(
            "before-call", lambda model, **_: asked.add(f"{prefix.get(name, name)}:{model.name}")
        )
        return client

    monkeypatch.setattr(boto3.Session, "client", recording)
    for verb in (["validate"], ["up"], ["status"], ["scale", "2"], ["storage"], ["kubeconfig"]):
        pdj(*verb)
    pdj("destroy", "--keep-data")
    pdj("up")
    pdj("destroy", "--yes")
    # As IAM spells these, and what everyone may ask.
    spelled = {"s3:ListObjectsV2": "s3:ListBucket", "s3:ListObjectVersions": "s3:ListBucketVersions"}
    needed = {spelled.get(action, action) for action in asked} - {"sts:GetCallerIdentity"}
    patterns = allowed(policy(configured(), "123456789012"))
    assert len(needed) > 15
    assert {action for action in needed if not matches(action, patterns)} == set()


def test_it_is_narrow(configured: Configured) -> None:
    document = policy(configured(), "123456789012")
    assert not [action for action in allowed(document) if action.endswith(":*") or action == "*"]
    by_name = {statement["Sid"]: statement for statement in document["Statement"]}
    assert by_name["Stack"]["Resource"] == ["arn:aws:cloudformation:us-west-2:123456789012:stack/paddle-cluster/*"]
    assert by_name["Roles"]["Resource"] == ["arn:aws:iam::123456789012:role/paddle-cluster-*"]
    assert "AdministratorAccess" not in json.dumps(by_name["RolePolicies"])
    changing = [
        s for s in document["Statement"] if s["Resource"] == ["*"] and s["Sid"] not in ("Look", "LookForBalancers")
    ]
    assert [s["Sid"] for s in changing if "Condition" not in s] == ["Names"]


def test_it_fits_into_one_managed_policy(configured: Configured) -> None:
    document = json.dumps(policy(configured(clusterName="a" * 40), "123456789012"), separators=(",", ":"))
    assert len(document) <= 6144


def test_regions_of_china_have_their_own_partition(configured: Configured) -> None:
    document = policy(configured(region="cn-north-1", availabilityZones=["cn-north-1a"]), "123456789012")
    assert "arn:aws:" not in json.dumps(document)


@pytest.mark.usefixtures("made", "initialised")
def test_the_verb_prints_json_and_asks_for_the_account(pdj: Callable[..., str]) -> None:
    assert json.loads(pdj("policy"))["Version"] == "2012-10-17"
    assert ":210987654321:" in pdj("policy", "--account-id", "210987654321")
