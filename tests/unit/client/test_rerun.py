"""Running a finished job again: from Python, from the web page, and on a cluster what is kept and in which order."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

import paddlejob as pj
from paddlejob import contract
from paddlejob.api.types import Status
from paddlejob.client.start.rerun import fresh_document, submit_again
from paddlejob.errors import NotPossible
from paddlejob.kube.client import Client
from paddlejob.local.options import RunOptions
from paddlejob.local.state.history import History
from paddlejob.local.state.store import JobStore
from paddlejob.targets.local.local_target import LocalTarget
from paddlejob.web.actions import act
from tests.support.builders import NOON, document
from tests.support.job_views import ENDED
from tests.support.scripted_cluster import Object, ScriptedCluster, failure

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
def api() -> ScriptedCluster:
    metadata = {"namespace": "default", "labels": {contract.LABEL_CODE: "abc"}}
    code = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "binaryData": {"0": "eA=="}}
    return ScriptedCluster((JOB, ended()), (CODE, code))


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


async def test_a_job_that_the_cluster_would_reject_is_not_deleted(api: ScriptedCluster, client: Client):
    api.answers["POST", "default/paddlejobs"] = failure(403, "Forbidden", "exceeded quota: jobs")
    with pytest.raises(NotPossible, match=r"exceeded quota: jobs; nothing was changed"):
        await submit_again(client, api.objects[JOB])
    assert api.written("DELETE") == []


async def test_a_job_is_tried_then_deleted_then_created_and_its_code_follows_it(api: ScriptedCluster, client: Client):
    before = api.objects[JOB]
    api.answers["POST", "default/paddlejobs"] = lambda body: (
        201,
        api.put(JOB, {**body, "metadata": {**body["metadata"], "uid": "new"}}) if _is_real(body) else body,
    )
    await submit_again(client, before)
    assert [(one.method, one.path) for one in api.asked] == [
        ("POST", "default/paddlejobs"),
        ("DELETE", JOB),
        ("POST", "default/paddlejobs"),
        ("POST", "default/configmaps"),
        ("PATCH", CODE),
    ]
    assert api.objects[JOB]["metadata"]["uid"] == "new"
    assert [owner["uid"] for owner in api.objects[CODE]["metadata"]["ownerReferences"]] == ["new"]


async def test_a_job_that_cannot_be_created_after_all_is_saved_as_a_file(api: ScriptedCluster, client: Client):
    api.answers["POST", "default/paddlejobs"] = lambda body: (
        failure(500, "InternalError", "etcd is full") if _is_real(body) else (201, body)
    )
    with pytest.raises(
        NotPossible, match=r"etcd is full.*job mnist was deleted; create it again with `kubectl create -f` from \S+"
    ) as raised:
        await submit_again(client, api.objects[JOB])
    code, job = yaml.safe_load_all(saved_file(str(raised.value)))
    assert (code["kind"], code["metadata"]["name"], job["kind"]) == ("ConfigMap", "code-abc-0", "PaddleJob")
    assert "resourceVersion" not in code["metadata"]


async def test_a_job_is_saved_as_a_file_if_ctrl_c_comes_while_its_pods_end(api: ScriptedCluster, client: Client):
    deleted = asyncio.Event()
    api.answers["DELETE", JOB] = lambda _: (deleted.set(), (200, {}))[1]
    task = asyncio.create_task(submit_again(client, api.objects[JOB]))
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


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[JobStore]:
    """The stores in which a job was started again, instead of its process."""
    monkeypatch.setenv("PADDLEJOB_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    found: list[JobStore] = []

    def start(store: JobStore, held: list[Any]) -> None:
        found.append(store)
        for _, lock in held:
            lock.release()

    monkeypatch.setattr("paddlejob.local.runner.spawn_detached", start)
    made = document()
    made["spec"]["worker"]["template"]["spec"]["containers"][0]["command"] = ["echo a b"]
    folder, lock = JobStore().begin(made, RunOptions(), NOON)
    folder.write_status(Status.model_validate({"phase": "Completed", "attempt": 1, **ENDED}))
    lock.release()
    return found


def test_a_handle_runs_its_job_again_and_warns_as_pdj_does(started: list[JobStore]):
    with pytest.warns(UserWarning, match='"echo a b" is the name of a single program'):
        pj.attach("mnist", cluster=False).rerun()
    assert len(started) == 1
    assert [one.number for one in History(started[0].root, ("default", "mnist")).runs()] == [1]
    remedy = "continue it with `pdj resume mnist`, or first delete it and its logs with `pdj delete mnist`"
    with pytest.raises(pj.PaddleJobError, match=rf"job mnist has not ended \(Interrupted\); {remedy}"):
        pj.attach("mnist", cluster=False).rerun()


async def test_the_web_page_runs_a_job_again_in_its_own_process(started: list[JobStore]):
    message = await act(LocalTarget(), "rerun", "default", "mnist", None)
    assert message.splitlines()[-1] == "mnist runs again"
    assert "is the name of a single program" in message and len(started) == 1


async def test_the_web_page_does_not_wait_forever(started: list[JobStore], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("paddlejob.web.actions.TIMEOUT", 0)
    with pytest.raises(NotPossible, match="job mnist did not start again within 0 s"):
        await act(LocalTarget(), "rerun", "default", "mnist", None)
