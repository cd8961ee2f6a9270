"""The verbs against a real API server."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from paddlejob.errors import AlreadyExists, Conflict, Forbidden, Gone, Invalid, NoCredentials, NotFound
from paddlejob.kube.access import Access, Credential, client_tls, in_cluster
from paddlejob.kube.client import Client
from paddlejob.kube.resource import CONFIGMAPS, PODS, Resource

from .conftest import ControlPlane, compact
from .support import LONG, configmap, pod


async def test_an_object_is_created_read_changed_and_deleted(client: Client, namespace: str) -> None:
    created = await client.create(CONFIGMAPS, configmap("a", namespace, colour="red"))
    assert (await client.get(CONFIGMAPS, "a", namespace))["data"] == {"colour": "red"}

    created["data"] = {"colour": "green"}
    replaced = await client.replace(CONFIGMAPS, created)
    assert int(replaced["metadata"]["resourceVersion"]) > int(created["metadata"]["resourceVersion"])

    merged = await client.patch(CONFIGMAPS, "a", namespace, {"data": {"size": "1", "colour": None}})
    assert merged["data"] == {"size": "1"}

    await client.delete(CONFIGMAPS, "a", namespace)
    with pytest.raises(NotFound, match='configmaps "a" not found'):
        await client.get(CONFIGMAPS, "a", namespace)


async def test_a_status_is_written_apart_from_the_spec(client: Client, namespace: str) -> None:
    made = await client.create(PODS, pod("p", namespace))
    made["status"] = {"phase": "Running", "podIP": "10.0.0.7"}
    made["metadata"]["labels"] = {"not": "written"}
    written = await client.replace_status(PODS, made)
    assert written["status"]["podIP"] == "10.0.0.7"
    patched = await client.patch(PODS, "p", namespace, {"status": {"phase": "Failed"}}, subresource="status")
    assert patched["status"]["phase"] == "Failed"


async def test_a_name_can_be_used_once(client: Client, namespace: str) -> None:
    await client.create(CONFIGMAPS, configmap("a", namespace))
    with pytest.raises(AlreadyExists) as error:
        await client.create(CONFIGMAPS, configmap("a", namespace))
    assert error.value.code == 409


async def test_a_write_over_a_version_that_is_no_longer_current_is_a_conflict(client: Client, namespace: str) -> None:
    old = await client.create(CONFIGMAPS, configmap("a", namespace))
    await client.patch(CONFIGMAPS, "a", namespace, {"data": {"x": "1"}})
    with pytest.raises(Conflict) as error:
        await client.replace(CONFIGMAPS, old)
    assert not isinstance(error.value, AlreadyExists)


async def test_a_delete_with_another_objects_uid_deletes_nothing(client: Client, namespace: str) -> None:
    kept = await client.create(CONFIGMAPS, configmap("a", namespace))
    with pytest.raises(Conflict, match="UID"):
        await client.delete(CONFIGMAPS, "a", namespace, uid="11111111-2222-3333-4444-555555555555")
    await client.delete(CONFIGMAPS, "a", namespace, uid=kept["metadata"]["uid"])
    assert await client.list(CONFIGMAPS, namespace, label_selector="app=test") == []


async def test_a_pod_may_be_deleted_without_grace(client: Client, namespace: str) -> None:
    await client.create(PODS, pod("p", namespace))
    await client.delete(PODS, "p", namespace, grace_seconds=0, propagation="Background")
    with pytest.raises(NotFound):
        await client.get(PODS, "p", namespace)


@pytest.mark.parametrize(("phase", "left"), [("Running", True), ("Failed", False), ("Succeeded", False)])
async def test_a_pod_that_has_ended_is_removed_at_once_whatever_grace_period_is_given(
    client: Client, namespace: str, phase: str, left: bool
) -> None:
    """So nothing but time lets its kubelet unmount the volumes first (plan/restarts/shutdown.py)."""
    made = pod("p", namespace)
    made["spec"]["nodeName"] = "node-1"
    await client.create(PODS, made)
    await client.patch(PODS, "p", namespace, {"status": {"phase": phase}}, subresource="status")
    response = await client.delete(PODS, "p", namespace, grace_seconds=30)
    assert response["metadata"]["deletionGracePeriodSeconds"] == (30 if left else 0)
    assert bool(await client.list(PODS, namespace)) is left


async def test_an_invalid_object_is_rejected_with_the_field(client: Client, namespace: str) -> None:
    broken = pod("p", namespace)
    broken["spec"]["containers"] = []
    with pytest.raises(Invalid, match=r"spec\.containers") as error:
        await client.create(PODS, broken)
    assert error.value.code == 422


async def test_a_user_without_permission_is_forbidden(client: Client, stranger: Access, namespace: str) -> None:
    async with Client(stranger) as other:
        with pytest.raises(Forbidden, match="cannot create resource"):
            await other.create(CONFIGMAPS, configmap("a", namespace))


async def test_a_pods_service_account_is_known_to_the_server(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = control_plane.kubectl("create", "token", "default", "-n", namespace).stdout
    authority = control_plane.kubectl(
        "get", "configmap", "kube-root-ca.crt", "-n", namespace, "-o", r"jsonpath={.data.ca\.crt}"
    ).stdout
    (tmp_path / "token").write_text(token)
    (tmp_path / "ca.crt").write_text(authority)
    (tmp_path / "namespace").write_text(namespace)
    server = urlsplit(control_plane.url)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", str(server.hostname))
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.port))
    async with Client(in_cluster(tmp_path)) as inside:
        with pytest.raises(Forbidden, match=f"system:serviceaccount:{namespace}:default"):
            await inside.list(PODS, inside.access.namespace)


async def test_an_unknown_token_is_rejected(client: Client) -> None:
    tls = client_tls(verify=False)
    unknown = Access(client.access.server, tls=tls, fetch=lambda: Credential("Bearer wrong"))
    async with Client(unknown) as other:
        with pytest.raises(NoCredentials, match="rejected the credentials"):
            await other.list(PODS)


async def test_a_long_list_comes_in_pages_of_one_resource_version(client: Client, namespace: str) -> None:
    await asyncio.gather(*(client.create(CONFIGMAPS, configmap(f"c{n}", namespace)) for n in range(25)))
    sizes: list[int] = []
    versions: set[str] = set()
    names: set[str] = set()
    pages = client.pages(CONFIGMAPS, namespace, label_selector="app=test", size=10)
    async for page in pages:
        if not sizes:
            await client.create(CONFIGMAPS, configmap("too-late", namespace))
        sizes.append(len(page.items))
        versions.add(page.version)
        names |= {item["metadata"]["name"] for item in page.items}
    assert sizes == [10, 10, 5]
    assert len(versions) == 1
    assert names == {f"c{n}" for n in range(25)}
    assert len(await client.list(CONFIGMAPS, namespace, label_selector="app=test")) == 26


async def test_lists_select_by_label_and_by_field(client: Client, namespace: str) -> None:
    await client.create(PODS, pod("a", namespace, role="ps"))
    await client.create(PODS, pod("b", namespace, role="worker"))
    by_label = await client.list(PODS, namespace, label_selector="role=ps")
    by_field = await client.list(PODS, namespace, field_selector="metadata.name=b")
    assert [item["metadata"]["name"] for item in by_label + by_field] == ["a", "b"]


async def test_a_watch_sees_what_happens_after_the_version_it_was_given(client: Client, namespace: str) -> None:
    before = await client.create(CONFIGMAPS, configmap("before", namespace))
    await client.create(CONFIGMAPS, configmap("a", namespace))
    await client.patch(CONFIGMAPS, "a", namespace, {"data": {"x": "1"}})
    await client.delete(CONFIGMAPS, "a", namespace)
    seen: list[tuple[str, str]] = []
    watch = client.watch(
        CONFIGMAPS,
        namespace,
        version=before["metadata"]["resourceVersion"],
        label_selector="app=test",
        seconds=60,
    )
    async with asyncio.timeout(LONG), aclosing(watch):
        async for event in watch:
            seen.append((event.type, event.object["metadata"]["name"]))
            if event.type == "DELETED":
                break
    assert seen == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


async def test_a_watch_ends_after_its_timeout(client: Client, namespace: str) -> None:
    [version] = [page.version async for page in client.pages(CONFIGMAPS, namespace, size=0)]
    opened: list[bool] = []
    watch = client.watch(CONFIGMAPS, namespace, version=version, seconds=1, opened=lambda: opened.append(True))
    async with asyncio.timeout(LONG):
        assert [event.type async for event in watch if event.type != "BOOKMARK"] == []
    assert opened == [True]


async def test_a_watch_from_a_version_long_compacted_is_gone(
    client: Client, namespace: str, control_plane: ControlPlane
) -> None:
    await asyncio.to_thread(control_plane.kill_apiserver)
    await asyncio.to_thread(compact, control_plane)
    await asyncio.to_thread(control_plane.start_apiserver)
    with pytest.raises(Gone):
        async with asyncio.timeout(LONG):
            _ = [event async for event in client.watch(CONFIGMAPS, namespace, version="1", seconds=5)]


async def test_a_kind_that_is_not_installed_is_not_found(client: Client, namespace: str) -> None:
    with pytest.raises(NotFound):
        await client.list(Resource("scheduling.volcano.sh", "v1beta1", "podgroups"), namespace)
