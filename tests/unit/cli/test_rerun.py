"""`pdj rerun` on a cluster that is scripted: what is kept of a job, and in which order it is replaced."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer

from paddlejob import contract
from paddlejob.cli.verbs.jobs.rerun import _submit_again, fresh_document
from paddlejob.errors import NotPossible
from paddlejob.kube.access import Access
from paddlejob.kube.client import Client
from tests.support.builders import document
from tests.support.scripted_api import Object, ScriptedApi, failure

JOB, CODE = "default/paddlejobs/mnist", "default/configmaps/code-abc-0"


def ended() -> Object:
    made = document(suspend=False)
    made["metadata"] |= {
        "namespace": "default", "uid": "uid-of-mnist", "generation": 3, "resourceVersion": "9",
        "labels": {"team": "vision"}, "managedFields": [{}], "finalizers": ["x/y"],
        "annotations": {contract.ANNOTATION_CODE: "abc/1", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
    }  # fmt: skip
    return {**made, "status": {"phase": "Completed"}}


@pytest.fixture
def api() -> ScriptedApi:
    metadata = {"namespace": "default", "labels": {contract.LABEL_CODE: "abc"}}
    code = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "binaryData": {"0": "eA=="}}
    return ScriptedApi((JOB, ended()), (CODE, code))


@pytest.fixture
async def client(api: ScriptedApi) -> AsyncIterator[Client]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", api.respond)
    async with TestServer(app) as server, Client(Access(str(server.make_url("")).rstrip("/"))) as made:
        yield made


def test_a_job_keeps_what_a_user_has_written_and_nothing_that_a_server_has():
    fresh = fresh_document({**ended(), "spec": {**ended()["spec"], "suspend": True}})
    assert fresh["metadata"] == {
        "name": "mnist",
        "namespace": "default",
        "labels": {"team": "vision"},
        "annotations": {contract.ANNOTATION_CODE: "abc/1"},
    }
    assert "suspend" not in fresh["spec"] and "status" not in fresh
    assert (fresh["apiVersion"], fresh["kind"]) == ("batch.paddlepaddle.org/v1", "PaddleJob")


async def test_a_job_that_the_cluster_would_reject_is_not_deleted(api: ScriptedApi, client: Client):
    api.answers["POST", "default/paddlejobs"] = failure(403, "Forbidden", "exceeded quota: jobs")
    with pytest.raises(NotPossible, match=r"exceeded quota: jobs; nothing was changed"):
        await _submit_again(client, api.objects[JOB])
    assert api.written("DELETE") == []


async def test_a_job_is_tried_then_deleted_then_created_and_its_code_follows_it(api: ScriptedApi, client: Client):
    before = api.objects[JOB]
    api.answers["POST", "default/paddlejobs"] = lambda body: (
        201,
        api.put(JOB, {**body, "metadata": {**body["metadata"], "uid": "new"}}) if _is_real(body) else body,
    )
    await _submit_again(client, before)
    assert [(one.method, one.path) for one in api.asked] == [
        ("POST", "default/paddlejobs"),
        ("DELETE", JOB),
        ("POST", "default/paddlejobs"),
        ("POST", "default/configmaps"),
        ("PATCH", CODE),
    ]
    assert api.objects[JOB]["metadata"]["uid"] == "new"
    assert [owner["uid"] for owner in api.objects[CODE]["metadata"]["ownerReferences"]] == ["new"]


async def test_a_job_that_cannot_be_created_after_all_is_saved_as_a_file(api: ScriptedApi, client: Client):
    api.answers["POST", "default/paddlejobs"] = lambda body: (
        failure(500, "InternalError", "etcd is full") if _is_real(body) else (201, body)
    )
    with pytest.raises(
        NotPossible, match=r"etcd is full.*job mnist was deleted; create it again with `kubectl create -f` from \S+"
    ) as raised:
        await _submit_again(client, api.objects[JOB])
    code, job = yaml.safe_load_all(saved_file(str(raised.value)))
    assert (code["kind"], code["metadata"]["name"], job["kind"]) == ("ConfigMap", "code-abc-0", "PaddleJob")
    assert "resourceVersion" not in code["metadata"]


async def test_a_job_is_saved_as_a_file_if_ctrl_c_comes_while_its_pods_end(api: ScriptedApi, client: Client):
    deleted = asyncio.Event()
    api.answers["DELETE", JOB] = lambda _: (deleted.set(), (200, {}))[1]
    task = asyncio.create_task(_submit_again(client, api.objects[JOB]))
    await deleted.wait()
    task.cancel()
    with pytest.raises(NotPossible, match="interrupted; job mnist was deleted; create it again with") as raised:
        await task
    assert "kind: PaddleJob" in saved_file(str(raised.value))


def saved_file(message: str) -> str:
    path = Path(message.rpartition(" ")[2])
    text = path.read_text()
    path.unlink()
    return text


def _is_real(body: Object) -> bool:
    """The dry run has another name, because the job still exists."""
    return bool(body["metadata"]["name"] == "mnist")
