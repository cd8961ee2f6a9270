"""cluster.yaml: what it says, and how it says that something is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paddlejob.cloud.aws import render
from paddlejob.cloud.aws.assets import Assets
from paddlejob.cloud.aws.config import ClusterConfig, read_config
from paddlejob.cloud.aws.instances import ami_type
from paddlejob.errors import BadInput

Configured = Callable[..., ClusterConfig]


def faults_of(settings: dict[str, Any]) -> list[str]:
    with pytest.raises(BadInput) as refused:
        read_config(settings, "cluster.yaml")
    return str(refused.value).splitlines()


def test_every_fault_is_listed_at_once_with_place_value_and_what_to_change() -> None:
    faults = faults_of(
        {
            "clusterName": "paddle_cluster",
            "region": "us-west-2",
            "availabilityZones": ["us-east-1a"],
            "maxWorkerCount": 3,
            "workerCount": 9,
            "workcount": 3,
            "workerDiskSize": "big",
        }
    )
    assert faults == [
        "cluster.yaml: clusterName: is 'paddle_cluster', CloudFormation refuses that; begin with a letter, then "
        'letters, digits and "-" (no "_")',
        "cluster.yaml: availabilityZones: is ['us-east-1a'], us-east-1a not in region us-west-2; name zones such as "
        "us-west-2a",
        "cluster.yaml: workerCount: is 9, above maxWorkerCount 3; lower it or raise maxWorkerCount",
        "cluster.yaml: workerDiskSize: is 'big', no whole number; write one",
        "cluster.yaml: workcount: is no setting; did you mean workerCount?",
    ]


@pytest.mark.parametrize(
    ("setting", "value", "word"),
    [
        ("clusterName", "1st", "begin with a letter"),
        ("clusterName", "a" * 41, "at most 40"),
        ("externalDNSName", "Paddle_", "no DNS name"),
        ("region", "Oregon", "no region"),
        ("availabilityZones", [], "name 1 to 3"),
        ("availabilityZones", ["us-west-2a", "us-west-2a"], "twice"),
        ("availabilityZones", "us-west-2a", "no list"),
        ("kmsKeyArn", "my-key", "no ARN"),
        ("kmsKeyArn", "arn:aws:kms:eu-west-1:123456789012:key/1", "another region"),
        ("workerInstanceType", "large", "no EC2 instance type"),
        ("workerSpot", "maybe", "neither true nor false"),
        ("vpcCIDR", "10.0.0.0/28", "/16 to /22"),
        ("vpcCIDR", "8.8.0.0/16", "private"),
        ("apiAccessCIDRs", ["everyone"], "no IPv4 network"),
        ("kubernetesVersion", 1.30, "in quotes"),
        ("fileSystemId", "efs", "no EFS"),
        ("administratorArn", "me", "no IAM user or role"),
        ("workerCount", -1, "0 or more"),
    ],
)
def test_a_wrong_setting_is_named_with_its_value(
    settings: dict[str, Any], setting: str, value: object, word: str
) -> None:
    (fault,) = faults_of({**settings, setting: value})
    assert fault.startswith(f"cluster.yaml: {setting}")
    assert word in fault


def test_missing_settings_are_named() -> None:
    assert [fault.split(": ")[1] for fault in faults_of({})] == ["clusterName", "region", "availabilityZones"]


def test_what_init_writes_is_what_load_reads(tmp_path: Path, configured: Configured) -> None:
    config = configured(
        clusterName="on",
        keyName="my key: 1",
        kmsKeyArn="arn:aws:kms:us-west-2:123456789012:key/abc",
        workerInstanceType="g4dn.xlarge",
        workerSpot=True,
        workerCount=2,
    )
    Assets(tmp_path).init(config)
    assert Assets(tmp_path).load() == config


def test_init_never_overwrites_an_edited_file(tmp_path: Path, configured: Configured) -> None:
    Assets(tmp_path).init(configured())
    with pytest.raises(BadInput, match="is there already"):
        Assets(tmp_path).init(configured())


def test_scaling_changes_one_number_and_no_comment(tmp_path: Path, configured: Configured) -> None:
    assets = Assets(tmp_path)
    assets.init(configured())
    before = assets.cluster_yaml.read_text().replace("workerCount: 1\n", "workerCount:   1   # few\n", 1)
    assets.cluster_yaml.write_text(before)
    assets.set_worker_count(3)
    assert assets.cluster_yaml.read_text() == before.replace("workerCount:   1   # few", "workerCount: 3   # few")
    assert assets.load().worker_count == 3


def test_a_missing_or_broken_file_is_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="run `pdj aws init` first"):
        Assets(tmp_path).load()
    Assets(tmp_path).cluster_yaml.write_text("a: [")
    with pytest.raises(BadInput, match="cannot be read as YAML"):
        Assets(tmp_path).load()
    Assets(tmp_path).cluster_yaml.write_text("")
    with pytest.raises(BadInput, match="holds no settings"):
        Assets(tmp_path).load()


@pytest.mark.parametrize(
    ("instance_type", "image"),
    [
        ("m5.xlarge", "AL2023_x86_64_STANDARD"),
        ("c7gn.large", "AL2023_ARM_64_STANDARD"),
        ("g4dn.xlarge", "AL2023_x86_64_NVIDIA"),
        ("g4ad.xlarge", "AL2023_x86_64_STANDARD"),
        ("g5g.xlarge", "AL2023_ARM_64_NVIDIA"),
        ("g6e.4xlarge", "AL2023_x86_64_NVIDIA"),
        ("p5.48xlarge", "AL2023_x86_64_NVIDIA"),
        ("u-6tb1.112xlarge", "AL2023_x86_64_STANDARD"),
    ],
)
def test_the_system_image_follows_from_the_instance_type(instance_type: str, image: str) -> None:
    assert ami_type(instance_type) == image


def test_six_subnets_of_the_vpc_do_not_overlap(configured: Configured) -> None:
    import ipaddress

    values = render.parameters(configured(vpcCIDR="10.1.0.0/22"))
    subnets = [ipaddress.ip_network(c) for c in f"{values['PublicCidrs']},{values['PrivateCidrs']}".split(",")]
    assert len(subnets) == 6
    assert all(subnet.subnet_of(ipaddress.ip_network("10.1.0.0/22")) for subnet in subnets)  # type: ignore[arg-type]
    assert not any(a.overlaps(b) for a in subnets for b in subnets if a is not b)
