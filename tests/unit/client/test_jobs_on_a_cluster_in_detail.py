"""Jobs on a cluster as its users see and change them, against an API server that answers as a test scripts it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from paddlejob.client.targets import cluster, logs
from paddlejob.client.targets.cluster import ClusterTarget
from paddlejob.client.targets.operators import Operator, find_operators, unavailable_message, unwatched_message
from paddlejob.client.targets.target import EventView, JobView, LastOutput, LogChoice, LogLine, PodView, has_ended
from paddlejob.errors import BadInput, Forbidden, NotPossible, Unreachable
from paddlejob.kube.access import Access
from paddlejob.kube.client import Client
from tests.support.builders import job
from tests.support.scripted_api import failure
from tests.support.scripted_cluster import JOB, ScriptedCluster, operator

RUNNING = {"phase": "Running", "attempt": 1, "observedGeneration": 1}
ENDED = {"phase": "Completed", "attempt": 1, "completionTime": "2027-01-15T09:00:00Z"}


@pytest.fixture
async def api() -> ScriptedCluster:
    return ScriptedCluster()


@pytest.fixture
async def client(server: str) -> AsyncIterator[Client]:
    async with Client(Access(server)) as made:
        yield made


async def test_jobs_of_one_namespace_or_of_all_are_listed_with_their_flags(api: ScriptedCluster, target: ClusterTarget):
    api.add_job(RUNNING)
    other = api.add_job(RUNNING, "other")
    api.put("team/paddlejobs/other", {**other, "metadata": {**other["metadata"], "namespace": "team"}})
    del api.objects["default/paddlejobs/other"]
    listed = await asyncio.to_thread(target.jobs, None)
    assert [(view.job.name, view.flags) for view in listed] == [
        ("mnist", " --cluster"),
        ("other", " --cluster -n team"),
    ]
    assert [view.job.name for view in await asyncio.to_thread(target.jobs, "team")] == ["other"]


async def test_who_may_not_list_all_namespaces_gets_the_jobs_of_ones_own(api: ScriptedCluster, target: ClusterTarget):
    api.add_job(RUNNING)
    api.answers["GET", "paddlejobs"] = failure(403, "Forbidden")
    assert [view.job.name for view in await asyncio.to_thread(target.jobs, None)] == ["mnist"]
    api.answers["GET", "team/paddlejobs"] = failure(403, "Forbidden")
    with pytest.raises(Forbidden):
        await asyncio.to_thread(target.jobs, "team")


async def test_a_cluster_without_the_crd_names_the_command_that_installs_it(
    api: ScriptedCluster, target: ClusterTarget, monkeypatch: pytest.MonkeyPatch
):
    api.answers["GET", "paddlejobs"] = api.answers["GET", "default/paddlejobs"] = failure(404, "NotFound")
    message = r"has no CustomResourceDefinition paddlejobs\.batch.* with `pdj install --context west`"
    monkeypatch.setattr(target, "context_flag", " --context west")
    with pytest.raises(NotPossible, match=message):
        await asyncio.to_thread(target.jobs, None)
    with pytest.raises(NotPossible, match=message):
        await asyncio.to_thread(target.job, "default", "mnist")


async def test_a_job_that_does_not_exist_is_answered_with_those_that_do(api: ScriptedCluster, target: ClusterTarget):
    with pytest.raises(BadInput, match="mnist not found in namespace default; start one with `pdj submit FILE`"):
        await asyncio.to_thread(target.job, "default", "mnist")
    api.add_job(RUNNING, "other")
    with pytest.raises(BadInput, match="existing jobs: other"):
        await asyncio.to_thread(target.job, "default", "mnist")


async def test_the_flags_and_commands_select_context_and_namespace(target: ClusterTarget):
    assert (target.flags(), target.flags("default"), target.flags("team")) == (
        " --cluster", " --cluster", " --cluster -n team"
    )  # fmt: skip
    assert (target.start_command(), target.start_command("team")) == ("pdj submit FILE", "pdj submit FILE -n team")
    other = await asyncio.to_thread(ClusterTarget, "the west")
    assert (other.flags("team"), other.start_command()) == (
        " --context 'the west' -n team", "pdj submit FILE --context 'the west'"
    )  # fmt: skip
    assert target.title.startswith("cluster at http://127.0.0.1:")


async def test_a_job_is_shown_with_its_own_pods_in_order(api: ScriptedCluster, target: ClusterTarget):
    stored = api.add_job(RUNNING, ps=1)
    stored["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    for index in (10, 2):
        api.add_pod(index)
    api.add_pod(0, role="ps", state="terminated")
    api.add_pod(1, ownerReferences=[])
    api.objects["default/pods/mnist-worker-2"]["spec"]["nodeName"] = "node-7"
    view = await asyncio.to_thread(target.job, "default", "mnist")
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
    view = await asyncio.to_thread(target.job, "default", "mnist")
    assert [pod.state for pod in view.pods] == ["Stopped", "Failed"]


async def test_a_job_that_is_being_deleted_or_new_has_a_state_of_its_own(api: ScriptedCluster, target: ClusterTarget):
    api.add_job({})
    assert (await asyncio.to_thread(target.job, "default", "mnist")).phase == "Created"
    api.add_job(RUNNING)["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z"
    assert (await asyncio.to_thread(target.job, "default", "mnist")).phase == "Deleting"


async def test_a_job_of_another_schema_is_one_message(api: ScriptedCluster, target: ClusterTarget):
    api.add_job(RUNNING)["spec"] = {"worker": {"replicas": "many"}}
    with pytest.raises(NotPossible, match="job default/mnist does not match the schema of this version"):
        await asyncio.to_thread(target.job, "default", "mnist")


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
    view = await asyncio.to_thread(target.job, "default", "mnist")
    assert view.events == [
        EventView("2027-01-15T08:00:01Z", "Why", "mnist-worker-0: first", warning=True),
        EventView("2027-01-15T08:00:02Z", "Why", "second"),
        EventView("2027-01-15T08:00:03Z", "Why", "third"),
    ]
    api.answers["GET", "default/events"] = failure(403, "Forbidden")
    assert (await asyncio.to_thread(target.job, "default", "mnist")).events == []


async def test_a_note_says_why_no_operator_handles_a_job(api: ScriptedCluster, target: ClusterTarget):
    async def note(status: dict[str, Any], *operators: dict[str, Any], generation: int = 1) -> str:
        api.add_job(status)["metadata"]["generation"] = generation
        api.deployments = list(operators)
        return (await asyncio.to_thread(target.job, "default", "mnist")).note

    assert "no operator is installed in this cluster" in await note(RUNNING)
    assert await note(ENDED) == ""
    assert await note(RUNNING, operator()) == await note(RUNNING, operator("default")) == ""
    assert "no operator watches namespace default" in await note(RUNNING, operator("team"))
    assert await note(RUNNING, operator(available=0)) == "", "the status is up to date"
    assert "is not running (0 of 2 ready)" in await note(RUNNING, operator(available=0), generation=2)
    assert await note(RUNNING, operator(), generation=2) == ""
    assert "is not running" in await note({}, operator(available=0))


async def test_the_operators_of_a_cluster_are_found_with_what_they_watch(api: ScriptedCluster, client: Client):
    api.deployments = [operator("team"), operator(arguments=["operator", "--namespace", "own", "--leader"]), operator()]
    api.deployments[2]["metadata"]["annotations"] = {"meta.helm.sh/release-name": "ours"}
    api.deployments[2]["spec"]["template"]["spec"]["containers"] = [{"command": ["pdj", "--namespace"]}]
    del api.deployments[2]["spec"]["replicas"], api.deployments[2]["status"]
    found = await find_operators(client)
    assert found and [one.watch for one in found] == ["team", "own", ""]
    assert (found[0].image, found[0].replicas, found[0].available, found[0].release) == ("operator:1", 2, 1, "")
    assert (found[2].image, found[2].replicas, found[2].available, found[2].release) == ("", 1, 0, "ours")
    assert "app.kubernetes.io/name=" in dict(api.queries)["deployments"]["labelSelector"]


async def test_who_may_not_list_operators_may_see_the_usual_one(api: ScriptedCluster, client: Client):
    api.answers["GET", "deployments"] = failure(403, "Forbidden")
    api.deployments = None
    assert await find_operators(client) is None
    path = f"{operator()['metadata']['namespace']}/deployments/{operator()['metadata']['name']}"
    api.answers["GET", path] = (200, operator("team"))
    found = await find_operators(client)
    assert found and [one.watch for one in found] == ["team"]
    api.answers["GET", path] = failure(403, "Forbidden")
    assert await find_operators(client) is None


def test_messages_about_operators_name_them_and_the_remedy():
    one = Operator("a", "op", "team", "", replicas=2, available=0)
    two = Operator("b", "op", "", "", replicas=1, available=1)
    assert unwatched_message(None, "x") == unwatched_message([one, two], "x") == unwatched_message([one], "team") == ""
    message = unwatched_message([one], "x", " --context c")
    assert "no operator watches namespace x (a/op watches namespace team)" in message
    assert message.endswith("`pdj install --context c -n x --watch x`")
    assert (one.scope, two.scope) == ("namespace team", "all namespaces")
    assert unavailable_message(None, "team") == unavailable_message([one], "x") == ""
    assert unavailable_message([one, two], "team") == ""
    assert unavailable_message([one], "team") == (
        "the operator a/op is not running (0 of 2 ready); check `kubectl describe deployment op -n a`"
    )


async def test_a_job_is_deleted_with_its_pods_and_only_the_one_that_was_seen(
    api: ScriptedCluster, target: ClusterTarget
):
    api.add_job(RUNNING)
    assert await asyncio.to_thread(target.delete, "default", "mnist", False) == "mnist is being deleted"
    (asked,) = api.written("DELETE")
    assert asked.body["preconditions"] == {"uid": "uid-of-mnist"}
    assert asked.body["propagationPolicy"] == "Background"
    api.add_job(RUNNING)
    assert await asyncio.to_thread(target.delete, "default", "mnist", True) == "mnist deleted"


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
    await asyncio.to_thread(lambda: target.change("default", "mnist", worker={"replicas": 3}))
    assert [one.body for one in api.written("PATCH")] == [{"spec": {"worker": {"replicas": 3}}}]
    with pytest.raises(BadInput, match="replicas"):
        await asyncio.to_thread(lambda: target.change("default", "mnist", worker={"replicas": -1}))
    api.add_job(ENDED)
    with pytest.raises(BadInput, match=r"job mnist has ended \(Completed\) and cannot be changed"):
        await asyncio.to_thread(lambda: target.change("default", "mnist", suspend=True))
    assert len(api.written("PATCH")) == 1


async def read(target: ClusterTarget, **choice: Any) -> list[bytes]:
    return await asyncio.to_thread(lambda: list(target.logs("default", "mnist", LogChoice(**choice))))


@pytest.fixture
async def logged(api: ScriptedCluster) -> ScriptedCluster:
    """A server and two workers in the second attempt, and a worker of the first."""
    api.add_job(ENDED, ps=1)
    for role, index, attempt in (("worker", 0, 1), ("worker", 1, 2), ("worker", 0, 2), ("ps", 0, 2)):
        name = api.add_pod(index, role=role, attempt=attempt, state="terminated")["metadata"]["name"]
        api.logs[name] = [f"{role} {index} of {attempt}", "end"]
    return api


@pytest.mark.parametrize("follow", [False, True])
async def test_the_logs_of_the_latest_attempt_name_each_replica(
    logged: ScriptedCluster, target: ClusterTarget, follow: bool
):
    lines = await read(target, tail=-1, follow=follow)
    begun = [line for line in lines if b"end" not in line]
    assert sorted(begun) == [b"[ps-0] ps 0 of 2\n", b"[worker-0] worker 0 of 2\n", b"[worker-1] worker 1 of 2\n"]
    assert len(lines) == 6
    if not follow:
        assert begun == sorted(begun), "one replica after another, servers first"


@pytest.mark.parametrize("follow", [False, True])
async def test_the_logs_of_one_replica_role_or_attempt_can_be_chosen(
    logged: ScriptedCluster, target: ClusterTarget, follow: bool
):
    assert await read(target, role="worker", index=1, follow=follow) == [b"worker 1 of 2\n", b"end\n"]
    assert (await read(target, role="ps", index=0, follow=follow))[0] == b"ps 0 of 2\n"
    assert (await read(target, index=0, attempt=1, follow=follow))[0] == b"worker 0 of 1\n"
    workers = await read(target, role="worker", tail=1, follow=follow)
    assert sorted(workers) == [b"[worker-0] end\n", b"[worker-1] end\n"]


@pytest.mark.parametrize("follow", [False, True])
async def test_a_log_that_does_not_exist_is_one_message(api: ScriptedCluster, target: ClusterTarget, follow: bool):
    message = "job mnist has no such log; list its replicas with `pdj get mnist --cluster`"
    api.add_job(ENDED, cleanPodPolicy="OnFailure")
    api.add_pod(state="waiting")
    with pytest.raises(BadInput, match=message):
        await read(target, follow=follow)
    api.objects.pop("default/pods/mnist-worker-0")
    with pytest.raises(BadInput, match=message):
        await read(target, follow=follow)
    api.add_job(ENDED, cleanPodPolicy="OnCompletion")
    with pytest.raises(
        BadInput, match=r"its pods were removed with their logs \(cleanPodPolicy: OnCompletion\); to keep"
    ):
        await read(target, follow=follow)
    with pytest.raises(BadInput, match="--run: a cluster keeps no former runs"):
        await read(target, run=1)
    api.objects.clear()
    with pytest.raises(BadInput, match="job mnist not found"):
        await read(target, follow=follow)


async def test_while_a_cluster_does_not_answer_that_is_said_once_and_logs_go_on(
    logged: ScriptedCluster, client: Client, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    follower = logs._Follower(client, "default", "mnist", LogChoice(role="worker", index=1))
    get, answers = client.get, [True, False, False, True, False]

    async def sometimes(*arguments: Any) -> dict[str, Any]:
        if not answers.pop(0):
            raise Unreachable("no route")
        return await get(*arguments)

    monkeypatch.setattr(client, "get", sometimes)
    monkeypatch.setattr(logs.pod_log, "follow", logs.pod_log.read)
    for _ in range(5):
        await follower.check()
    said = capsys.readouterr().err.splitlines()
    assert said == ["pdj: no route; retrying (press Ctrl-C to stop)"] * 2, "again after it had answered"
    assert [await follower.next_line(5.0), await follower.next_line(5.0)] == [b"worker 1 of 2\n", b"end\n"]
    assert await follower.next_line(0.0) == b""
    follower.raise_errors()
    assert follower.finished(0.0) and follower.started
    follower.close()


async def test_an_error_while_a_log_is_read_ends_the_stream(client: Client):
    async def fails() -> None:
        raise BadInput("cannot read the log")

    follower = logs._Follower(client, "default", "mnist", LogChoice())
    follower._readers["u"] = asyncio.create_task(fails())
    await asyncio.wait(follower._readers.values())
    with pytest.raises(BadInput, match="cannot read the log"):
        follower.raise_errors()


async def test_a_quiet_job_is_done_although_its_servers_still_run(client: Client):
    follower = logs._Follower(client, "default", "mnist", LogChoice())
    follower._readers["u"] = asyncio.create_task(asyncio.sleep(300))
    assert not follower.finished(logs.QUIET_SECONDS)
    follower.inactive = True
    assert follower.finished(logs.QUIET_SECONDS) and not follower.finished(logs.QUIET_SECONDS - 1)
    follower._lines.put_nowait(b"x")
    assert not follower.finished(logs.QUIET_SECONDS)
    follower.close()


@pytest.mark.parametrize(("suspend", "phase"), [(True, "Suspended"), (False, "Suspended"), (True, "Running")])
def test_a_job_is_inactive_when_no_pod_starts_any_more(suspend: bool, phase: str):
    made = job(suspend=suspend, status={"phase": phase})
    assert logs.is_inactive(made) == (suspend and phase == "Suspended")
    assert logs.is_inactive(job(status=ENDED))


async def test_the_last_output_of_a_job_is_that_of_the_replica_that_printed_last(
    logged: ScriptedCluster, target: ClusterTarget
):
    logged.logs["mnist-worker-1-2"] = ["a", "b", "c", "d"]
    seen = JobView(job(), {}, "Running")
    assert await asyncio.to_thread(target.last_output, seen) == LastOutput("worker-1", 1800000003.0)
    logged.logs = {name: [] for name in logged.logs}
    assert await asyncio.to_thread(target.last_output, seen) is None


async def test_the_log_of_the_first_worker_is_read_over_all_attempts(logged: ScriptedCluster, target: ClusterTarget):
    found = await asyncio.to_thread(lambda: list(target.first_worker_log("default", "mnist", follow=False)))
    assert found[0] == LogLine(1, "worker 0 of 1", 1800000000.0)
    assert [line.attempt for line in found] == [1, 1, 2, 2]
    with pytest.raises(BadInput, match="job other not found"):
        await asyncio.to_thread(lambda: target.first_worker_log("default", "other", follow=False))


def test_a_replica_is_written_for_programs_without_what_is_not_known():
    full = PodView("n", "worker", 1, "Failed", 2, "10.0.0.1", 3, "/log", "a note", 7, "node-1")
    assert full.as_data() == {
        "name": "n", "role": "worker", "index": 1, "state": "Failed", "attempt": 2, "address": "10.0.0.1", "pid": 7,
        "node": "node-1", "log": "/log", "note": "a note", "exitCode": 3,
    }  # fmt: skip
    assert PodView("n", "ps", 0, "Pending").as_data() == {"name": "n", "role": "ps", "index": 0, "state": "Pending"}
    assert PodView("n", "ps", 0, "Succeeded", exit_code=0).as_data()["exitCode"] == 0
    assert (full.exit_text, PodView("n", "ps", 0, "Pending").exit_text) == ("3", "")


@pytest.mark.parametrize("phase", ["Completed", "Failed", "Suspended", "Interrupted", "Damaged"])
def test_a_job_has_ended_when_nothing_changes_by_itself(phase: str):
    assert has_ended(JobView(job(suspend=True), {}, phase))
    assert has_ended(JobView(job(), {}, phase)) == (phase != "Suspended")


@pytest.mark.parametrize("phase", ["Created", "Pending", "Running", "Restarting", "Deleting"])
def test_a_job_that_goes_on_has_not_ended(phase: str):
    assert not has_ended(JobView(job(suspend=True), {}, phase))


def test_a_job_is_named_with_its_namespace_where_that_is_in_doubt():
    assert JobView(job(), {}, "Running").title == "mnist"
    assert JobView(job(), {}, "Running", qualified=True).title == "default/mnist"
    named = JobView(job(status={"message": "mnist-worker-1 failed\nmnist-worker-2"}), {}, "Failed")
    assert [named.names(PodView(f"mnist-worker-{index}", "worker", index, "Failed")) for index in (1, 2)] == [
        True,
        False,
    ]
    assert JobView(job(status={"message": "a\nb"}), {}, "Failed").headline == "a"
    assert JobView(job(status={"message": "a\nb"}), {}, "Failed", note="n").headline == "n"
