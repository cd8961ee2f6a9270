"""Fixtures for tests with a real Kueue in a control plane of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from paddlejob.kube.access import find_access
from paddlejob.kube.client import Client
from testbed.addons.kueue import Kueue
from testbed.controlplane import ControlPlane
from tests.support.kubelet import Kubelet
from tests.support.kueue_team import Team
from tests.support.operator_fixtures import install


@pytest.fixture(scope="module")
def kueue_plane(own_control_plane: ControlPlane, kueue: Kueue) -> ControlPlane:
    install(own_control_plane)
    return own_control_plane


@pytest.fixture
async def client(kueue_plane: ControlPlane) -> AsyncIterator[Client]:
    async with Client(find_access(str(kueue_plane.kubeconfig))) as client:
        yield client


@pytest.fixture
def own_namespace(kueue_plane: ControlPlane, request: pytest.FixtureRequest) -> str:
    name = f"n-{abs(hash(request.node.name)) % 10**8}"
    kueue_plane.create_namespace(name)
    return name


@pytest.fixture
async def kubelet(client: Client, own_namespace: str) -> AsyncIterator[Kubelet]:
    async with Kubelet(client, own_namespace) as kubelet:
        yield kubelet


@pytest.fixture
def team(client: Client, kubelet: Kubelet, own_namespace: str) -> Team:
    return Team(client, kubelet, own_namespace)
