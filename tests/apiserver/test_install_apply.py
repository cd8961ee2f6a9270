"""Server-side apply and discovery, against a real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from paddlejob.errors import Conflict, Invalid, NotFound
from paddlejob.kube.access import find_access
from paddlejob.kube.client import Client
from paddlejob.kube.discovery import Discovery
from paddlejob.kube.resource import CONFIGMAPS, DEPLOYMENTS, NAMESPACES, Object
from testbed.controlplane import ControlPlane


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[Client]:
    async with Client(find_access(str(control_plane.kubeconfig))) as client:
        yield client


def configmap(namespace: str, **data: str) -> Object:
    metadata = {"name": "colours", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


async def test_what_is_applied_again_loses_what_it_no_longer_says(client: Client, namespace: str) -> None:
    await client.apply(CONFIGMAPS, configmap(namespace, sky="blue", grass="green"), manager="gardener")
    await client.patch(CONFIGMAPS, "colours", namespace, {"data": {"snow": "white"}})
    await client.apply(CONFIGMAPS, configmap(namespace, sky="grey"), manager="gardener")
    found = await client.get(CONFIGMAPS, "colours", namespace)
    assert found["data"] == {"sky": "grey", "snow": "white"}, "what another wrote stays"


async def test_a_field_of_another_manager_is_a_conflict_unless_forced(client: Client, namespace: str) -> None:
    await client.apply(CONFIGMAPS, configmap(namespace, sky="blue"), manager="one")
    with pytest.raises(Conflict, match=r"conflict.*\"one\""):
        await client.apply(CONFIGMAPS, configmap(namespace, sky="red"), manager="two")
    await client.apply(CONFIGMAPS, configmap(namespace, sky="red"), manager="two", force=True)
    assert (await client.get(CONFIGMAPS, "colours", namespace))["data"] == {"sky": "red"}


async def test_a_dry_run_checks_and_stores_nothing(client: Client, namespace: str) -> None:
    await client.apply(CONFIGMAPS, configmap(namespace, sky="blue"), manager="one", dry_run=True)
    await client.create(CONFIGMAPS, configmap(namespace, sky="blue"), dry_run=True)
    with pytest.raises(NotFound):
        await client.get(CONFIGMAPS, "colours", namespace)
    wrong = configmap(namespace, **{"not a key": "blue"})
    with pytest.raises(Invalid):
        await client.create(CONFIGMAPS, wrong, dry_run=True)


async def test_the_server_says_what_it_serves(client: Client) -> None:
    discovery = Discovery(client)
    assert await discovery.resource("v1", "Namespace") == NAMESPACES
    assert await discovery.resource("apps/v1", "Deployment") == DEPLOYMENTS
    assert await discovery.resource("apps/v1", "Podgroup") is None
    assert await discovery.resource("scheduling.volcano.sh/v1beta1", "PodGroup") is None
