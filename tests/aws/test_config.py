"""The settings of cluster.yaml and their error messages."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from cfnlint.decode.decode import decode_str
from moto.ec2.models.instance_types import INSTANCE_TYPES

from paddlejob.cloud.aws.config.cluster import parse_config
from paddlejob.cloud.aws.config.instances import ami_type
from paddlejob.cloud.aws.templates import render
from paddlejob.errors import BadInput

from .kinds import Configured


def problems_of(settings: dict[str, Any]) -> list[str]:
    with pytest.raises(BadInput) as rejected:
        parse_config(settings, "cluster.yaml")
    return str(rejected.value).splitlines()


def test_every_fault_is_listed_at_once_with_field_value_and_remedy() -> None:
    problems = problems_of(
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
    assert problems == [
        "cluster.yaml: clusterName: 'paddle_cluster' is not a valid stack name; start with a letter, then use "
        'letters, digits and "-" (no "_")',
        "cluster.yaml: availabilityZones: ['us-east-1a'] has zones outside region us-west-2 (us-east-1a); use zones "
        "such as us-west-2a",
        "cluster.yaml: workerCount: 9 is above maxWorkerCount 3; lower it or raise maxWorkerCount",
        "cluster.yaml: workerDiskSize: 'big' is not an integer; use one, without quotes",
        "cluster.yaml: workcount: unknown setting; did you mean workerCount?",
    ]


@pytest.mark.parametrize(
    ("setting", "value", "word"),
    [
        ("clusterName", "1st", "start with a letter"),
        ("clusterName", "a" * 39, "at most 38"),
        ("clusterName", True, "is not a string; put it in quotes"),
        ("clusterName", None, "has no value; set one or remove the line"),
        ("externalDNSName", "a" * 64, "is not a DNS name"),
        ("externalDNSName", "Paddle_", "is not a DNS name"),
        ("region", "Oregon", "is not a region"),
        ("availabilityZones", [], "list 1 to 3"),
        ("availabilityZones", ["us-west-2a", "us-west-2a"], "twice"),
        ("availabilityZones", "us-west-2a", "is not a list"),
        ("availabilityZones", ["us-west-2a", 5], "availabilityZones.1: 5 is not a string"),
        ("kmsKeyArn", "my-key", "is not the ARN of a KMS key"),
        ("kmsKeyArn", "arn:aws:kms:eu-west-1:123456789012:key/1", "another region"),
        ("workerInstanceType", "large", "is not an EC2 instance type"),
        ("workerSpot", "maybe", "is not a boolean; use true or false"),
        ("vpcCIDR", "10.0.0.0/28", "/16 to /22"),
        ("vpcCIDR", "8.8.0.0/16", "private"),
        ("vpcCIDR", "169.254.0.0/16", "private"),
        ("vpcCIDR", "10.0.0.1/16", "is not an IPv4 network"),
        ("apiAccessCIDRs", [], "is empty; list at least one"),
        ("apiAccessCIDRs", ["10.1.0.0/16"], "cannot connect over the internet"),
        ("apiAccessCIDRs", ["everyone"], "is not an IPv4 network"),
        ("kubernetesVersion", 1.30, "is a number in YAML, where 1.30 equals 1.3; put it in quotes"),
        ("fileSystemId", "efs", "is not an EFS"),
        ("capacityReservationId", "mine", "is not a capacity reservation"),
        ("efa", "yes", "is not a boolean"),
        ("administratorArn", "me", "is not an IAM user or role"),
        ("workerCount", -1, "0 or more"),
        ("workerCount", True, "is not an integer"),
        ("workerCount", 1.5, "is not an integer"),
        ("workerCount", "3", "is not an integer"),
        ("maxWorkerCount", 451, "450 or less"),
        ("workerDiskSize", 8, "20 or more"),
    ],
)
def test_a_wrong_setting_is_named_with_its_value(
    settings: dict[str, Any], setting: str, value: object, word: str
) -> None:
    (problem,) = problems_of({**settings, setting: value})
    assert problem.startswith(f"cluster.yaml: {setting}")
    assert word in problem


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"efa": True}, "efa: its traffic does not cross zones; list one zone in availabilityZones"),
        (
            {"capacityReservationId": "cr-0123456789abcdef0"},
            "capacityReservationId is for one zone and not for spot nodes; list one zone, without spot",
        ),
    ],
)
def test_settings_that_do_not_go_together_are_rejected(
    settings: dict[str, Any], changes: dict[str, Any], problem: str
) -> None:
    zones = {"availabilityZones": ["us-west-2a", "us-west-2b"]}
    assert problems_of({**settings, **zones, **changes}) == [f"cluster.yaml: {problem}"]
    parse_config({**settings, **changes}, "cluster.yaml")
    if "efa" not in changes:
        assert problems_of({**settings, **changes, "workerSpot": True}) == [f"cluster.yaml: {problem}"]


@pytest.mark.parametrize(
    ("setting", "accepted", "rejected"),
    [
        ("clusterName", "a" * 38, "a" * 39),
        ("externalDNSName", "a" * 63, "a" * 64),
        ("externalDNSName", ".".join(["a" * 59] * 4), ".".join(["a" * 60] * 4)),
        ("maxWorkerCount", 1, 0),
        ("maxWorkerCount", 450, 451),
        ("workerCount", 0, -1),
        ("workerCount", 10, 11),
        ("workerDiskSize", 20, 19),
        ("workerDiskSize", 16384, 16385),
        ("vpcCIDR", "10.0.0.0/16", "10.0.0.0/15"),
        ("vpcCIDR", "192.168.4.0/22", "192.168.4.0/23"),
        ("vpcCIDR", "172.31.0.0/16", "172.32.0.0/16"),
        ("availabilityZones", ["us-west-2a", "us-west-2b", "us-west-2c"], [f"us-west-2{zone}" for zone in "abcd"]),
        ("kubernetesVersion", "1.36", "1.360"),
        ("kubernetesVersion", "1.36", "2.36"),
        ("fileSystemId", "fs-01234567", "fs-0123456"),
        ("administratorArn", "arn:aws:iam::123456789012:user/me", "arn:aws:iam::123456789012:group/us"),
        ("kmsKeyArn", "arn:aws-cn:kms:us-west-2:123456789012:key/1", "arn:aws:kms:us-west-2:123456789012:alias/mine"),
        ("apiAccessCIDRs", ["172.32.0.0/16"], ["203.0.113.7/32", "172.31.0.0/16"]),
    ],
)
def test_a_value_is_accepted_up_to_its_limit(
    configured: Configured, setting: str, accepted: object, rejected: object
) -> None:
    configured(**{setting: accepted})
    with pytest.raises(BadInput, match=rf"cluster\.yaml: {setting}: "):
        configured(**{setting: rejected})


@pytest.mark.parametrize(
    "changes",
    [
        {"region": "Oregon", "kmsKeyArn": "arn:aws:kms:us-west-2:123456789012:key/1"},
        {"maxWorkerCount": 0, "workerCount": 3},
    ],
)
def test_a_problem_is_not_reported_again_for_what_is_compared_with_the_setting(
    settings: dict[str, Any], changes: dict[str, Any]
) -> None:
    (problem,) = problems_of({**settings, **changes})
    assert problem.split(": ")[1] == next(iter(changes))


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        *(("workerCount", 1), ("maxWorkerCount", 10), ("workerInstanceType", "m5.xlarge"), ("workerSpot", False)),
        *(("workerDiskSize", 100), ("keyName", "mine"), ("efa", False)),
        ("capacityReservationId", "cr-0123456789abcdef0"),
    ],
)
def test_each_setting_of_nodes_is_rejected_with_auto_mode_even_with_its_default(
    configured: Configured, setting: str, value: object
) -> None:
    with pytest.raises(BadInput, match=f"ignores {setting}; remove what it ignores"):
        configured(autoMode=True, **{setting: value})


def test_missing_settings_are_named() -> None:
    assert [problem.split(": ")[1] for problem in problems_of({})] == ["clusterName", "region", "availabilityZones"]


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
        ("p6e-gb200.36xlarge", "AL2023_ARM_64_NVIDIA"),
        ("u-6tb1.112xlarge", "AL2023_x86_64_STANDARD"),
    ],
)
def test_the_system_image_follows_from_the_instance_type(instance_type: str, image: str) -> None:
    assert ami_type(instance_type) == image


def test_it_agrees_with_what_ec2_says_of_every_instance_type() -> None:
    seen = Counter(_expected_image(item) for item in INSTANCE_TYPES.values())
    assert min(seen[image] for image in ("AL2023_x86_64_NVIDIA", "AL2023_ARM_64_STANDARD")) > 30
    wrong = {
        name: (ami_type(name), _expected_image(item))
        for name, item in INSTANCE_TYPES.items()
        if ami_type(name) != _expected_image(item)
    }
    assert wrong == {}


def _expected_image(item: dict[str, Any]) -> str:
    """By architecture and maker of the GPU, as the EC2 API describes a type (moto has a copy)."""
    arm = "arm64" in item["ProcessorInfo"]["SupportedArchitectures"]
    makers = {gpu["Manufacturer"] for gpu in item.get("GpuInfo", {}).get("Gpus", [])}
    return f"AL2023_{'ARM_64' if arm else 'x86_64'}_{'NVIDIA' if 'NVIDIA' in makers else 'STANDARD'}"


def test_six_subnets_of_the_vpc_do_not_overlap(configured: Configured) -> None:
    import ipaddress

    config = configured(vpcCIDR="10.1.0.0/22", availabilityZones=["us-west-2a", "us-west-2b", "us-west-2c"])
    made = decode_str(render.cluster_template(config, render.parameters(config)).text)[0]["Resources"].values()
    subnets = [
        ipaddress.ip_network(one["Properties"]["CidrBlock"]) for one in made if one["Type"] == "AWS::EC2::Subnet"
    ]
    assert len(subnets) == 6
    assert all(subnet.subnet_of(ipaddress.ip_network("10.1.0.0/22")) for subnet in subnets)  # type: ignore[arg-type]
    assert not any(a.overlaps(b) for a in subnets for b in subnets if a is not b)
