"""`pdj aws render --format eksctl`: the same cluster for teams that use eksctl."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from paddlejob.cloud.aws.config.cluster import ClusterConfig
from paddlejob.cloud.aws.templates.eksctl import eksctl_config
from paddlejob.cloud.aws.templates.render import parameters

from .kinds import Configured, Pdj


def rendered(config: ClusterConfig, **asked: str) -> dict[str, Any]:
    return eksctl_config(config, parameters(config, **asked), "aws")


@pytest.mark.usefixtures("made", "initialised")
def test_the_verb_writes_the_file_and_names_both_commands(pdj: Pdj, tmp_path: Path) -> None:
    output = pdj("render", "--format", "eksctl")
    assert f"eksctl create cluster -f {tmp_path}/eksctl.yaml" in output
    assert "pdj aws data attach --cluster paddle-cluster --region us-west-2" in output
    made = yaml.safe_load((tmp_path / "eksctl.yaml").read_text())
    assert (made["apiVersion"], made["kind"]) == ("eksctl.io/v1alpha5", "ClusterConfig")
    assert made["metadata"] == {"name": "paddle-cluster", "region": "us-west-2"}
    assert made["availabilityZones"] == ["us-west-2a", "us-west-2b"], "the second is asked for, as by up"
    assert made["accessConfig"] == {"authenticationMode": "API"}, "EKS adds the caller, and rejects him twice"
    assert not (tmp_path / "stack.yaml").exists()


def test_nodes_and_add_ons_are_those_of_the_template(configured: Configured) -> None:
    made = rendered(configured(workerCount=3, workerInstanceType="g4dn.xlarge", workerSpot=True, keyName="mine"))
    (nodes,) = made["managedNodeGroups"]
    assert (nodes["instanceType"], nodes["desiredCapacity"], nodes["spot"]) == ("g4dn.xlarge", 3, True)
    assert nodes["availabilityZones"] == ["us-west-2a"]
    assert nodes["disablePodIMDS"] is True, "pods do not inherit the rights of their node"
    assert nodes["ssh"]["publicKeyName"] == "mine"
    names = [addon["name"] for addon in made["addons"]]
    assert names == ["vpc-cni", "kube-proxy", "eks-pod-identity-agent", "coredns", "aws-efs-csi-driver"]
    assert made["cloudWatch"]["clusterLogging"]["enableTypes"] == ["audit"]


def test_optional_settings_are_taken_along(configured: Configured) -> None:
    key = "arn:aws:kms:us-west-2:123456789012:key/1"
    made = rendered(
        configured(
            kmsKeyArn=key,
            kubernetesVersion="1.36",
            apiAccessCIDRs=["203.0.113.7/32"],
            workerInstanceType="p5.48xlarge",
            efa=True,
            capacityReservationId="cr-0123456789abcdef0",
        )
    )
    assert made["secretsEncryption"] == {"keyARN": key}
    assert made["metadata"]["version"] == "1.36"
    assert made["vpc"]["publicAccessCIDRs"] == ["203.0.113.7/32"]
    (nodes,) = made["managedNodeGroups"]
    assert nodes["efaEnabled"] is True
    target = nodes["capacityReservation"]["capacityReservationTarget"]
    assert target == {"capacityReservationID": "cr-0123456789abcdef0"}
    assert "instanceMarketOptions" not in nodes


def test_a_capacity_block_is_bought_as_such(configured: Configured) -> None:
    """EC2 starts no node of a block that is asked for as a plain reservation."""
    config = configured(workerInstanceType="p5.48xlarge", capacityReservationId="cr-0123456789abcdef0")
    (nodes,) = rendered(config, CapacityType="CAPACITY_BLOCK")["managedNodeGroups"]
    assert nodes["instanceMarketOptions"] == {"marketType": "capacity-block"}
    assert nodes["capacityReservation"]["capacityReservationTarget"]["capacityReservationID"].startswith("cr-")


def test_another_administrator_gets_an_access_entry(configured: Configured) -> None:
    arn = "arn:aws:iam::123456789012:role/admin"
    (entry,) = rendered(configured(administratorArn=arn), AdministratorArn=arn)["accessConfig"]["accessEntries"]
    assert entry["principalARN"] == arn
    assert entry["accessPolicies"][0]["policyARN"].endswith(":cluster-access-policy/AmazonEKSClusterAdminPolicy")


def test_support_of_old_versions_costs_nothing_extra_and_disks_are_encrypted(configured: Configured) -> None:
    """Both differ from eksctl's defaults, and are as in the template."""
    made = rendered(configured())
    assert made["upgradePolicy"] == {"supportType": "STANDARD"}
    assert made["managedNodeGroups"][0]["volumeEncrypted"] is True


def test_auto_mode_has_no_node_group(configured: Configured) -> None:
    made = rendered(configured(autoMode=True))
    assert made["autoModeConfig"] == {"enabled": True}
    assert "managedNodeGroups" not in made
    assert [addon["name"] for addon in made["addons"]] == ["aws-efs-csi-driver"]
