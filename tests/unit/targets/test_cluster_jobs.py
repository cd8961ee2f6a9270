"""Jobs on a cluster: listing, showing, deleting and changing them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from paddlejob.errors import BadInput, Forbidden, NotPossible
from paddlejob.kube.client import Client
from paddlejob.targets.cluster import cluster_target as cluster
from paddlejob.targets.cluster.cluster_target import ClusterTarget
from paddlejob.targets.views import EventView
from tests.support.scripted_cluster import JOB, ScriptedCluster, failure

RUNNING = {"phase": "Running", "attempt": 1, "observedGeneration": 1}


ENDED = {"phase": "Completed", "attempt": 1, "completionTime": "2027-01-15T09:00:00Z"}


async def test_jobs_of_one_namespace_or_of_all_are_listed_with_their_flags(api: ScriptedCluster, target: ClusterTarget):
    api.add_job(RUNNING)
    other = api.add_job(RUNNING, "other")
    api.put("team/paddlejobs/other", {**other, "metadata": {**other["metadata"], "namespace": "team"}})
    del api.objects["default/paddlejobs/other"]
    listed = await target.jobs(None)
    assert [(view.job.name, view.flags) for view in listed] == [
        ("mnist", " --cluster"),
        ("other", " --cluster -n team"),
    ]
    assert [view.job.name for view in await target.jobs("team")] == ["other"]


async def test_who_may_not_list_all_namespaces_gets_the_jobs_of_ones_own(api: ScriptedCluster, target: ClusterTarget):
    api.add_job(RUNNING)
    api.answers["GET", "paddlejobs"] = failure(403, "Forbidden")
    assert [view.job.name for view in await target.jobs(None)] == ["mnist"]
    api.answers["GET", "team/paddlejobs"] = failure(403, "Forbidden")
    with pytest.raises(Forbidden):
        await target.jobs("team")


async def test_a_cluster_without_the_crd_names_the_command_that_installs_it(
    api: ScriptedCluster, target: ClusterTarget, monkeypatch: pytest.MonkeyPatch
):
    api.answers["GET", "paddlejobs"] = api.answers["GET", "default/paddlejobs"] = failure(404, "NotFound")
    message = r"has no CustomResourceDefinition paddlejobs\.batch.* with `pdj install --context west`"
    monkeypatch.setattr(target, "context_flag", " --context west")
    with pytest.raises(NotPossible, match=message):
        await target.jobs(None)
    with pytest.raises(NotPossible, match=message):
        await target.job("default", "mnist")


async def test_a_job_that_does_not_exist_is_answered_with_those_that_do(api: ScriptedCluster, target: ClusterTarget):
    with pytest.raises(BadInput, match="mnist not found in namespace default; start one with `pdj submit FILE`"):
        await target.job("default", "mnist")
    api.add_job(RUNNING, "other")
    with pytest.raises(BadInput, match="existing jobs: other"):
        await target.job("default", "mnist")


async def test_the_flags_and_commands_select_context_and_namespace(target: ClusterTarget):
    assert (target.flags(), target.flags("default"), target.flags("team")) == (
        " --cluster", " --cluster", " --cluster -n team"
    )  # fmt: skip
    assert (target.start_command(), target.start_command("team")) == ("pdj submit FILE", "pdj submit FILE -n team")
    other = await asyncio.to_thread(ClusterTarget, "the west")
    assert (other.flags("team"), other.start_command()) == (
        " --context 'the west' -n team", "pdj submit FILE --context 'the west'"
    )  # fmt: skip
    assert target.address.startswith("http://127.0.0.1:")


async def test_a_job_is_shown_with_its_own_pods_in_order(api: ScriptedCluster, target: ClusterTarget):
    stored = api.add_job(RUNNING, ps=1)
    stored["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    for index in (10, 2):
        api.add_pod(index)
    api.add_pod(0, role="ps", state="terminated")
    api.add_pod(1, ownerReferences=[])
    api.objects["default/pods/mnist-worker-2"]["spec"]["nodeName"] = "node-7"
    view = await target.job("default", "mnist")
    assert [pod.replica for pod in view.pods] == ["ps-0", "worker-2", "worker-10"]
    assert [pod.state for pod in view.pods] == ["Succeeded", "Running", "Running"]
    assert [pod.node for pod in view.pods] == ["", "node-7", ""]
    assert (view.phase, view.flags, view.note) == ("Running", " --cluster", "")
    assert "managedFields" not in view.document["metadata"]
    assert view.document["metadata"]["name"] == "mnist"


async def test_a_pod_that_was_stopped_with_its_job_did_not_fail(api: ScriptedCluster, target: ClusterTarget):
    api.add_job(ENDED)
    for index, reason in enumerate(("DeadlineExceeded", "Evicted")):
        made = api.add_pod(index)
        made["spec"]["activeDeadlineSeconds"] = 1
        made["status"] |= {"phase": "Failed", "reason": reason}
    view = await target.job("default", "mnist")
    assert [pod.state for pod in view.pods] == ["Stopped", "Failed"]


async def test_a_job_that_is_being_deleted_or_new_has_a_state_of_its_own(api: ScriptedCluster, target: ClusterTarget):
    api.add_job({})
    assert (await target.job("default", "mnist")).phase == "Created"
    api.add_job(RUNNING)["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z"
    assert (await target.job("default", "mnist")).phase == "Deleting"


async def test_a_job_of_another_schema_is_one_message(api: ScriptedCluster, target: ClusterTarget):
    api.add_job(RUNNING)["spec"] = {"worker": {"replicas": "many"}}
    with pytest.raises(NotPossible, match="job default/mnist does not match the schema of this version"):
        await target.job("default", "mnist")


def event(uid: str = "", message: str = "m", **fields: Any) -> dict[str, Any]:
    subject = {"kind": "Pod", "name": "mnist-worker-0"} | (
        {"uid": uid, "kind": "PaddleJob", "name": "mnist"} if uid else {}
    )
    return {"metadata": {}, "involvedObject": subject, "message": message, "reason": "Why", **fields}


async def test_events_of_the_job_and_warnings_about_its_pods_are_shown_by_time(
    api: ScriptedCluster, target: ClusterTarget
):
    api.add_job(RUNNING)
    api.add_pod()
    elsewhere = event(message="another pod", type="Warning")
    elsewhere["involvedObject"]["name"] = "other"
    api.events = [
        event("uid-of-mnist", "third", lastTimestamp="2027-01-15T08:00:03Z"),
        event("uid-of-another", "not of this job"),
        event(message="first", type="Warning", eventTime="2027-01-15T08:00:01.123456Z"),
        event(message="ordinary", type="Normal"),
        event(message='configmap "mnist-env-12345-1" not found', type="Warning"),
        elsewhere,
        {**event("uid-of-mnist", "second"), "metadata": {"creationTimestamp": "2027-01-15T08:00:02Z"}},
    ]
    view = await target.job("default", "mnist")
    assert view.events == [
        EventView("2027-01-15T08:00:01Z", "Why", "mnist-worker-0: first", warning=True),
        EventView("2027-01-15T08:00:02Z", "Why", "second"),
        EventView("2027-01-15T08:00:03Z", "Why", "third"),
    ]
    api.answers["GET", "default/events"] = failure(403, "Forbidden")
    assert (await target.job("default", "mnist")).events == []


async def test_a_job_is_deleted_with_its_pods_and_only_the_one_that_was_seen(
    api: ScriptedCluster, target: ClusterTarget
):
    api.add_job(RUNNING)
    assert await target.delete("default", "mnist", False) == "mnist is being deleted"
    (asked,) = api.written("DELETE")
    assert asked.body["preconditions"] == {"uid": "uid-of-mnist"}
    assert asked.body["propagationPolicy"] == "Background"
    api.add_job(RUNNING)
    assert await target.delete("default", "mnist", True) == "mnist deleted"


async def test_a_job_counts_as_deleted_once_it_and_its_pods_are_gone(
    api: ScriptedCluster, client: Client, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(cluster, "DELETE_TIMEOUT", 0.0)
    stored = api.add_job(RUNNING)
    with pytest.raises(NotPossible, match="job mnist: job mnist still not deleted after 0 s"):
        await cluster.wait_until_deleted(client, stored)
    api.add_pod()
    del api.objects[JOB]
    with pytest.raises(NotPossible, match="job mnist: mnist-worker-0 still not deleted"):
        await cluster.wait_until_deleted(client, stored)
    del api.objects["default/pods/mnist-worker-0"]
    await cluster.wait_until_deleted(client, stored)
    api.add_job(RUNNING)["metadata"]["uid"] = "another"
    await cluster.wait_until_deleted(client, stored)


async def test_a_change_is_checked_and_sent_as_what_changes(api: ScriptedCluster, target: ClusterTarget):
    api.add_job(RUNNING, elastic=1)
    await target.change("default", "mnist", worker={"replicas": 3})
    assert [one.body for one in api.written("PATCH")] == [{"spec": {"worker": {"replicas": 3}}}]
    with pytest.raises(BadInput, match="replicas"):
        await target.change("default", "mnist", worker={"replicas": -1})
    api.add_job(ENDED)
    with pytest.raises(BadInput, match=r"job mnist has ended \(Completed\) and cannot be changed"):
        await target.change("default", "mnist", suspend=True)
    assert len(api.written("PATCH")) == 1
