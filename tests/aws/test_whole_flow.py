"""The lifecycle of a cluster as in the tutorial, with moto as AWS."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddlejob.errors import BadInput, NotPossible

from .aws_state import change, client, cluster, node_group, outputs, zones_of
from .kinds import Made, Pdj

pytestmark = pytest.mark.usefixtures("made", "initialised")


def test_up_makes_all_that_the_document_made_by_hand(pdj: Pdj, made: Made, tmp_path: Path) -> None:
    output = pdj("up")
    assert "CREATE_COMPLETE" in output
    assert "Idle cost: about $" in output
    assert cluster()["encryptionConfig"][0]["resources"] == ["secrets"]
    key = cluster()["encryptionConfig"][0]["provider"]["keyArn"]
    assert key in [known["KeyArn"] for known in client("kms").list_keys()["Keys"]]
    assert {*made} == {
        "AWS::EKS::Addon/paddle-cluster/eks-pod-identity-agent",
        "AWS::EKS::Addon/paddle-cluster/aws-efs-csi-driver",
        "AWS::EKS::Addon/paddle-cluster/coredns",
        "AWS::EKS::Addon/paddle-cluster/kube-proxy",
        "AWS::EKS::Addon/paddle-cluster/vpc-cni",
        "AWS::EKS::AccessEntry/paddle-cluster/arn:aws:sts::123456789012:user/moto",
        "AWS::EKS::PodIdentityAssociation/paddle-cluster/default",
        "AWS::S3::BucketPolicy",
    }
    (identity,) = made["AWS::EKS::Addon/paddle-cluster/aws-efs-csi-driver"]["PodIdentityAssociations"]
    role = client("iam").get_role(RoleName=identity["RoleArn"].split("/")[-1])["Role"]
    assert "pods.eks.amazonaws.com" in json.dumps(role["AssumeRolePolicyDocument"])
    assert (tmp_path / "kubeconfig").stat().st_mode & 0o077 == 0


def test_the_file_system_can_be_mounted_from_the_nodes_and_from_nowhere_else(pdj: Pdj) -> None:
    pdj("up")
    (target,) = client("efs").describe_mount_targets(FileSystemId=outputs()["FileSystemId"])["MountTargets"]
    assert zones_of([target["SubnetId"]]) == {"us-west-2a"}
    answer = client("efs").describe_mount_target_security_groups(MountTargetId=target["MountTargetId"])
    (group,) = client("ec2").describe_security_groups(GroupIds=answer["SecurityGroups"])["SecurityGroups"]
    (rule,) = group["IpPermissions"]
    assert (rule["FromPort"], rule["ToPort"], rule["IpRanges"]) == (2049, 2049, [])
    of_cluster = cluster()["resourcesVpcConfig"]["clusterSecurityGroupId"]
    assert [pair["GroupId"] for pair in rule["UserIdGroupPairs"]] == [of_cluster]


def test_the_private_zone_holds_the_name_of_the_api(pdj: Pdj) -> None:
    pdj("up")
    (zone,) = client("route53").list_hosted_zones()["HostedZones"]
    assert zone["Name"].rstrip(".") == "paddle"
    records = client("route53").list_resource_record_sets(HostedZoneId=zone["Id"])["ResourceRecordSets"]
    (record,) = [record for record in records if record["Type"] == "CNAME"]
    assert record["Name"].rstrip(".") == "api.paddle"
    assert f"https://{record['ResourceRecords'][0]['Value']}" == cluster()["endpoint"].rstrip("/")


def test_with_one_zone_the_nodes_stay_in_it_and_the_control_plane_gets_a_second(pdj: Pdj) -> None:
    pdj("up")
    assert zones_of(node_group()["subnets"]) == {"us-west-2a"}
    assert zones_of(cluster()["resourcesVpcConfig"]["subnetIds"]) == {"us-west-2a", "us-west-2b"}


def test_with_three_zones_there_are_nodes_and_mount_targets_in_each(pdj: Pdj, tmp_path: Path) -> None:
    change(tmp_path, "[us-west-2a]", "[us-west-2c, us-west-2a, us-west-2b]")
    pdj("up")
    assert zones_of(node_group()["subnets"]) == {"us-west-2a", "us-west-2b", "us-west-2c"}
    targets = client("efs").describe_mount_targets(FileSystemId=outputs()["FileSystemId"])["MountTargets"]
    assert len(targets) == 3


def test_spot_and_gpu_nodes_are_asked_for_as_such(pdj: Pdj, tmp_path: Path) -> None:
    change(tmp_path, "workerSpot: false", "workerSpot: true")
    change(tmp_path, "workerInstanceType: m5.xlarge", "workerInstanceType: g4dn.xlarge")
    pdj("up")
    group = node_group()
    assert (group["capacityType"], group["instanceTypes"]) == ("SPOT", ["g4dn.xlarge"])
    assert group["amiType"] == "AL2023_x86_64_NVIDIA"


def test_the_template_can_go_by_a_bucket_of_the_users(pdj: Pdj, tmp_path: Path) -> None:
    location = {"LocationConstraint": "us-west-2"}
    client("s3").create_bucket(Bucket="my-templates", CreateBucketConfiguration=location)
    pdj("up", "--s3-uri", "s3://my-templates/prefix")
    sent = client("s3").get_object(Bucket="my-templates", Key="prefix/paddle-cluster/stack.yaml")["Body"].read()
    assert sent == (tmp_path / "stack.yaml").read_bytes()
    assert cluster()["name"] == "paddle-cluster"


def test_an_s3_address_that_cannot_be_used_is_rejected_before_anything_is_created(pdj: Pdj) -> None:
    with pytest.raises(BadInput, match="use s3://BUCKET/PREFIX"):
        pdj("up", "--s3-uri", "my-templates")
    with pytest.raises(
        BadInput, match="--s3-uri: bucket nowhere does not exist; create it in us-west-2, or omit --s3-uri"
    ):
        pdj("up", "--s3-uri", "s3://nowhere/prefix")
    assert client("cloudformation").describe_stacks()["Stacks"] == []


def test_status_reads_as_in_the_document(pdj: Pdj, facts: Callable[..., Any]) -> None:
    with pytest.raises(NotPossible, match="cluster paddle-cluster does not exist"):
        pdj("status")
    pdj("up")
    client("ec2").run_instances(
        ImageId="ami-12c6146b",
        MinCount=1,
        MaxCount=1,
        SubnetId=node_group()["subnets"][0],
        TagSpecifications=[
            {"ResourceType": "instance", "Tags": [{"Key": "eks:cluster-name", "Value": "paddle-cluster"}]}
        ],
    )
    host = cluster()["endpoint"].removeprefix("https://").rstrip("/")
    lines = pdj("status").splitlines()
    assert lines[0].split(":")[0] == "Cluster Name"
    assert lines[0].endswith(" paddle-cluster")
    assert lines[1].split() == ["Controller", "DNS", "Name:", host]
    assert any(line.startswith("Nodes:") and "1 of 1 running" in line for line in lines)
    assert any(line.startswith("  ip-10-0-") and " i-" in line for line in lines), "the id is for `aws ssm`"
    found = facts("status")
    assert found["controllerDNSName"] == host
    assert found["nodes"][0]["state"] == "running"
    assert yaml.safe_load(pdj("status", "-o", "yaml")) == found


def test_status_counts_what_the_cluster_has_and_not_what_the_file_would_have(
    pdj: Pdj, facts: Callable[..., Any], tmp_path: Path
) -> None:
    pdj("up")
    before = facts("status")["idleCost"]
    change(tmp_path, "workerCount: 1", "workerCount: 9")
    assert facts("status")["idleCost"] == before
    assert before["items"][1]["what"] == "1 x m5.xlarge (on demand)"


def test_storage_is_the_documents_volume_and_claim_for_this_file_system(
    pdj: Pdj, facts: Callable[..., Any], tmp_path: Path
) -> None:
    with pytest.raises(NotPossible, match="has no file system yet"):
        pdj("storage")
    pdj("up")
    output = pdj("storage", "--csi")
    files = outputs()["FileSystemId"]
    volume = yaml.safe_load((tmp_path / "pv.yaml").read_text())
    assert volume["metadata"] == {"name": "efsvol"}
    assert volume["spec"]["csi"] == {"driver": "efs.csi.aws.com", "volumeHandle": files}
    assert volume["spec"]["capacity"] == {"storage": "100Gi"}
    claim = yaml.safe_load((tmp_path / "pvc.yaml").read_text())
    assert claim["spec"]["storageClassName"] == ""
    assert claim["spec"]["resources"] == {"requests": {"storage": "50Gi"}}
    mount = f"sudo dnf install -y amazon-efs-utils && mkdir -p efs && sudo mount -t efs -o tls {files}:/ efs"
    assert mount in output
    assert "Data costs $0.300 per GiB-month in EFS, $0.030 per GiB read from it, $0.060 per GiB written" in output
    assert facts("storage") == {
        "fileSystem": files,
        "server": f"{files}.efs.us-west-2.amazonaws.com",
        "mount": mount,
        "files": [str(tmp_path / "pv.yaml"), str(tmp_path / "pvc.yaml")],
    }
    with pytest.raises(BadInput, match="accepts encrypted mounts only; omit --nfs"):
        pdj("storage", "--nfs")
    with (tmp_path / "cluster.yaml").open("a") as file:
        file.write(f"fileSystemId: {files}\n")
    pdj("storage", "--nfs")
    volume = yaml.safe_load((tmp_path / "pv.yaml").read_text())
    assert volume["spec"]["nfs"] == {"server": f"{files}.efs.us-west-2.amazonaws.com", "path": "/"}
    assert "noresvport" in volume["spec"]["mountOptions"], "else EFS may not reconnect after a lost connection"


def test_render_writes_what_up_sends(pdj: Pdj, tmp_path: Path) -> None:
    assert "`up` adds FileSystemId and JobRoleArn, which the data stack provides." in pdj("render", "stack")
    first = [(tmp_path / name).read_text() for name in ("stack.yaml", "data-stack.yaml")]
    pdj("up")
    sent = [(tmp_path / name).read_text() for name in ("stack.yaml", "data-stack.yaml")]
    names = ("paddle-cluster", "paddle-cluster-data")
    assert [client("cloudformation").get_template(StackName=name)["TemplateBody"] for name in names] == sent
    for name in ("FileSystemId", "JobRoleArn"):
        sent[0] = sent[0].replace(f"Default: {outputs()[name]}\n", "Default: ''\n")
    assert first == sent
    assert "arn:aws:sts::123456789012:user/moto" in first[0], "the administrator is asked for"
    pdj("render")
    assert outputs()["FileSystemId"] in (tmp_path / "stack.yaml").read_text()
    assert "EKS creates the certificates" in pdj("render", "credentials", "--generate-ca")


def test_render_offline_guesses_and_says_so(pdj: Pdj, made: Made) -> None:
    said = "AWS was not asked (--offline): assuming us-west-2b as the second zone"
    assert f"{said} and no administrator." in pdj("render", "--offline")
    assert f"{said}." in pdj("render", "--offline", "--format", "eksctl"), "whoever runs eksctl is one"
