"""EKS Auto Mode: what it forbids is said before anything is created, and the rest works as with nodes of one's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paddlejob.cloud.aws.access.boundary import boundary
from paddlejob.cloud.aws.session import Aws
from paddlejob.cloud.aws.stack.blockers import blockers
from paddlejob.errors import BadInput

from .aws_state import client, inventory, outputs
from .iam import role_allows
from .kinds import NAMED, Configured, Pdj


@pytest.mark.usefixtures("made", "versions")
def test_a_whole_life(pdj: Pdj, made: dict[str, Any], facts: Callable[..., Any]) -> None:
    before = inventory()
    pdj("init", *NAMED, "--auto-mode")
    assert "EKS Auto Mode creates them (their price and about 12 %)" in pdj("validate")
    pdj("up")
    assert {name.split("/")[-1] for name in made if "Addon" in name} == {"aws-efs-csi-driver"}
    assert client("eks").list_nodegroups(clusterName="paddle-cluster")["nodegroups"] == []
    assert "No changes needed." in pdj("up")
    with pytest.raises(BadInput, match="EKS creates nodes as pods need them, so there is nothing to scale"):
        pdj("scale", "2")
    pdj("upgrade", "--yes")
    pdj("destroy", "--yes")
    assert inventory() == before


@pytest.mark.usefixtures("made")
def test_its_nodes_are_shown_and_do_not_block_the_deletion(pdj: Pdj, facts: Callable[..., Any]) -> None:
    """EKS tags them otherwise than those of a node group."""
    pdj("init", *NAMED, "--auto-mode")
    pdj("up")
    subnet = client("eks").describe_cluster(name="paddle-cluster")["cluster"]["resourcesVpcConfig"]["subnetIds"][0]
    tag = {"Key": "eks:eks-cluster-name", "Value": "paddle-cluster"}
    node = client("ec2").run_instances(
        ImageId="ami-12c6146b",
        MinCount=1,
        MaxCount=1,
        SubnetId=subnet,
        TagSpecifications=[{"ResourceType": "instance", "Tags": [tag]}],
    )["Instances"][0]["InstanceId"]
    assert facts("status")["nodesWanted"] is None, "pods decide"
    assert [found["id"] for found in facts("status")["nodes"]] == [node]
    vpc, aws = {"Vpc": outputs()["VpcId"]}, Aws("us-west-2")
    assert not [line for line in blockers(aws, "paddle-cluster", vpc) if node in line]
    assert [line for line in blockers(aws, "another", vpc) if node in line], "those of others do"


def test_settings_of_nodes_are_rejected_with_it(configured: Configured, pdj: Pdj) -> None:
    with pytest.raises(BadInput) as rejected:
        configured(autoMode=True, workerSpot=True, keyName="mine", efa=False)
    assert str(rejected.value) == (
        "cluster.yaml: autoMode: EKS chooses the nodes, and ignores workerSpot, keyName, efa; remove what it ignores"
    )


def test_the_file_that_init_writes_says_what_it_costs_and_forbids(pdj: Pdj, tmp_path: Path) -> None:
    pdj("init", *NAMED, "--auto-mode")
    text = (tmp_path / "cluster.yaml").read_text()
    assert "bills about 12 % on top" in text
    assert "no GPUs" in text
    assert "\nworkerCount" not in text


def test_the_boundary_lets_eks_create_nodes_and_those_get_none_but_the_roles_of_the_cluster(
    configured: Configured,
) -> None:
    limits = boundary(configured(autoMode=True))
    path = "arn:aws:iam::123456789012:role/paddlejob/paddle-cluster"
    role, node = f"{path}/control-plane/ClusterRole-1", f"{path}/worker/node/NodeRole-1"
    assert role_allows(limits, role, "ec2:CreateFleet")
    assert role_allows(limits, role, "iam:PassRole", node)
    assert not role_allows(limits, role, "iam:PassRole", role)
    assert not role_allows(limits, role, "iam:PassRole", "arn:aws:iam::123456789012:role/admin")
    assert not role_allows(boundary(configured()), role, "ec2:CreateFleet")
    assert not role_allows(limits, node, "ec2:CreateFleet")
    assert len(json.dumps(limits, separators=(",", ":"))) <= 6144
