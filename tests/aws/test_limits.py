"""The largest and smallest values of cluster.yaml that are accepted, and what a short file means."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paddlejob.cloud.aws.config.assets import Assets
from paddlejob.cloud.aws.config.cluster import ClusterConfig, parse_config
from paddlejob.errors import BadInput

Configured = Callable[..., ClusterConfig]
NAMED = ("--cluster-name=paddle-cluster", "--region=us-west-2", "--availability-zone=us-west-2a")


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


def test_a_problem_with_the_region_is_not_reported_again_for_what_is_compared_with_it(settings: dict[str, Any]) -> None:
    key = {"kmsKeyArn": "arn:aws:kms:us-west-2:123456789012:key/1"}
    with pytest.raises(BadInput) as rejected:
        parse_config({**settings, **key, "region": "Oregon"}, "cluster.yaml")
    assert [line.split(": ")[1] for line in str(rejected.value).splitlines()] == ["region"]
    with pytest.raises(BadInput) as rejected:
        parse_config({**settings, "maxWorkerCount": 0, "workerCount": 3}, "cluster.yaml")
    assert [line.split(": ")[1] for line in str(rejected.value).splitlines()] == ["maxWorkerCount"]


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


def test_a_reservation_is_not_for_spot_nodes(configured: Configured) -> None:
    reserved = {"capacityReservationId": "cr-0123456789abcdef0"}
    assert configured(**reserved).capacity_reservation_id
    with pytest.raises(BadInput, match="is for one zone and not for spot nodes"):
        configured(**reserved, workerSpot=True)


def test_a_file_with_three_settings_is_the_cluster_that_init_writes(
    pdj: Callable[..., str], configured: Configured, tmp_path: Path
) -> None:
    pdj("init", *NAMED)
    assert Assets(tmp_path).load() == configured()


def test_init_leaves_space_to_scale_whatever_it_begins_with(pdj: Callable[..., str], tmp_path: Path) -> None:
    found = []
    for workers in (2, 10, 11):
        pdj("init", *NAMED, f"--workers={workers}", "--instance-type=g4dn.xlarge", "--spot", "--replace")
        config = Assets(tmp_path).load()
        found.append((config.worker_count, config.max_worker_count))
        assert (config.worker_instance_type, config.worker_spot) == ("g4dn.xlarge", True)
    assert found == [(2, 10), (10, 10), (11, 11)]


def test_init_writes_the_optional_settings_that_it_is_given(pdj: Callable[..., str], tmp_path: Path) -> None:
    key = "arn:aws:kms:us-west-2:123456789012:key/1"
    pdj("init", *NAMED, f"--kms-key-arn={key}", "--key-name=mine", "--external-dns-name=paddle")
    config = Assets(tmp_path).load()
    assert (config.kms_key_arn, config.key_name, config.external_dns_name) == (key, "mine", "paddle")
