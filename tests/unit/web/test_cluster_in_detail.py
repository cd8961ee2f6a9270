"""Jobs, logs, curves and nodes of a cluster as the pages get them, from an API server that a test scripts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from paddlejob import contract
from paddlejob.client.targets import pod_log
from paddlejob.client.targets.cluster import ClusterTarget
from paddlejob.client.targets.target import JobView, PodView
from paddlejob.client.watch.usage import Usage
from paddlejob.errors import BadInput, NoSuchJob, NotPossible
from paddlejob.kube.access import Access
from paddlejob.kube.client import Client
from paddlejob.web.logs.lines import LogQuery, LogRef, Piece
from paddlejob.web.sources.cluster import machine, pod_logs, queues, series
from paddlejob.web.sources.cluster import source as source_module
from paddlejob.web.sources.cluster.machine import ClusterMeter
from paddlejob.web.sources.cluster.pod_logs import in_batches, pieces_of
from paddlejob.web.sources.cluster.queues import kueue_queue, read_queues, volcano_queue
from paddlejob.web.sources.cluster.series import SeriesTasks
from paddlejob.web.sources.cluster.source import ClusterSource
from paddlejob.web.views.row import Row
from tests.support.scripted_api import Object, failure
from tests.support.scripted_cluster import JOB, ScriptedCluster
from tests.support.web_jobs import view

RUNNING = {"phase": "Running", "attempt": 1}
ENDED = {"phase": "Completed", "attempt": 2, "completionTime": "2027-01-15T09:00:00Z"}


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_logs, "PAUSE", 0.01)
    monkeypatch.setattr(pod_log, "PAUSE", 0.01)


@pytest.fixture
async def api() -> ScriptedCluster:
    return ScriptedCluster()


@pytest.fixture
async def source(target: ClusterTarget, client: Client) -> ClusterSource:
    """With a connection, and without the informer."""
    made = ClusterSource(target)
    made._client = client
    return made


@pytest.fixture
async def logged(api: ScriptedCluster) -> ScriptedCluster:
    api.add_job(ENDED, ps=1)
    for role, index, attempt in (("worker", 0, 1), ("worker", 1, 2), ("worker", 0, 2), ("ps", 0, 2)):
        name = api.add_pod(index, role=role, attempt=attempt, state="terminated")["metadata"]["name"]
        api.logs[name] = [f"step {index + 1}/3 loss={attempt}.5", f"end of {role}-{index}"]
    return api


async def test_the_logs_of_started_pods_are_listed_by_attempt(logged: ScriptedCluster, source: ClusterSource):
    logged.add_pod(7, attempt=3, state="waiting")
    assert await source.logs("default", "mnist") == [
        LogRef(1, "worker-0"), LogRef(2, "ps-0"), LogRef(2, "worker-0"), LogRef(2, "worker-1")
    ]  # fmt: skip


async def test_a_log_is_followed_to_its_end_in_pieces(logged: ScriptedCluster, source: ClusterSource):
    query = LogQuery("worker-1")
    pieces = [piece async for batch in source.follow("default", "mnist", query) for piece in batch]
    assert {piece.replica for piece in pieces} == {"worker-1"}
    assert [line for piece in pieces for line in piece.lines] == ["step 2/3 loss=2.5", "end of worker-1"]
    every = [piece async for batch in source.follow("default", "mnist", LogQuery()) for piece in batch]
    assert {piece.replica for piece in every} == {"ps-0", "worker-0", "worker-1"}
    assert all(query["tailLines"] == "1500" for path, query in logged.queries if path.endswith("/log"))


async def test_the_logs_of_all_chosen_replicas_are_searched(
    logged: ScriptedCluster, source: ClusterSource, monkeypatch: pytest.MonkeyPatch
):
    found = await source.search("default", "mnist", LogQuery(), "^end")
    assert [(one.replica, one.attempt, one.line, one.text) for one in found.found] == [
        ("ps-0", 2, 2, "end of ps-0"), ("worker-0", 2, 2, "end of worker-0"), ("worker-1", 2, 2, "end of worker-1")
    ]  # fmt: skip
    sizes = [len("\n".join(logged.logs[name])) for name in ("mnist-ps-0-2", "mnist-worker-0-2", "mnist-worker-1-2")]
    assert (found.complete, found.searched) == (True, sum(sizes))
    (one,) = (await source.search("default", "mnist", LogQuery("worker-0", 1), "end")).found
    assert (one.attempt, one.replica) == (1, "worker-0")
    monkeypatch.setattr(pod_logs, "MOST_MATCHES", 2)
    cut = await source.search("default", "mnist", LogQuery(), "end")
    assert (len(cut.found), cut.complete) == (2, False)
    monkeypatch.setattr(pod_logs, "SEARCH_LIMIT", 5)
    assert not (await source.search("default", "mnist", LogQuery("ps-0"), "end")).complete
    with pytest.raises(BadInput, match="is not a regular expression"):
        await source.search("default", "mnist", LogQuery(), "(")


async def test_logs_are_downloaded_with_names_where_there_are_several(logged: ScriptedCluster, source: ClusterSource):
    one = b"".join([block async for block in source.download("default", "mnist", LogQuery("ps-0"))])
    assert one == b"step 1/3 loss=2.5\nend of ps-0\n"
    every = b"".join([block async for block in source.download("default", "mnist", LogQuery())])
    assert [line for line in every.decode().splitlines() if line.startswith("==>")] == [
        "==> ps-0 <==", "==> worker-0 <==", "==> worker-1 <=="
    ]  # fmt: skip


def test_lines_of_one_replica_that_follow_each_other_are_one_piece():
    batch = [b"[ps-0] a\n", b"[worker-10] b\n", b"[worker-10] c\n", b"[ps-0] d\n", b"[other-1] e\n"]
    assert pieces_of(batch, "") == [
        Piece("ps-0", ["a"]), Piece("worker-10", ["b", "c"]), Piece("ps-0", ["d"]), Piece("worker-0", ["[other-1] e"])
    ]  # fmt: skip
    assert pieces_of([b"[ps-0] a\n"], "worker-3") == [Piece("worker-3", ["[ps-0] a"])]


async def test_lines_come_in_batches_and_an_error_comes_after_them():
    async def lines() -> AsyncIterator[bytes]:
        yield b"a"
        yield b"b"
        raise BadInput("gone")

    batches = []
    with pytest.raises(BadInput, match="gone"):
        async for batch in in_batches(lines()):
            batches.append(batch)
    assert [line for batch in batches for line in batch] == [b"a", b"b"]


async def test_the_curves_of_a_job_are_read_once_and_kept(logged: ScriptedCluster, source: ClusterSource):
    found = await source.series("default", "mnist")
    assert [(curve.attempt, curve.values) for curve in found.metrics["loss"]] == [(1, [1.5]), (2, [2.5])]
    asked = len([path for path, _ in logged.queries if path.endswith("/log")])
    assert await source.series("default", "mnist") == found
    assert len([path for path, _ in logged.queries if path.endswith("/log")]) == asked


async def test_a_job_that_goes_on_or_is_new_is_read_again(
    logged: ScriptedCluster, client: Client, monkeypatch: pytest.MonkeyPatch
):
    tasks = SeriesTasks()
    ended = view(status=ENDED)
    assert (await tasks.read(client, ended)).lines == 4
    again = of_uid("another", ENDED)
    logged.logs = {name: lines[:1] for name, lines in logged.logs.items()}
    assert (await tasks.read(client, again)).lines == 2
    running = of_uid("another", RUNNING)
    logged.logs = {name: lines * 3 for name, lines in logged.logs.items()}
    assert (await tasks.read(client, running)).lines == 6, "its reader had ended"
    monkeypatch.setattr(series, "KEPT", 1)
    await tasks.read(client, view("other", status=ENDED))
    assert [key[1] for key in tasks._readings] == ["other"]
    tasks.close()
    assert not tasks._readings


def of_uid(uid: str, status: Object) -> JobView:
    made = view(status=status)
    metadata = made.job.metadata.model_copy(update={"uid": uid})
    return replace(made, job=made.job.model_copy(update={"metadata": metadata}))


async def test_a_cluster_without_jobs_is_not_connecting_for_ever(api: ScriptedCluster, target: ClusterTarget):
    source = ClusterSource(target)
    task = await running(source)
    assert (source.describe().error, await source.refresh()) == ("", {})
    await end(task)


async def test_a_job_without_logs_has_empty_curves(api: ScriptedCluster, source: ClusterSource):
    api.add_job(ENDED)
    assert (await source.series("default", "mnist")).metrics == {}


async def test_a_view_is_shared_for_a_moment_and_survives_an_outage(
    api: ScriptedCluster, source: ClusterSource, monkeypatch: pytest.MonkeyPatch
):
    api.add_job(RUNNING)
    first = await source.view("default", "mnist")
    assert await source.view("default", "mnist") is first
    monkeypatch.setattr(source_module, "VIEW_SECONDS", 0.0)
    second = await source.view("default", "mnist")
    assert second is not first
    await source._client.__aexit__(None, None, None)  # type: ignore[union-attr]
    async with Client(Access("http://127.0.0.1:1")) as unreachable:
        source._client = unreachable
        stale = await source.view("default", "mnist")
        assert (stale.phase, stale.note.endswith("; shown as last seen")) == ("Running", True)


async def test_a_job_that_is_deleted_is_forgotten(api: ScriptedCluster, source: ClusterSource, monkeypatch: Any):
    monkeypatch.setattr(source_module, "VIEW_SECONDS", 0.0)
    api.add_job(RUNNING)
    await source.view("default", "mnist")
    del api.objects[JOB]
    with pytest.raises(NoSuchJob):
        await source.view("default", "mnist")
    assert not source._views and not source._locks


@pytest.mark.parametrize(("namespace", "name"), [("..", "a"), ("a", "../b"), ("a", "A"), ("a.b", "c"), ("", "a")])
async def test_a_name_that_no_object_can_have_is_never_asked_for(
    api: ScriptedCluster, source: ClusterSource, namespace: str, name: str
):
    with pytest.raises(NoSuchJob, match="not found in namespace"):
        await source.view(namespace, name)
    with pytest.raises(NoSuchJob):
        await source.logs(namespace, name)
    assert api.queries == []


async def test_without_a_connection_the_reason_is_said(target: ClusterTarget):
    source = ClusterSource(target, "team")
    described = source.describe()
    assert (described.name, described.error, described.namespace) == ("cluster", "connecting", "team")
    assert described.title == target.access.server
    with pytest.raises(NotPossible, match="connecting"):
        await source.view("default", "mnist")
    assert await source.refresh() == {}


async def running(source: ClusterSource) -> asyncio.Task[None]:
    task = asyncio.create_task(source.run())
    async with asyncio.timeout(30):
        while source._informer is None or not source._informer.synced.is_set():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return task


async def end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_the_jobs_of_a_cluster_are_rows_with_the_course_of_their_loss(
    api: ScriptedCluster, target: ClusterTarget
):
    api.add_job(RUNNING | {"progress": {"step": 1, "metrics": {"loss": 2.0}}})
    api.add_job({}, "broken")["spec"] = {"worker": {"replicas": "many"}}
    source = ClusterSource(target)
    task = await running(source)
    rows = await source.refresh()
    assert (rows["default", "mnist"].phase, rows["default", "mnist"].spark) == ("Running", (2.0,))
    assert rows["default", "broken"].message
    assert (source.describe().error, source.describe().namespace) == ("", "")
    source._row(api.objects[JOB])
    assert source._sparks["default", "mnist"] == (2.0,), "each value once"
    api.objects[JOB]["status"]["progress"]["metrics"]["loss"] = 1.0
    assert source._row(api.objects[JOB]).spark == (2.0, 1.0)
    source._sparks["default", "gone"] = (1.0,)
    await source.refresh()
    assert ("default", "gone") not in source._sparks
    await end(task)


async def test_who_may_not_list_all_namespaces_sees_the_jobs_of_ones_own(api: ScriptedCluster, target: ClusterTarget):
    api.add_job(RUNNING)
    api.answers["GET", "paddlejobs"] = failure(403, "Forbidden")
    source = ClusterSource(target)
    task = await running(source)
    assert source.describe().namespace == "default"
    assert [*(await source.refresh())] == [("default", "mnist")]
    await end(task)


async def test_a_cluster_without_the_crd_says_how_to_install_it(api: ScriptedCluster, target: ClusterTarget):
    api.answers["GET", "team/paddlejobs"] = failure(404, "NotFound")
    source = ClusterSource(target, "team")
    task = await running(source)
    assert "pdj install" in source.describe().error
    await end(task)


async def test_an_error_that_ends_the_watch_is_shown(target: ClusterTarget, monkeypatch: pytest.MonkeyPatch):
    async def broken(self: object) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr("paddlejob.web.sources.cluster.source.Informer.run", broken)
    source = ClusterSource(target, "team")
    await source.run()
    assert source.describe().error == "a defect; start pdj web again"


def node(name: str, ready: str = "True", **spec: Any) -> Object:
    status = {
        "allocatable": {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "2", "pods": "110", "hugepages-2Mi/x": "1"},
        "conditions": [{"type": "MemoryPressure", "status": "True"}, {"type": "Ready", "status": ready}],
    }
    return {"metadata": {"name": name}, "spec": spec, "status": status}


def busy(node_name: str, job: str = "", namespace: str = "team") -> Object:
    labels = {contract.LABEL_JOB: job} if job else {}
    containers = [{"resources": {"requests": {"cpu": "1500m"}, "limits": {"nvidia.com/gpu": 1}}}]
    spec = {"containers": containers} | ({"nodeName": node_name} if node_name else {})
    return {"metadata": {"name": "p", "namespace": namespace, "labels": labels}, "spec": spec}


def listed(*items: Object) -> tuple[int, Object]:
    return 200, {"metadata": {"resourceVersion": "1"}, "items": list(items)}


async def test_the_nodes_of_a_cluster_show_what_is_held_and_by_whom(api: ScriptedCluster, client: Client):
    api.answers["GET", "nodes"] = listed(
        node("one"), node("two", "False", unschedulable=True), {**node("x"), "status": {}}
    )
    api.answers["GET", "pods"] = listed(busy("one", "mnist"), busy("one"), busy("", "mnist"))
    meter = ClusterMeter()
    found = await meter.read(client, "the title", "", [])
    assert (found.name, found.title, found.note) == ("cluster", "the title", "")
    assert [(one.name, one.state) for one in found.nodes] == [
        ("one", "Ready"), ("two", "NotReady, cordoned"), ("x", "NotReady")
    ]  # fmt: skip
    assert found.nodes[0].capacity == {"cpu": 4.0, "memory": 8.0 * 2**30, "nvidia.com/gpu": 2.0}
    assert found.nodes[0].held["cpu"] == 3.0 and found.nodes[1].held == {}
    resources = {one.name: one for one in found.resources}
    assert [*resources] == ["cpu", "memory", "nvidia.com/gpu"]
    assert (resources["cpu"].capacity, resources["cpu"].held) == (8.0, 3.0)
    assert resources["cpu"].holders == {"team/mnist": 3.0}
    assert (resources["nvidia.com/gpu"].holders, resources["nvidia.com/gpu"].used) == ({"team/mnist": 2.0}, None)
    assert ("pods", {"fieldSelector": machine.ACTIVE, "limit": "500"}) in api.queries
    assert await meter.read(client, "another", "", []) is found, "it is not asked again at once"


async def test_who_may_not_list_nodes_sees_ones_own_namespace_and_why(api: ScriptedCluster, client: Client):
    api.answers["GET", "nodes"] = failure(403, "Forbidden", "nodes is forbidden")
    api.answers["GET", "team/pods"] = listed(busy("one", "mnist"))
    found = await ClusterMeter().read(client, "t", "team", [])
    assert (found.nodes, "nodes is forbidden" in found.note) == ([], True)
    assert found.resources[0].holders == {"team/mnist": 1.5}
    assert (await ClusterMeter().read(client, "t", "", [])).resources[0].holders == {}


def waiting(name: str, queue: str, phase: str = "Pending", created: float | None = 1.0) -> Row:
    return Row("cluster", "team", name, phase, queue=queue, created=created)


async def test_queues_of_both_schedulers_are_read_with_the_jobs_that_wait_oldest_first(
    api: ScriptedCluster, client: Client
):
    api.kueue = {"v1beta1"}
    api.answers["GET", "queues"] = listed({"metadata": {"name": "night"}})
    api.answers["GET", "clusterqueues"] = listed({"metadata": {"name": "research"}})
    local = {"metadata": {"name": "gpus", "namespace": "team"}, "spec": {"clusterQueue": "research"}}
    api.answers["GET", "localqueues"] = api.answers["GET", "team/localqueues"] = listed(local)
    rows = [
        waiting("new", "volcano/night", created=9.0), waiting("old", "volcano/night", "Suspended"),
        waiting("runs", "volcano/night", "Running"), waiting("k", "kueue/team/gpus", "Restarting"),
        waiting("unknown", "volcano/night", created=None), waiting("none", ""),
    ]  # fmt: skip
    for namespace in ("", "team"):
        night, research = await read_queues(client, namespace, rows)
        assert (night.kind, night.name, night.waiting) == ("Volcano", "night", ["team/unknown", "team/old", "team/new"])
        assert (research.kind, research.name, research.waiting) == ("Kueue", "research", ["team/k"])
    api.kueue = set()
    api.answers["GET", "queues"] = failure(403, "Forbidden")
    assert await read_queues(client, "", rows) == []


def test_a_queue_that_is_active_says_so_and_one_in_use_shows_it():
    conditions = [{"type": "Other", "status": "True"}, {"type": "Active", "status": "True", "reason": "Ready"}]
    usage = [{"resources": [{"name": "cpu", "total": "2"}, {"name": "pods", "total": "3"}, {"name": "memory"}]}]
    found = kueue_queue(
        {"metadata": {"name": "q"}, "status": {"conditions": conditions, "flavorsUsage": usage}}, [], []
    )
    assert (found.state, found.resources) == ("Active", {"cpu": (2.0, None), "memory": (0.0, None)})
    assert kueue_queue({"metadata": {"name": "q"}}, [], []).state == ""
    many = [waiting(f"j{index}", "volcano/q") for index in range(queues.MOST_WAITING + 1)]
    assert len(volcano_queue({"metadata": {"name": "q"}}, many).waiting) == queues.MOST_WAITING


async def test_the_use_of_pods_and_nodes_is_read_over_the_same_connection(api: ScriptedCluster, source: ClusterSource):
    api.add_job(RUNNING)
    api.add_pod()
    shown = view(status=RUNNING)
    assert await source.usage(shown) == {}, "no pod runs"
    shown.pods.append(PodView("mnist-worker-0", "worker", 0, "Running"))
    usage = {"metadata": {"name": "mnist-worker-0"}, "containers": [{"usage": {"cpu": "2", "memory": "1Ki"}}]}
    api.answers["GET", "default/pods"] = listed(usage)
    assert await source.usage(shown) == {"mnist-worker-0": Usage(2.0, 1024)}
    api.answers["GET", "nodes"] = listed(node("one"))
    api.answers["GET", "pods"] = listed()
    assert (await source.machine()).title == source.target.access.server
