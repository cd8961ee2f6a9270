"""Taking a cluster down: what is lost, what stays, and what stands in the way; with moto as AWS."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paddlejob.errors import BadInput, NotPossible

from .asked import client, inventory, outputs

Pdj = Callable[..., str]
pytestmark = pytest.mark.usefixtures("made", "initialised")


def private_subnet() -> str:
    wanted = [{"Name": "vpc-id", "Values": [outputs()["VpcId"]]}]
    return str(client("ec2").describe_subnets(Filters=wanted)["Subnets"][-1]["SubnetId"])


def test_nothing_is_left(pdj: Pdj, made: dict[str, Any]) -> None:
    before = inventory()
    pdj("up")
    client("s3").put_object(Bucket=outputs()["BucketName"], Key="model", Body=b"weights")
    assert inventory() != before
    assert "cluster paddle-cluster is deleted" in pdj("destroy", "--yes")
    assert inventory() == before
    assert made == {}
    assert "nothing to destroy" in pdj("destroy")


def test_without_a_terminal_data_is_not_lost_unless_told_so(pdj: Pdj) -> None:
    pdj("up")
    client("s3").put_object(Bucket=outputs()["BucketName"], Key="model", Body=b"weights")
    with pytest.raises(BadInput, match=r"\(1 objects\) would be lost; use --keep-data, or --yes"):
        pdj("destroy")
    assert client("s3").list_objects_v2(Bucket=outputs()["BucketName"])["KeyCount"] == 1


def test_at_a_terminal_the_name_must_be_typed(pdj: Pdj, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paddlejob.cli.aws._at_a_terminal", lambda: True)
    pdj("up")
    with pytest.raises(BadInput, match="nothing was deleted"):
        pdj("destroy", answers="yes\n")
    assert outputs()["FileSystemId"] in pdj("destroy", answers="paddle-cluster\n")


def test_data_is_kept_and_can_be_used_by_the_next_cluster(pdj: Pdj, tmp_path: Path) -> None:
    pdj("up")
    files, bucket = outputs()["FileSystemId"], outputs()["BucketName"]
    client("s3").put_object(Bucket=bucket, Key="model", Body=b"weights")
    said = pdj("destroy", "--keep-data")
    assert f"set fileSystemId: {files} in cluster.yaml" in said
    assert "costs about $0.30 (EFS)" in said
    assert client("s3").get_object(Bucket=bucket, Key="model")["Body"].read() == b"weights"
    assert client("efs").describe_mount_targets(FileSystemId=files)["MountTargets"] == []
    assert client("eks").list_clusters()["clusters"] == []

    with (tmp_path / "cluster.yaml").open("a") as file:
        file.write(f"fileSystemId: {files}\n")
    pdj("up")
    assert outputs()["FileSystemId"] == files
    assert len(client("efs").describe_mount_targets(FileSystemId=files)["MountTargets"]) == 1
    with pytest.raises(BadInput) as refused:
        pdj("destroy")
    assert files not in str(refused.value)
    pdj("destroy", "--yes")
    assert len(client("efs").describe_file_systems(FileSystemId=files)["FileSystems"]) == 1


def test_a_load_balancer_in_the_way_is_named_before_anything_is_deleted(pdj: Pdj) -> None:
    pdj("up")
    client("elbv2").create_load_balancer(Name="k8s-web", Subnets=[private_subnet()], Type="network")
    with pytest.raises(NotPossible, match="load balancer k8s-web: delete the Service or Ingress that made it"):
        pdj("destroy", "--yes")
    assert client("eks").list_clusters()["clusters"] == ["paddle-cluster"]


def test_foreign_interfaces_and_groups_are_named_and_the_stacks_own_are_not(pdj: Pdj) -> None:
    pdj("up")
    ec2 = client("ec2")
    group = ec2.create_security_group(GroupName="k8s-elb-1", Description="x", VpcId=outputs()["VpcId"])["GroupId"]
    eni = ec2.create_network_interface(SubnetId=private_subnet(), Description="a lambda", Groups=[group])
    name = eni["NetworkInterface"]["NetworkInterfaceId"]
    with pytest.raises(NotPossible) as refused:
        pdj("destroy", "--yes")
    assert str(refused.value).splitlines()[1:] == [
        f"  network interface {name} (a lambda): remove what uses it, or the interface",
        f"  security group {group} (k8s-elb-1): delete it",
    ]


def test_no_wait_returns_while_the_stack_is_being_deleted(pdj: Pdj) -> None:
    pdj("up")
    said = pdj("destroy", "--yes", "--no-wait")
    assert "is being deleted" in said
    assert "DELETE_" not in said
