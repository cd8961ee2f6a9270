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
from tests.support.log_server import LogServer
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
    with OperatorProcess(operator_kubeconfig, log, agents=True) as process:
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


@pytest.fixture
async def logs(installed: ControlPlane, namespace: str) -> AsyncIterator[LogServer]:
    """A node with the name of the namespace, whose pods print what a test writes."""
    async with LogServer(installed) as server:
        server.create_node(namespace)
        yield server
        installed.kubectl("delete", "node", namespace)


@pytest.fixture(scope="module")
def own_plane(own_control_plane: ControlPlane) -> ControlPlane:
    """A control plane that the tests of a module may break, without an operator."""
    install(own_control_plane)
    return own_control_plane


@pytest.fixture
def own_namespace(own_plane: ControlPlane, request: pytest.FixtureRequest) -> str:
    name = f"n-{abs(hash(request.node.name)) % 10**8}"
    own_plane.create_namespace(name)
    return name


@pytest.fixture
async def own_client(own_plane: ControlPlane) -> AsyncIterator[Client]:
    async with Client(find_access(str(own_plane.kubeconfig))) as client:
        yield client


@pytest.fixture
async def own_stage(own_client: Client, own_namespace: str) -> AsyncIterator[OperatorStage]:
    async with Kubelet(own_client, own_namespace) as kubelet:
        yield OperatorStage(own_client, kubelet, own_namespace)
