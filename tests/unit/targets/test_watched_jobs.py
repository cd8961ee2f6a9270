"""Jobs that are watched: this machine reads only files that have changed, a cluster is asked only for what is new."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from paddlejob.errors import NoSuchJob
from paddlejob.kube.access import Access
from paddlejob.local.state.store import JobStore
from paddlejob.targets.cluster import cluster_target
from paddlejob.targets.cluster.cluster_target import ClusterTarget
from paddlejob.targets.local.local_target import LocalTarget
from paddlejob.targets.target import Target
from tests.support.scripted_cluster import JOB, ScriptedCluster, failure
from tests.support.web_jobs import stored

RUNNING = {"phase": "Running", "attempt": 1}


@pytest.fixture
def store(tmp_path: Path) -> JobStore:
    return JobStore(tmp_path)


@asynccontextmanager
async def watching(target: Target, namespace: str = "") -> AsyncIterator[None]:
    """Until the first list is there."""
    assert isinstance(target, LocalTarget) or target.problem == "connecting"
    task = asyncio.create_task(target.watch(namespace))
    async with asyncio.timeout(30):
        await asyncio.sleep(0)
        while target.problem == "connecting":  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_only_jobs_whose_files_have_changed_are_read_again(store: JobStore):
    first, second = stored(store, "first", phase="Completed"), stored(store, "second", phase="Completed")
    target = LocalTarget(store)
    async with watching(target):
        before = await target.jobs(None)
        assert await target.job("default", "second") is before[1]
        first.write_status(first.job().status.model_copy(update={"restarts": 3}))  # type: ignore[union-attr]
        after = await target.jobs("default")
        assert after[1] is before[1] and after[0].job.status.restarts == 3
        second.remove()
        assert [view.job.name for view in await target.jobs(None)] == ["first"]
        with pytest.raises(NoSuchJob):
            await target.job("default", "second")
        assert await target.jobs("other") == []
    assert await target.job("default", "first") is not after[0], "nobody watches"


async def test_what_is_no_job_is_skipped_and_a_runner_is_noticed(store: JobStore):
    folder = stored(store, phase="Running")
    (store.root / "jobs" / "default" / ".hidden").mkdir()
    (store.root / "jobs" / "file").touch()
    (store.root / "jobs" / "default" / "empty").mkdir()
    target = LocalTarget(store)
    async with watching(target):
        assert [(view.job.name, view.phase) for view in await target.jobs(None)] == [("mnist", "Interrupted")]
        held = folder.runner_lock()
        assert held.acquire()
        assert (await target.jobs(None))[0].phase == (await target.job("default", "mnist")).phase == "Running"
        held.release()
        assert (await target.job("default", "mnist")).phase == "Interrupted"
    absent = LocalTarget(JobStore(store.root / "absent"))
    async with watching(absent):
        assert await absent.jobs(None) == []


async def test_the_jobs_of_a_cluster_are_listed_without_a_request(api: ScriptedCluster, target: ClusterTarget):
    api.add_job(RUNNING)
    api.add_job({}, "broken")["spec"] = {"worker": {"replicas": "many"}}
    async with watching(target):
        asked = len(api.queries)
        broken, mnist = sorted(await target.jobs(None), key=lambda view: view.job.name)
        assert (mnist.phase, broken.phase, broken.damaged) == ("Running", "Damaged", True)
        assert "job default/broken does not match the schema" in broken.headline
        assert await target.jobs("team") == [] and len(api.queries) == asked
        assert (target.problem, target.watched_namespace) == ("", "")


async def test_a_cluster_without_jobs_is_not_connecting_for_ever(api: ScriptedCluster, target: ClusterTarget):
    async with watching(target):
        assert (target.problem, await target.jobs(None)) == ("", [])


async def test_who_may_not_list_all_namespaces_watches_the_jobs_of_ones_own(
    api: ScriptedCluster, target: ClusterTarget
):
    api.add_job(RUNNING)
    api.answers["GET", "paddlejobs"] = failure(403, "Forbidden")
    async with watching(target):
        assert target.watched_namespace == "default"
        assert [view.job.name for view in await target.jobs(None)] == ["mnist"]


async def test_a_cluster_without_the_crd_says_how_to_install_it(api: ScriptedCluster, target: ClusterTarget):
    api.answers["GET", "team/paddlejobs"] = failure(404, "NotFound")
    async with watching(target, "team"):
        assert "pdj install" in target.problem


async def test_an_error_that_ends_the_watch_is_shown(target: ClusterTarget, monkeypatch: pytest.MonkeyPatch):
    async def broken(self: object) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr("paddlejob.kube.informer.Informer.run", broken)
    await target.watch("team")
    assert target.problem == "a defect; start pdj web again"


async def test_a_view_is_shared_for_a_moment_and_survives_an_outage(
    api: ScriptedCluster, target: ClusterTarget, monkeypatch: pytest.MonkeyPatch
):
    api.add_job(RUNNING)
    async with watching(target):
        first = await target.job("default", "mnist")
        assert await target.job("default", "mnist") is first
        monkeypatch.setattr(cluster_target, "VIEW_SECONDS", 0.0)
        assert await target.job("default", "mnist") is not first
    target.access = Access("http://127.0.0.1:1")
    stale = await target.job("default", "mnist")
    assert (stale.phase, stale.note.endswith("; shown as last seen")) == ("Running", True)


async def test_a_job_that_is_deleted_is_forgotten(
    api: ScriptedCluster, target: ClusterTarget, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(cluster_target, "VIEW_SECONDS", 0.0)
    api.add_job(RUNNING)
    async with watching(target):
        await target.job("default", "mnist")
        del api.objects[JOB]
        with pytest.raises(NoSuchJob):
            await target.job("default", "mnist")
    target.access = Access("http://127.0.0.1:1")
    with pytest.raises(Exception, match=r"127\.0\.0\.1"):
        await target.job("default", "mnist")
