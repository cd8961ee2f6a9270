"""`pdj aws data attach`: the data stack on a cluster that somebody else created; with moto as AWS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from moto.eks.models import eks_backends
from typer.testing import CliRunner

from paddlejob.cli.aws.app import app
from paddlejob.cloud.aws.session import Aws
from paddlejob.cloud.aws.stack.attach import missing_addons
from paddlejob.errors import BadInput, NotPossible

from .aws_state import client, inventory, outputs, stack_state
from .kinds import Pdj
from .moto_eks import made_auto_mode

pytestmark = pytest.mark.usefixtures("made")
THEIRS = ("--cluster", "theirs", "--region", "us-west-2")


def test_nodes_can_mount_the_file_system_in_each_zone_and_pods_reach_the_bucket(
    pdj: Pdj, made: dict[str, Any], theirs: dict[str, Any], tmp_path: Path
) -> None:
    output = pdj("data", "attach", *THEIRS)
    files = outputs()["FileSystemId"]
    assert f"Cluster theirs has access to file system {files} and bucket {outputs()['BucketName']}." in output
    targets = client("efs").describe_mount_targets(FileSystemId=files)["MountTargets"]
    assert len(targets) == 2, "EFS allows one in each zone"
    first, _, other_zone = theirs["subnets"]
    assert {target["SubnetId"] for target in targets} == {first, other_zone}
    groups = client("efs").describe_mount_target_security_groups(MountTargetId=targets[0]["MountTargetId"])
    (group,) = client("ec2").describe_security_groups(GroupIds=groups["SecurityGroups"])["SecurityGroups"]
    (rule,) = group["IpPermissions"]
    assert (rule["FromPort"], rule["UserIdGroupPairs"][0]["GroupId"]) == (2049, theirs["group"])
    assert made["AWS::EKS::PodIdentityAssociation/theirs/default"]["RoleArn"] == outputs()["JobRoleArn"]
    volume = yaml.safe_load((tmp_path / "pv.yaml").read_text())
    assert volume["spec"]["csi"]["volumeHandle"] == files


def test_add_ons_that_the_cluster_lacks_are_named_with_the_command(pdj: Pdj, theirs: dict[str, Any]) -> None:
    output = pdj("data", "attach", *THEIRS)
    command = "aws eks create-addon --region us-west-2 --cluster-name theirs --addon-name aws-efs-csi-driver"
    assert f"Add-on aws-efs-csi-driver is missing, which mounts the file system: run `{command}`" in output
    assert "eks-pod-identity-agent is missing" not in output
    theirs["addons"].append("aws-efs-csi-driver")
    assert "is missing" not in pdj("data", "attach", *THEIRS)


def test_a_cluster_with_auto_mode_has_the_agent_for_pods_itself(theirs: dict[str, Any]) -> None:
    theirs["addons"][:] = ["aws-efs-csi-driver"]
    (missing,) = missing_addons(Aws("us-west-2"), "theirs")
    assert missing.startswith("Add-on eks-pod-identity-agent is missing, which gives pods access to the bucket: run `")
    made_auto_mode(eks_backends["123456789012"]["us-west-2"].clusters["theirs"])
    assert missing_addons(Aws("us-west-2"), "theirs") == []


@pytest.mark.usefixtures("theirs")
def test_data_outlives_the_attachment_until_it_is_deleted_and_the_cluster_is_never_touched(
    pdj: Pdj,
) -> None:
    before = inventory()
    pdj("data", "attach", *THEIRS)
    files = outputs()["FileSystemId"]
    assert f"Kept: file system {files}" in detach()
    assert client("efs").describe_mount_targets(FileSystemId=files)["MountTargets"] == []
    pdj("data", "attach", *THEIRS)
    assert outputs()["FileSystemId"] == files, "it was taken up"
    with pytest.raises(BadInput, match="would be lost"):
        detach("--delete-data")
    assert "no longer billed" in detach("--delete-data", "--yes")
    assert inventory() == before
    assert client("eks").list_clusters()["clusters"] == ["theirs"]


@pytest.mark.usefixtures("theirs")
def test_messages_name_the_command_that_takes_attached_data_away(pdj: Pdj) -> None:
    pdj("data", "attach", *THEIRS)
    files = client("efs").create_file_system(CreationToken="mine")["FileSystemId"]
    with pytest.raises(BadInput) as rejected:
        pdj("data", "attach", *THEIRS, "--file-system-id", files)
    text = str(rejected.value)
    assert text.startswith(f"fileSystemId cannot change from none to {files}")
    assert text.endswith("run `pdj aws data detach --cluster theirs --region us-west-2 --delete-data` first")
    stack_state("DELETE_FAILED", "theirs-attachment")
    with pytest.raises(NotPossible, match="run `pdj aws data detach --cluster theirs --region us-west-2` again"):
        pdj("data", "attach", *THEIRS)


def detach(*options: str) -> str:
    result = CliRunner().invoke(app, ["data", "detach", *THEIRS, *options], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.usefixtures("theirs")
def test_a_cluster_that_is_not_there_or_has_its_data_already_is_rejected(pdj: Pdj) -> None:
    with pytest.raises(NotPossible, match="cluster absent does not exist in us-west-2; check --cluster and --region"):
        pdj("data", "attach", "--cluster", "absent", "--region", "us-west-2")
    client("eks").tag_resource(
        resourceArn=client("eks").describe_cluster(name="theirs")["cluster"]["arn"],
        tags={"paddlejob/cluster": "theirs"},
    )
    with pytest.raises(BadInput, match="`pdj aws up` created theirs with its data; there is nothing to attach"):
        pdj("data", "attach", *THEIRS)
    with pytest.raises(BadInput, match="--region is missing"):
        pdj("data", "attach", "--cluster", "theirs")
    assert client("cloudformation").describe_stacks()["Stacks"] == []
