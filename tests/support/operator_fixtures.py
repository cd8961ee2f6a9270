"""Fixtures for tests that run the operator with the manifests and the service account of deploy/v1."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from paddlejob.kube.access import find_access
from paddlejob.kube.client import Client
from testbed.controlplane import ControlPlane
from tests.support.kubelet import Kubelet
from tests.support.operator_process import OperatorProcess
from tests.support.operator_stage import OperatorStage

ROOT = Path(__file__).parent.parent.parent
ACCOUNT = ("paddle-system", "paddle-controller-manager")


def install(plane: ControlPlane, deploy: Path = ROOT / "deploy") -> None:
    """Create the CRD and the objects of operator.yaml; without nodes, the Deployment does not run."""
    plane.kubectl("create", "-f", str(deploy / "v1/crd.yaml"))
    plane.kubectl("create", "-f", str(deploy / "v1/operator.yaml"))
    ends = time.monotonic() + 60
    while plane.kubectl("get", "pdj", check=False).returncode:
        assert time.monotonic() < ends, "the API server does not serve the CRD"
        time.sleep(0.2)
    plane.restart_controllers()


@pytest.fixture(scope="session")
def installed(control_plane: ControlPlane) -> ControlPlane:
    install(control_plane)
    return control_plane


@pytest.fixture(scope="session")
def operator_kubeconfig(installed: ControlPlane) -> Path:
    return Path(installed.kubeconfig_for(*ACCOUNT))


@pytest.fixture(scope="session")
def operator(operator_kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatorProcess]:
    """One operator for all tests that do not kill it."""
    log = tmp_path_factory.mktemp("operator") / "log"
    with OperatorProcess(operator_kubeconfig, log) as process:
        process.until_ready()
        yield process


@pytest.fixture
async def admin(installed: ControlPlane) -> AsyncIterator[Client]:
    async with Client(find_access(str(installed.kubeconfig))) as client:
        yield client


@pytest.fixture
async def kubelet(admin: Client, namespace: str) -> AsyncIterator[Kubelet]:
    async with Kubelet(admin, namespace) as kubelet:
        yield kubelet


@pytest.fixture
def stage(operator: OperatorProcess, admin: Client, kubelet: Kubelet, namespace: str) -> OperatorStage:
    return OperatorStage(admin, kubelet, namespace)
