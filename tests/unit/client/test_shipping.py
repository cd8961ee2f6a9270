"""Code that is shipped with a submitted job: described, stored in ConfigMaps, shared, and never left half stored."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from paddlejob import contract
from paddlejob.client.start.shipment import MOST_SHOWN, Shipment, create_config_maps, create_or_share, ship
from paddlejob.client.start.submission import Submission
from paddlejob.code.archive import Archive, pack
from paddlejob.errors import BadInput, NotPossible
from paddlejob.kube.client import Client
from tests.support.builders import document
from tests.support.scripted_cluster import Object, ScriptedCluster, Serve, failure


def an(kind: str, name: str = "one", **metadata: Any) -> Object:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **metadata}}


def a_job(name: str = "mnist", **metadata: Any) -> Object:
    made = document(name)
    made["metadata"] = {"name": name, **metadata}
    return made


@pytest.fixture
async def api() -> ScriptedCluster:
    return ScriptedCluster()


OWNER = {"uid": "uid-of-mnist", "name": "mnist"}


def config_map(**metadata: Any) -> Object:
    made = an("ConfigMap", "code-1-0", **{"namespace": "team", "labels": {contract.LABEL_CODE: "1"}, **metadata})
    return {**made, "binaryData": {"part-000": "Y29kZQ=="}}


async def test_code_that_another_job_has_stored_gets_one_more_owner(api: ScriptedCluster, client: Client):
    path = "team/configmaps/code-1-0"
    api.put(path, config_map(ownerReferences=[{"uid": "of-another"}]))
    await create_or_share(client, config_map(ownerReferences=[OWNER]), OWNER)
    assert [one["uid"] for one in api.objects[path]["metadata"]["ownerReferences"]] == ["of-another", "uid-of-mnist"]
    (patched,) = api.written("PATCH")
    assert patched.body["metadata"]["resourceVersion"], "so that another owner is not lost"
    await create_or_share(client, config_map(ownerReferences=[OWNER]), OWNER)
    assert len(api.written("PATCH")) == 1, "it is an owner already"


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({**config_map(), "binaryData": {"part-000": "cGxhbnRlZA=="}}, "exists and holds something else; delete it"),
        ({**config_map(), "data": {"part-001": "more"}}, "exists and holds something else; delete it"),
        (config_map(deletionTimestamp="2027-01-15T08:00:00Z"), "ConfigMap code-1-0 is being deleted; try again"),
    ],
)
async def test_a_config_map_that_cannot_be_shared_is_one_message(
    api: ScriptedCluster, client: Client, found: Object, message: str
):
    """Whoever may create ConfigMaps could plant one before the code is submitted."""
    api.put("team/configmaps/code-1-0", found)
    with pytest.raises(NotPossible, match=message):
        await create_or_share(client, config_map(), OWNER)


async def test_a_config_map_that_changes_meanwhile_is_tried_again_for_a_while(api: ScriptedCluster, client: Client):
    path = "team/configmaps/code-1-0"
    api.put(path, config_map())
    answers = iter([failure(409, "Conflict"), failure(404, "NotFound")])
    api.answers["PATCH", path] = lambda body: next(answers, (200, body))
    await create_or_share(client, config_map(), OWNER)
    assert len(api.written("PATCH")) == 3
    api.answers["PATCH", path] = failure(409, "Conflict")
    with pytest.raises(NotPossible, match="code-1-0 in namespace team changes all the time; try again"):
        await create_or_share(client, config_map(), OWNER)


async def test_if_the_code_cannot_be_stored_no_job_is_left_behind(api: ScriptedCluster, client: Client):
    api.put("team/paddlejobs/mnist", a_job(namespace="team"))
    api.answers["POST", "team/configmaps"] = failure(403, "Forbidden", "no ConfigMaps for you")
    sent = Submission((a_job(namespace="team"), a_job("gone", namespace="team")))
    with pytest.raises(NotPossible, match=r"so nothing was submitted; ask for permission .*no ConfigMaps for you"):
        await create_config_maps(client, sent, Archive(b"x", ("train.py",), ()))
    deleted = api.written("DELETE")
    assert [one.path for one in deleted] == ["team/paddlejobs/mnist", "team/paddlejobs/gone"]
    assert {one.body["propagationPolicy"] for one in deleted} == {"Background"}


def test_what_is_shipped_is_described(tmp_path: Path):
    assert Shipment(Archive(b"x" * 1536, ("a", "b"), ()), "src").description.endswith(
        ": 2 files of src, 1.5 KiB packed"
    )
    ignored = tuple(f"i{number}" for number in range(MOST_SHOWN + 1))
    few = Shipment(Archive(b"", ("a",), ignored[:-1]), "src").description
    assert few.endswith(f"; left out: {', '.join(ignored[:-1])}")
    many = Shipment(Archive(b"", ("a",), ignored), "src").description
    assert many.endswith(f"; left out: {', '.join(ignored[:-1])}, ...")


def test_only_jobs_get_the_code_and_the_program_is_part_of_it(tmp_path: Path):
    (tmp_path / "train.py").write_text("")
    read = Submission((an("Secret"), a_job()))
    shipped, shipment = ship(read, str(tmp_path), "train.py")
    assert shipped.documents[0] == an("Secret")
    assert contract.ANNOTATION_CODE in shipped.documents[1]["metadata"]["annotations"]
    assert (shipment.archive.files, shipment.directory) == (("train.py",), str(tmp_path))
    assert ship(read, str(tmp_path))[1] == shipment, "a job file names no program"
    with pytest.raises(BadInput, match=r"code .* does not ship main\.py; .*check \.gitignore and \.pdjignore"):
        ship(read, str(tmp_path), "main.py")


async def test_a_job_is_deleted_if_ctrl_c_comes_while_its_code_is_stored(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    storing, asked = asyncio.Event(), []

    async def handle(request: web.Request) -> web.Response:
        asked.append(f"{request.method} {request.path.rpartition('/')[2]}")
        if request.path.endswith("configmaps"):
            storing.set()
            await asyncio.sleep(600)
        job = document("mnist")
        return web.json_response({**job, "metadata": {**job["metadata"], "uid": "u-1"}})

    async with Client(await serve(handle)) as client:
        submission = Submission((document("mnist"),))
        task = asyncio.create_task(create_config_maps(client, submission, pack(str(tmp_path))))
        await storing.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert asked == ["GET mnist", "POST configmaps", "DELETE mnist"]
