"""The printed policy is enough for whole lives on the very resources: our requests, and CloudFormation's for us."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paddlejob.cloud.aws.access.boundary import boundary_arn
from paddlejob.cloud.aws.access.policy import managed, policy
from paddlejob.cloud.aws.config.cluster import ClusterConfig
from paddlejob.errors import NotPossible

from .aws_state import change, client, outputs
from .iam import allows, permits
from .kinds import ACCOUNT, NAMED, Configured, Pdj
from .requests_made import FOR_EVERYONE, Request, in_source, record
from .resource_types import asked_by, attached_templates, templates
from .test_attach import THEIRS, detach

# The network plugin tags its interfaces with the cluster.
TAGS = {"ec2:DeleteNetworkInterface": {"aws__ResourceTag/cluster.k8s.amazonaws.com/name": "paddle-cluster"}}


def rejected(document: dict[str, Any], made: set[Request]) -> set[Request]:
    assert {request.action for request in made} <= in_source()
    return {
        request
        for request in made
        if request.action != FOR_EVERYONE and not permits(document, *request, **TAGS.get(request.action, {}))
    }


@pytest.mark.usefixtures("made", "initialised", "versions")
def test_the_life_of_a_cluster_with_nodes(
    pdj: Pdj, configured: Configured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key = client("kms").create_key()["KeyMetadata"]["Arn"]
    client("s3").create_bucket(Bucket="my-templates", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    change(tmp_path, "# kmsKeyArn: arn:aws:kms:...", f"kmsKeyArn: {key}")
    made = record(monkeypatch)
    for verb in ("validate", "up --s3-uri s3://my-templates/prefix", "status", "scale 2", "upgrade --yes", "storage"):
        pdj(*verb.split())
    for verb in ("kubeconfig", "policy", "render", "destroy --keep-data", "up"):
        pdj(*verb.split())
    leave_an_interface()
    with pytest.raises(NotPossible, match="DELETE_FAILED"):
        pdj("destroy", "--yes", "--force")
    assert "left by a node, deleted" in pdj("destroy", "--yes")
    document = policy(configured(kmsKeyArn=key, externalDNSName="paddle"), ACCOUNT, "s3://my-templates/prefix")
    assert rejected(document, made) == set()
    assert len(made) > 40
    assert {"ec2:DeleteNetworkInterface", "eks:DescribeAddonVersions", "ssm:GetParameter", "pricing:GetProducts"} <= {
        request.action for request in made
    }


def leave_an_interface() -> None:
    wanted = [{"Name": "vpc-id", "Values": [outputs()["VpcId"]]}]
    subnet = client("ec2").describe_subnets(Filters=wanted)["Subnets"][-1]["SubnetId"]
    client("ec2").create_network_interface(SubnetId=subnet, Description="aws-K8S-i-1")


@pytest.mark.usefixtures("made", "versions")
def test_the_life_of_a_cluster_with_auto_mode(
    pdj: Pdj, configured: Configured, monkeypatch: pytest.MonkeyPatch
) -> None:
    pdj("init", *NAMED, "--auto-mode")
    made = record(monkeypatch)
    for verb in ("validate", "up", "status", "upgrade --yes", "storage", "kubeconfig", "policy", "render", "up"):
        pdj(*verb.split())
    for verb in ("destroy --keep-data", "up", "destroy --yes"):
        pdj(*verb.split())
    document = policy(configured(autoMode=True), ACCOUNT)
    assert rejected(document, made) == set()
    assert len(made) > 35
    assert not {"ssm:StartSession", "ssm:GetParameter"} & {a for s in document["Statement"] for a in s["Action"]}


@pytest.mark.usefixtures("theirs")
def test_the_life_of_data_that_is_attached(pdj: Pdj, configured: Configured, monkeypatch: pytest.MonkeyPatch) -> None:
    made = record(monkeypatch)
    pdj("data", "attach", *THEIRS)
    client("s3").put_object(Bucket=outputs()["BucketName"], Key="model", Body=b"weights")
    detach()
    pdj("data", "attach", *THEIRS)
    detach("--delete-data", "--yes")
    document = policy(configured(clusterName="theirs"), ACCOUNT)
    assert rejected(document, made) == set()
    assert {"eks:ListAddons", "s3:DeleteObject", "cloudformation:DeleteStack"} <= {request.action for request in made}
    another = policy(configured(clusterName="another"), ACCOUNT)
    assert len(rejected(another, made)) > 10, "the policy of another cluster is not enough"


def by_cloudformation(document: dict[str, Any], config: ClusterConfig, action: str) -> bool:
    """Whether CloudFormation may do that for the user, on each resource that the action is about."""
    name = config.cluster_name
    keys = {"aws__CalledVia": "cloudformation.amazonaws.com", "aws__RequestedRegion": "us-west-2"}
    if action == "ec2:CreateTags":
        keys["ec2__CreateAction"] = "CreateVpc"
    border = boundary_arn("us-west-2", ACCOUNT, name)
    special: dict[str, dict[str, list[str]]] = {
        "iam:AttachRolePolicy": {"iam__PolicyARN": [f"arn:aws:iam::aws:policy/{one}" for one in managed(config)]},
        "iam:PassRole": {
            "iam__PassedToService": [f"{one}.amazonaws.com" for one in ("eks", "ec2", "pods.eks")],
        },
        "iam:CreateServiceLinkedRole": {
            "iam__AWSServiceName": [f"{one}.amazonaws.com" for one in ("eks", "eks-nodegroup", "elasticfilesystem")]
        },
    }
    contexts = [{key: value} for key, values in special.get(action, {}).items() for value in values] or [{}]
    return all(
        allows(document, action, resource, iam__PermissionsBoundary=border, **keys, **context)
        for resource in resources(action, name)
        for context in contexts
    )


def resources(action: str, name: str) -> Iterator[str]:
    """The ARNs of what an action is about, by the service authorization reference of AWS."""
    service, verb = action.split(":")
    if service == "s3":
        yield f"arn:aws:s3:::{name}-data-bucket-1a2b3c"
    elif verb == "CreateServiceLinkedRole":
        yield f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/eks.amazonaws.com/AWSServiceRoleForAmazonEKS"
    elif service == "iam":
        kinds = ("node/NodeRole", "job/JobRole")
        yield from (f"arn:aws:iam::{ACCOUNT}:role/paddlejob/{name}/worker/{role}-1A2B" for role in kinds)
    elif service == "eks" and verb not in ("CreateCluster", "DescribeAddonVersions", "DescribeClusterVersions"):
        yield from (f"arn:aws:eks:us-west-2:{ACCOUNT}:{one}" for one in of_cluster(verb, name))
    else:
        yield "*"


def of_cluster(verb: str, name: str) -> list[str]:
    kinds = {
        "Nodegroup": f"nodegroup/{name}/Nodes-1/uuid",
        "Addon": f"addon/{name}/vpc-cni/uuid",
        "AccessEntry": f"access-entry/{name}/user/{ACCOUNT}/me/uuid",
        "AccessPolic": f"access-entry/{name}/user/{ACCOUNT}/me/uuid",
        "PodIdentityAssociation": f"podidentityassociation/{name}/a-1",
    }
    if verb.endswith("agResource") or verb in ("DescribeUpdate", "ListUpdates"):
        return [f"cluster/{name}", *kinds.values()]
    if verb.startswith(("Create", "List")) and verb != "ListAssociatedAccessPolicies":
        return [f"cluster/{name}"]
    return [one for kind, one in kinds.items() if kind in verb] or [f"cluster/{name}"]


KINDS: dict[str, dict[str, Any]] = {
    "nodes": {},
    "everything": {"externalDNSName": "paddle", "workerInstanceType": "p4d.24xlarge", "efa": True, "keyName": "mine"},
    "auto mode": {"autoMode": True},
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_cloudformation_does_for_a_cluster(kind: str, configured: Configured) -> None:
    config = configured(**KINDS[kind])
    needed = asked_by(templates(config))
    assert len(needed) > 100
    document = policy(config, ACCOUNT)
    assert {action for action in needed if not by_cloudformation(document, config, action)} == set()


def test_what_cloudformation_does_for_an_attachment(configured: Configured) -> None:
    config = configured(clusterName="theirs")
    needed = asked_by(attached_templates("theirs"))
    assert {"eks:CreatePodIdentityAssociation", "elasticfilesystem:CreateMountTarget", "iam:CreateRole"} <= needed
    document = policy(config, ACCOUNT)
    assert {action for action in needed if not by_cloudformation(document, config, action)} == set()


def test_the_same_on_resources_of_another_cluster_is_denied(configured: Configured) -> None:
    needed = asked_by(templates(configured())) | asked_by(attached_templates("another"))
    named = {action for action in needed if not any(one == "*" for one in resources(action, "another"))}
    named -= {"iam:GetRole", "iam:CreateServiceLinkedRole"}  # of the caller; of services, for the whole account
    assert len(named) > 50
    document, another = policy(configured(), ACCOUNT), configured(clusterName="another")
    assert {action for action in named if by_cloudformation(document, another, action)} == set()
