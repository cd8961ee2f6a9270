"""Deleting a cluster: what is deleted, what is kept, and what blocks the deletion; with moto as AWS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paddlejob.cloud.aws.session import Aws
from paddlejob.cloud.aws.stack.blockers import blockers
from paddlejob.cloud.aws.stack.destroy import Preflight
from paddlejob.cloud.aws.stack.stack import StackState
from paddlejob.errors import BadInput, NotPossible

from .aws_state import client, inventory, outputs, stack_state
from .kinds import Pdj

pytestmark = pytest.mark.usefixtures("made", "initialised")


def private_subnet() -> str:
    wanted = [{"Name": "vpc-id", "Values": [outputs()["VpcId"]]}]
    return str(client("ec2").describe_subnets(Filters=wanted)["Subnets"][-1]["SubnetId"])


def test_nothing_is_left(pdj: Pdj, made: dict[str, Any]) -> None:
    before = inventory()
    pdj("up")
    client("s3").put_object(Bucket=outputs()["BucketName"], Key="model", Body=b"weights")
    assert inventory() != before
    output = pdj("destroy", "--yes")
    assert "Cluster paddle-cluster deleted.\nIt is no longer billed." in output
    assert inventory() == before
    assert made == {}
    assert "Nothing to destroy" in pdj("destroy")


def test_the_cluster_goes_first_then_the_objects_then_the_data(pdj: Pdj, monkeypatch: pytest.MonkeyPatch) -> None:
    """EFS keeps a file system with mount targets, CloudFormation a bucket with objects."""
    pdj("up")
    client("s3").put_object(Bucket=outputs()["BucketName"], Key="model", Body=b"weights")
    sent: list[tuple[str, str]] = []
    plainly = Aws.call

    def recorded(self: Aws, service: str, operation: str, **request: Any) -> dict[str, Any]:
        if operation.startswith("delete"):
            sent.append((operation, request.get("StackName", "")))
        return plainly(self, service, operation, **request)

    monkeypatch.setattr(Aws, "call", recorded)
    pdj("destroy", "--yes")
    stacks = ("paddle-cluster", "paddle-cluster-data")
    assert sent == [("delete_stack", stacks[0]), ("delete_objects", ""), ("delete_stack", stacks[1])]


def test_a_deletion_of_data_that_an_earlier_run_started_is_not_asked_about_again(
    pdj: Pdj, monkeypatch: pytest.MonkeyPatch
) -> None:
    """moto deletes at once, so that the status is scripted."""
    deleted: list[bool] = []

    def found(status: str) -> Preflight:
        return Preflight(
            None, StackState("id", "paddle-cluster-data", status, {}, {}, {}), [], ["bucket data (1 objects)"]
        )

    def destroy(stacks: Any, found: Preflight, keep_data: bool, wait: bool) -> bool:
        deleted.append(wait)
        return False

    monkeypatch.setattr("paddlejob.cloud.aws.stack.destroy.destroy", destroy)
    monkeypatch.setattr("paddlejob.cloud.aws.stack.destroy.preflight", lambda _: found("CREATE_COMPLETE"))
    with pytest.raises(BadInput, match=r"bucket data \(1 objects\) would be lost"):
        pdj("destroy")
    assert deleted == []
    monkeypatch.setattr("paddlejob.cloud.aws.stack.destroy.preflight", lambda _: found("DELETE_IN_PROGRESS"))
    assert "Cluster paddle-cluster deleted.\nIt is no longer billed.\n" in pdj("destroy")
    assert "It is billed until it is deleted; `pdj aws status` shows the progress.\n" in pdj("destroy", "--no-wait")
    assert deleted == [True, False]


def test_without_a_terminal_data_is_not_deleted_unless_requested(pdj: Pdj) -> None:
    pdj("up")
    client("s3").put_object(Bucket=outputs()["BucketName"], Key="model", Body=b"weights")
    with pytest.raises(
        BadInput, match=r"\(1 objects\) would be lost; keep it with --keep-data, or delete it with --yes"
    ):
        pdj("destroy")
    assert client("s3").list_objects_v2(Bucket=outputs()["BucketName"])["KeyCount"] == 1


def test_at_a_terminal_the_name_must_be_typed(pdj: Pdj, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paddlejob.cli.aws.confirm.is_terminal", lambda: True)
    pdj("up")
    for answer in ("yes\n", "\n", ""):
        with pytest.raises(BadInput, match="nothing was deleted"):
            pdj("destroy", answers=answer)
    assert outputs()["FileSystemId"] in pdj("destroy", answers="paddle-cluster\n")


def test_data_outlives_the_cluster_and_the_next_one_takes_it_up(pdj: Pdj) -> None:
    pdj("up")
    files, bucket = outputs()["FileSystemId"], outputs()["BucketName"]
    client("s3").put_object(Bucket=bucket, Key="model", Body=b"weights")
    output = pdj("destroy", "--keep-data")
    assert f"Kept: file system {files}" in output
    assert "The next `pdj aws up` takes it up; `pdj aws destroy` deletes it." in output
    assert "Data costs $0.300 per GiB-month in EFS" in output
    assert client("s3").get_object(Bucket=bucket, Key="model")["Body"].read() == b"weights"
    assert client("efs").describe_mount_targets(FileSystemId=files)["MountTargets"] == []
    assert client("eks").list_clusters()["clusters"] == []
    assert f"Kept: file system {files}" in pdj("destroy", "--keep-data"), "it is still billed, and that is said"

    pdj("up")
    assert (outputs()["FileSystemId"], outputs()["BucketName"]) == (files, bucket)
    assert len(client("efs").describe_mount_targets(FileSystemId=files)["MountTargets"]) == 1
    assert client("s3").get_object(Bucket=bucket, Key="model")["Body"].read() == b"weights"


def test_kept_data_can_be_deleted_later(pdj: Pdj) -> None:
    before = inventory()
    pdj("up")
    pdj("destroy", "--keep-data")
    with pytest.raises(BadInput, match="would be lost"):
        pdj("destroy")
    assert "It is no longer billed." in pdj("destroy", "--yes")
    assert inventory() == before


def test_a_file_system_of_the_user_is_used_and_never_deleted(pdj: Pdj, tmp_path: Path) -> None:
    files = client("efs").create_file_system(CreationToken="mine")["FileSystemId"]
    with (tmp_path / "cluster.yaml").open("a") as file:
        file.write(f"fileSystemId: {files}\n")
    pdj("up")
    assert outputs()["FileSystemId"] == files
    with pytest.raises(BadInput) as rejected:
        pdj("destroy")
    assert files not in str(rejected.value)
    output = pdj("destroy", "--yes")
    assert f"File system {files}, which paddlejob did not create, remains and is billed." in output
    assert "no longer billed" not in output
    assert len(client("efs").describe_file_systems(FileSystemId=files)["FileSystems"]) == 1


def test_another_file_system_is_not_taken_while_the_data_of_the_first_exists(pdj: Pdj, tmp_path: Path) -> None:
    """The update would delete the first one."""
    pdj("up")
    pdj("destroy", "--keep-data")
    files = client("efs").create_file_system(CreationToken="mine")["FileSystemId"]
    with (tmp_path / "cluster.yaml").open("a") as file:
        file.write(f"fileSystemId: {files}\n")
    with pytest.raises(BadInput, match=f"fileSystemId cannot change from none to {files}"):
        pdj("up")


def test_keys_that_s3_does_not_delete_end_the_deletion_instead_of_being_tried_for_ever(
    pdj: Pdj, monkeypatch: pytest.MonkeyPatch
) -> None:
    pdj("up")
    bucket = outputs()["BucketName"]
    client("s3").put_object(Bucket=bucket, Key="model", Body=b"weights")
    plainly = Aws.call

    tries = []

    def locked(self: Aws, service: str, operation: str, **request: Any) -> dict[str, Any]:
        if operation != "delete_objects":
            return plainly(self, service, operation, **request)
        tries.append(request)
        assert len(tries) == 1, "the same keys are deleted again"
        errors = [{"Key": one["Key"], "Code": "AccessDenied", "Message": "no"} for one in request["Delete"]["Objects"]]
        return {"Errors": errors}

    monkeypatch.setattr(Aws, "call", locked)
    with pytest.raises(NotPossible, match=r"S3 rejected the deletion of 1 objects, such as model: no \(AccessDenied\)"):
        pdj("destroy", "--yes")


def test_a_load_balancer_in_the_way_is_named_before_anything_is_deleted(pdj: Pdj) -> None:
    pdj("up")
    client("elbv2").create_load_balancer(Name="k8s-web", Subnets=[private_subnet()], Type="network")
    with pytest.raises(NotPossible, match="load balancer k8s-web: delete the Service or Ingress that created it"):
        pdj("destroy", "--yes")
    assert client("eks").list_clusters()["clusters"] == ["paddle-cluster"]


def test_foreign_interfaces_and_groups_are_named_and_the_stacks_own_are_not(pdj: Pdj) -> None:
    pdj("up")
    ec2 = client("ec2")
    group = ec2.create_security_group(GroupName="k8s-elb-1", Description="x", VpcId=outputs()["VpcId"])["GroupId"]
    eni = ec2.create_network_interface(SubnetId=private_subnet(), Description="a lambda", Groups=[group])
    name = eni["NetworkInterface"]["NetworkInterfaceId"]
    with pytest.raises(NotPossible) as rejected:
        pdj("destroy", "--yes")
    assert str(rejected.value).splitlines()[1:] == [
        f"  network interface {name} (a lambda): delete what uses it, or the interface",
        f"  security group {group} (k8s-elb-1): delete it",
    ]


def test_node_groups_and_records_that_others_made_are_named(pdj: Pdj) -> None:
    pdj("up")
    eks, route53 = client("eks"), client("route53")
    role = client("iam").get_role(RoleName=client("iam").list_roles()["Roles"][0]["RoleName"])["Role"]["Arn"]
    eks.create_nodegroup(
        clusterName="paddle-cluster", nodegroupName="by-hand", subnets=[private_subnet()], nodeRole=role
    )
    eks.create_fargate_profile(
        clusterName="paddle-cluster", fargateProfileName="far", podExecutionRoleArn=role, selectors=[{"namespace": "x"}]
    )
    (zone,) = route53.list_hosted_zones()["HostedZones"]
    record = {"Name": "web.paddle", "Type": "A", "TTL": 60, "ResourceRecords": [{"Value": "10.0.0.9"}]}
    route53.change_resource_record_sets(
        HostedZoneId=zone["Id"], ChangeBatch={"Changes": [{"Action": "CREATE", "ResourceRecordSet": record}]}
    )
    with pytest.raises(NotPossible) as rejected:
        pdj("destroy", "--yes")
    assert str(rejected.value).splitlines()[1:] == [
        "  node group by-hand: delete it in EKS",
        "  Fargate profile far: delete it in EKS",
        f"  DNS record web.paddle. (A) in zone {zone['Id'].split('/')[-1]}: delete it",
    ]


def test_an_interface_that_a_node_left_is_deleted_and_does_not_block(pdj: Pdj) -> None:
    before = inventory()
    blocked(pdj, "aws-K8S-i-1")
    assert "left by a node, deleted" in pdj("destroy", "--yes")
    assert inventory() == before


def test_the_group_of_eks_is_named_once_the_cluster_that_it_belongs_to_is_gone(pdj: Pdj) -> None:
    pdj("up")
    resources = {"Vpc": outputs()["VpcId"], "Cluster": "paddle-cluster"}
    aws = Aws("us-west-2")
    (group,) = [line for line in blockers(aws, "paddle-cluster", {"Vpc": resources["Vpc"]}) if "eks-cluster-sg" in line]
    assert group.endswith("(eks-cluster-sg-paddle-cluster): delete it")
    assert not [line for line in blockers(aws, "paddle-cluster", resources) if "eks-cluster-sg" in line]


def blocked(pdj: Pdj, description: str = "a lambda") -> str:
    """A deletion that was forced although an interface is in the way, and so has failed half way."""
    pdj("up")
    eni = client("ec2").create_network_interface(SubnetId=private_subnet(), Description=description)
    name = str(eni["NetworkInterface"]["NetworkInterfaceId"])
    with pytest.raises(NotPossible) as failed:
        pdj("destroy", "--yes", "--force")
    assert "stack paddle-cluster is DELETE_FAILED" in str(failed.value)
    assert f"  network interface {name} ({description}): delete what uses it, or the interface" in str(failed.value)
    return name


def test_what_a_forced_deletion_left_is_deleted_when_it_is_run_again(pdj: Pdj) -> None:
    before = inventory()
    interface = blocked(pdj)
    client("ec2").delete_network_interface(NetworkInterfaceId=interface)
    pdj("destroy", "--yes")
    assert inventory() == before


def test_a_cluster_that_never_was_complete_has_no_outputs_and_is_asked_about_and_emptied_all_the_same(
    pdj: Pdj, monkeypatch: pytest.MonkeyPatch
) -> None:
    pdj("up")
    bucket = outputs()["BucketName"]
    client("s3").put_object(Bucket=bucket, Key="model", Body=b"weights")
    stack_state("CREATE_FAILED")
    monkeypatch.setattr("moto.cloudformation.models.Stack.outputs", None)
    with pytest.raises(BadInput, match=r"file system fs-\w+ .* and bucket .* \(1 objects\) would be lost"):
        pdj("destroy")
    client("elbv2").create_load_balancer(Name="k8s-web", Subnets=[private_subnet_of_any()], Type="network")
    with pytest.raises(NotPossible, match="load balancer k8s-web"):
        pdj("destroy", "--yes")
    for balancer in client("elbv2").describe_load_balancers()["LoadBalancers"]:
        client("elbv2").delete_load_balancer(LoadBalancerArn=balancer["LoadBalancerArn"])
    pdj("destroy", "--yes")
    assert bucket not in [one["Name"] for one in client("s3").list_buckets()["Buckets"]]


def private_subnet_of_any() -> str:
    named = [{"Name": "tag:Name", "Values": ["paddle-cluster-private-1"]}]
    return str(client("ec2").describe_subnets(Filters=named)["Subnets"][0]["SubnetId"])


def test_no_wait_returns_while_the_stack_is_being_deleted_and_says_that_the_data_remains(pdj: Pdj) -> None:
    pdj("up")
    output = pdj("destroy", "--yes", "--no-wait")
    assert "is being deleted" in output
    assert "DELETE_" not in output
    assert "It cannot be deleted before the cluster; run `pdj aws destroy` again afterwards." in output
    pdj("destroy", "--yes")
    assert client("s3").list_buckets()["Buckets"] == []
