"""AWS simulated by moto. A test that tries to reach another machine fails (network.py)."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws
from typer.testing import CliRunner

from paddlejob.cli.aws.app import app
from paddlejob.cloud.aws.config.cluster import ClusterConfig, parse_config
from paddlejob.cloud.aws.session import Aws
from paddlejob.cloud.aws.stack.stack import Stack

from . import moto_gaps, network, speedups

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
    items, call = Aws.items, Aws.call

    def offers(self: Aws, service: str, operation: str, key: str, **request: Any) -> list[Any]:
        if operation != "describe_addon_versions":
            return items(self, service, operation, key, **request)
        name = f"v-{request['kubernetesVersion']}"
        old = {"addonVersion": "v-0", "compatibilities": [{"defaultVersion": False}]}
        return [{"addonVersions": [old, {"addonVersion": name, "compatibilities": [{"defaultVersion": True}]}]}]

    def parameter(self: Aws, service: str, operation: str, **request: Any) -> dict[str, Any]:
        if operation != "get_parameter":
            return call(self, service, operation, **request)
        return {"Parameter": {"Value": f"{request['Name'].split('/')[5]}-20261101"}}

    monkeypatch.setattr(Aws, "items", offers)
    monkeypatch.setattr(Aws, "call", parameter)
