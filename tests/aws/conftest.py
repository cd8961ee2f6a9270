"""AWS simulated by moto. A test that tries to reach another machine fails (network.py)."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws
from moto.eks.models import eks_backends
from typer.testing import CliRunner

from paddlejob.cli.aws.app import app
from paddlejob.cloud.aws.config.cluster import ClusterConfig, parse_config
from paddlejob.cloud.aws.session import Aws
from paddlejob.cloud.aws.stack.stack import Stack

from . import moto_gaps, network, speedups
from .answers import answer
from .aws_state import client

REGION = "us-west-2"


def pytest_collection_finish() -> None:
    """Exclude what moto and cfn-lint imported from garbage collection: it stays until the end."""
    gc.freeze()


@pytest.fixture(autouse=True)
def reuse_expensive_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    speedups.reuse_expensive_objects(monkeypatch)


@pytest.fixture(autouse=True)
def only_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_SESSION_TOKEN": "testing",
        "AWS_CONFIG_FILE": str(tmp_path / "no-config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "no-credentials"),
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    with network.guarded() as attempts:
        yield
        assert attempts == [], "the test tried to leave this machine"


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"clusterName": "paddle-cluster", "region": REGION, "availabilityZones": ["us-west-2a"]}


@pytest.fixture
def configured(settings: dict[str, Any]) -> Callable[..., ClusterConfig]:
    """A cluster.yaml with a few settings changed."""
    return lambda **changes: parse_config({**settings, **changes}, "cluster.yaml")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, dict[str, Any]]]:
    """moto with its gaps filled. Yields the add-ons and access entries that exist, by type and name."""
    speedups.share_clients(monkeypatch)
    with mock_aws():
        yield moto_gaps.fill(monkeypatch)


@pytest.fixture
def progress() -> list[str]:
    return []


@pytest.fixture
def stack(progress: list[str]) -> Stack:
    quick = {"poll_interval": 0.01, "max_retries": 3, "sleep": lambda _: None}
    return Stack(Aws(REGION), "paddle-cluster", progress.append, "paddle-cluster", **quick)


@pytest.fixture
def pdj(tmp_path: Path) -> Callable[..., str]:
    """Run `pdj aws ...` on the assets in tmp_path and return its output. Errors are raised; `main` would catch them."""

    def run(*arguments: str, answers: str | None = None) -> str:
        result = CliRunner().invoke(app, [*arguments, "--assets", str(tmp_path)], input=answers, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.output

    return run


@pytest.fixture
def facts(tmp_path: Path) -> Callable[..., Any]:
    """Run `pdj aws ... -o json` and return the parsed output."""

    def run(*arguments: str) -> Any:
        options = ["-o", "json", "--assets", str(tmp_path)]
        result = CliRunner().invoke(app, [*arguments, *options], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return run


@pytest.fixture
def initialised(pdj: Callable[..., str]) -> None:
    """The `init` of the tutorial."""
    pdj(
        "init",
        "--cluster-name=paddle-cluster",
        "--external-dns-name=paddle",
        "--region=us-west-2",
        "--availability-zone=us-west-2a",
    )


@pytest.fixture
def versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """What EKS and its public parameters say of versions, which moto does not know."""

    def offers(request: dict[str, Any]) -> dict[str, Any]:
        name = f"v-{request['kubernetesVersion']}"
        old = {"addonVersion": "v-0", "compatibilities": [{"defaultVersion": False}]}
        new = {"addonVersion": name, "compatibilities": [{"defaultVersion": True}]}
        return {"addons": [{"addonVersions": [old, new]}]}

    def parameter(request: dict[str, Any]) -> dict[str, Any]:
        return {"Parameter": {"Value": f"{request['Name'].split('/')[5]}-20261101"}}

    answer(monkeypatch, "DescribeAddonVersions", offers)
    answer(monkeypatch, "GetParameter", parameter)


@pytest.fixture
def theirs(made: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A cluster that somebody else created, with two subnets in one zone and one in another, and its add-ons."""
    ec2 = client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    zones = {"10.9.0.0/24": "us-west-2a", "10.9.1.0/24": "us-west-2a", "10.9.2.0/24": "us-west-2b"}
    subnets = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=cidr, AvailabilityZone=zone)["Subnet"]["SubnetId"]
        for cidr, zone in zones.items()
    ]
    group = ec2.create_security_group(GroupName="theirs", Description="x", VpcId=vpc)["GroupId"]
    role, network = "arn:aws:iam::123456789012:role/r", {"subnetIds": subnets}
    client("eks").create_cluster(name="theirs", roleArn=role, resourcesVpcConfig=network)
    cluster = eks_backends["123456789012"]["us-west-2"].clusters["theirs"]
    cluster.resources_vpc_config["clusterSecurityGroupId"] = group
    addons = ["vpc-cni", "eks-pod-identity-agent"]
    answer(monkeypatch, "ListAddons", lambda _: {"addons": addons})
    return {"vpc": vpc, "subnets": subnets, "group": group, "addons": addons}
