"""The list of jobs: what is read again, what has changed since a revision, and the shape of each job's loss."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from paddlejob.local.state.store import JobFolder, JobStore
from paddlejob.logs.record import Recorder
from paddlejob.logs.series import LoggedSample
from paddlejob.progress import Sample
from paddlejob.targets.cluster.cluster_target import ClusterTarget
from paddlejob.targets.local.local_target import LocalTarget
from paddlejob.targets.views import JobView
from paddlejob.web import feed as feed_module
from paddlejob.web import job_list
from paddlejob.web.feed import Feed
from paddlejob.web.job_list import Description, JobList
from paddlejob.web.views.row import Row
from tests.support.web_jobs import stored, view


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "PAUSE", 0.0)


async def test_rows_of_jobs_that_have_not_changed_are_the_same(store: JobStore):
    first, second = stored(store, "first", phase="Completed"), stored(store, "second", phase="Completed")
    jobs = JobList(LocalTarget(store))
    async with watched(jobs):
        before = await jobs.refresh()
        first.write_status(first.job().status.model_copy(update={"restarts": 3}))  # type: ignore[union-attr]
        after = await jobs.refresh()
        assert after["default", "second"] is before["default", "second"]
        assert after["default", "first"].restarts == 3
        second.remove()
        assert {*await jobs.refresh()} == {("default", "first")}


@asynccontextmanager
async def watched(jobs: JobList) -> AsyncIterator[None]:
    task = asyncio.create_task(jobs.target.watch())
    await asyncio.sleep(0)
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_while_the_files_cannot_be_read_the_page_says_why_and_shows_the_jobs_as_last_seen(store: JobStore):
    stored(store, "mine", phase="Completed")
    source = JobList(LocalTarget(store))
    assert (len(await source.refresh()), source.describe().error) == (1, "")
    jobs, aside = store.root / "jobs", store.root / "aside"
    jobs.rename(aside)
    jobs.symlink_to(jobs)
    assert len(await source.refresh()) == 1
    assert source.describe().error == f"{jobs}: Too many levels of symbolic links"
    jobs.unlink()
    aside.rename(jobs)
    assert (len(await source.refresh()), source.describe().error) == (1, "")


async def test_one_namespace_can_be_chosen(store: JobStore):
    stored(store, "mine")
    assert await JobList(LocalTarget(store), "team").refresh() == {}
    chosen = JobList(LocalTarget(store), "default")
    assert len(await chosen.refresh()) == 1
    assert chosen.describe() == Description("local", "this machine", "", "default")


async def test_the_loss_of_each_job_appears_in_the_list(store: JobStore):
    recorded(stored(store, "trains", phase="Completed", attempt=1), 3.0, 2.0, 1.0)
    stored(store, "silent", logs={"1/worker-0": "hello\n"}, phase="Completed", attempt=1)
    jobs = JobList(LocalTarget(store))
    async with watched(jobs):
        assert (await jobs.refresh())["default", "trains"].spark == ()
        await jobs.sample()
        rows = await jobs.refresh()
        assert (rows["default", "trains"].spark, rows["default", "silent"].spark) == ((3.0, 2.0, 1.0), ())
        assert (await jobs.refresh())["default", "trains"] is rows["default", "trains"]


def recorded(folder: JobFolder, *losses: float, attempt: int = 1) -> None:
    recorder = Recorder(folder.path, folder.key[1], None)
    samples = (Sample(step=step, metrics={"loss": one}) for step, one in enumerate(losses))
    recorder.append(LoggedSample(attempt, None, one) for one in samples)


async def test_losses_are_read_when_due_active_jobs_first_and_as_far_as_time_allows(
    store: JobStore, monkeypatch: pytest.MonkeyPatch
):
    ended = {"phase": "Completed", "attempt": 1, "completionTime": "2027-01-15T08:10:00Z"}
    done, active = stored(store, "done", **ended), stored(store, "active", phase="Running", attempt=1)
    for folder in (done, active):
        recorded(folder, 2.0)
    jobs, now, tick = JobList(LocalTarget(store)), [1000.0], 0.06

    def clock() -> float:
        now[0] += tick
        return now[0]

    async def sparks() -> list[int]:
        rows = await jobs.refresh()
        return [len(rows["default", name].spark) for name in ("active", "done")]

    async with watched(jobs):
        await jobs.refresh()
        monkeypatch.setattr(job_list, "time", SimpleNamespace(monotonic=clock))
        await jobs.sample()
        assert await sparks() == [1, 0], "the time was over"
        tick = 0.0
        await jobs.sample()
        assert await sparks() == [1, 1]
        for folder in (done, active):
            recorded(folder, 2.0, 1.0, attempt=2)
        await jobs.sample()
        assert await sparks() == [1, 1], "not due yet"
        now[0] += 5.0
        await jobs.sample()
        assert await sparks() == [3, 1], "a job that has ended changes no more"


async def test_the_loss_of_a_job_on_a_cluster_is_drawn_from_what_its_status_has_said(target: ClusterTarget):
    jobs, shown = JobList(target), list[JobView]()

    async def listed(namespace: str | None) -> list[JobView]:
        return shown[-1:]

    jobs.target.jobs = listed  # type: ignore[method-assign]
    seen = []
    for loss in (2.0, 2.0, 1.0, "nan"):
        metrics = {"nonFinite": {"loss": loss}} if loss == "nan" else {"metrics": {"loss": loss}}
        shown.append(view(status={"phase": "Running", "progress": {"step": 1, **metrics}}))
        seen.append((await jobs.refresh())["default", "mnist"].spark)
    assert seen == [(2.0,), (2.0,), (2.0, 1.0), (2.0, 1.0)]
    shown.clear()
    assert await jobs.refresh() == {}
    shown.append(view(status={"phase": "Running"}))
    assert (await jobs.refresh())["default", "mnist"].spark == (), "another job of this name"


def source(store: JobStore) -> JobList:
    return JobList(LocalTarget(store))


async def test_a_page_gets_all_jobs_first_and_then_what_has_changed(store: JobStore):
    first, _ = stored(store, "first", phase="Running"), stored(store, "second", phase="Completed")
    watched = Feed([source(store)])
    start = await watched.changes(since=0)
    assert [row.name for row in sorted(start.rows, key=lambda row: row.name)] == ["first", "second"]
    assert [one.name for one in start.targets] == ["local"]
    same = await watched.changes(start.revision)
    assert (same.revision, same.rows, same.removed, same.targets) == (start.revision, [], [], [])
    first.write_status(first.job().status.model_copy(update={"restarts": 3}))  # type: ignore[union-attr]
    (row,) = (await watched.changes(start.revision)).rows
    assert (row.name, row.restarts) == ("first", 3)
    first.remove()
    gone = await watched.changes(start.revision)
    assert (gone.rows, gone.removed) == ([], [("local", "default", "first")])


async def test_a_job_that_comes_back_is_no_longer_removed(store: JobStore):
    stored(store).remove()
    watched = Feed([source(store)])
    start = await watched.changes(since=0)
    stored(store)
    await watched.changes(start.revision)
    store.folder(("default", "mnist")).remove()
    await watched.changes(start.revision)
    stored(store)
    after = await watched.changes(start.revision)
    assert ([row.name for row in after.rows], after.removed) == (["mnist"], [])


async def test_a_page_that_follows_gets_each_change_once(store: JobStore):
    folder = stored(store, phase="Running")
    watched = Feed([source(store)])
    changes = watched.follow((await watched.changes(since=0)).revision)
    folder.write_status(folder.job().status.model_copy(update={"restarts": 3}))  # type: ignore[union-attr]
    change = await asyncio.wait_for(anext(changes), 30)
    assert change and change.rows[0].restarts == 3
    assert watched.watchers == 1
    await changes.aclose()  # type: ignore[attr-defined]
    assert watched.watchers == 0


class Target:
    """A source of the feed whose rows a test sets."""

    name = "one"

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], Row] = {}
        self.error = ""

    async def refresh(self) -> dict[tuple[str, str], Row]:
        return dict(self.rows)

    def describe(self) -> Description:
        return Description(self.name, "title", self.error)


async def test_the_feed_counts_changes_of_jobs_and_of_targets():
    target = Target()
    feed = Feed([target])  # type: ignore[list-item]
    first = await feed.changes(0)
    assert (first.rows, first.removed, [one.title for one in first.targets]) == ([], [], ["title"])
    target.rows = {("n", "a"): Row("one", "n", "a", "Running"), ("n", "b"): Row("one", "n", "b", "Running")}
    second = await feed.changes(first.revision)
    assert ([row.name for row in second.rows], second.targets) == (["a", "b"], [])
    target.rows["n", "a"] = Row("one", "n", "a", "Running")
    assert (await feed.changes(second.revision)).revision == second.revision, "an equal row is no change"
    target.error = "gone"
    third = await feed.changes(second.revision)
    assert ([one.error for one in third.targets], third.rows) == (["gone"], [])
    target.rows = {}
    gone = await feed.changes(third.revision)
    assert sorted(gone.removed) == [("one", "n", "a"), ("one", "n", "b")]
    assert (await feed.changes(0)).removed == [], "who begins has nothing to remove"


async def test_the_feed_reads_once_for_all_who_ask_at_the_same_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(feed_module, "PAUSE", 600.0)
    target = Target()
    feed = Feed([target])  # type: ignore[list-item]
    await feed.refresh()
    target.rows = {("n", "a"): Row("one", "n", "a", "Running")}
    assert (await feed.changes(0)).rows == []
    monkeypatch.setattr(feed_module, "PAUSE", 0.0)
    assert len((await feed.changes(0)).rows) == 1


async def test_a_page_without_changes_gets_a_sign_of_life(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(feed_module, "PAUSE", 0.001)
    monkeypatch.setattr(feed_module, "HEARTBEAT", 0.01)
    feed = Feed([Target()])  # type: ignore[list-item]
    following = feed.follow((await feed.changes(0)).revision)
    assert [await anext(following), await anext(following)] == [None, None]
    await following.aclose()  # type: ignore[attr-defined]
