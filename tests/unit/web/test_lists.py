"""The list of jobs: what is read again, what has changed since a revision, and the shape of each job's loss."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from paddlejob.client.targets.local import LocalTarget
from paddlejob.local.state.store import Store
from paddlejob.web import feed
from paddlejob.web.sources.local.job_list import JobList
from paddlejob.web.sources.local.source import LocalSource
from paddlejob.web.sources.local.sparks import BLOCK, sampled_losses
from paddlejob.web.views.series import SPARK_POINTS
from tests.support.web_jobs import steps, stored


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "PAUSE", 0.0)


def test_only_jobs_that_have_changed_are_read_again(store: Store):
    first, second = stored(store, "first", phase="Completed"), stored(store, "second", phase="Completed")
    jobs = JobList(LocalTarget(store))
    before = jobs.rows()
    first.write_status(first.job().status.model_copy(update={"restarts": 3}))  # type: ignore[union-attr]
    after = jobs.rows()
    assert after["default", "second"] is before["default", "second"]
    assert after["default", "first"].restarts == 3
    second.remove()
    assert {*jobs.rows()} == {("default", "first")}


def test_a_view_is_read_once_for_all_pages(store: Store):
    folder = stored(store, phase="Completed")
    jobs = JobList(LocalTarget(store))
    assert jobs.view("default", "mnist") is jobs.view("default", "mnist")
    folder.write_status(folder.job().status.model_copy(update={"restarts": 3}))  # type: ignore[union-attr]
    assert jobs.view("default", "mnist").job.status.restarts == 3


async def test_while_the_files_cannot_be_read_the_page_says_why_and_shows_the_jobs_as_last_seen(store: Store):
    stored(store, "mine", phase="Completed")
    source = LocalSource(LocalTarget(store))
    assert (len(await source.refresh()), source.describe().error) == (1, "")
    jobs, aside = store.root / "jobs", store.root / "aside"
    jobs.rename(aside)
    jobs.symlink_to(jobs)
    assert len(await source.refresh()) == 1
    assert source.describe().error == f"{jobs}: Too many levels of symbolic links"
    jobs.unlink()
    aside.rename(jobs)
    assert (len(await source.refresh()), source.describe().error) == (1, "")


def test_one_namespace_can_be_chosen(store: Store):
    stored(store, "mine")
    assert JobList(LocalTarget(store), "team").rows() == {}
    assert len(JobList(LocalTarget(store), "default").rows()) == 1


def test_the_loss_of_each_job_appears_in_the_list(store: Store):
    stored(store, "trains", logs={"1/worker-0": steps(10)}, phase="Completed", attempt=1)
    stored(store, "silent", logs={"1/worker-0": "hello\n"}, phase="Completed", attempt=1)
    jobs = JobList(LocalTarget(store))
    jobs.rows()
    jobs.sample_losses()
    rows = jobs.rows()
    assert rows["default", "trains"].spark == tuple(round(1 / step, 6) for step in range(1, 11))
    assert rows["default", "silent"].spark == ()
    assert jobs.rows()["default", "trains"] is rows["default", "trains"]


def test_of_a_large_log_only_samples_are_read_and_they_span_all_attempts(store: Store):
    folder = stored(store, logs={"1/worker-0": steps(20_000), "2/worker-0": steps(40_000, first=20_001)})
    logs = {attempt: folder.log(attempt, "mnist-worker-0") for attempt in (1, 2)}
    assert all(path.stat().st_size > SPARK_POINTS * BLOCK for path in logs.values())
    losses = sampled_losses(logs, None)
    assert SPARK_POINTS - 2 <= len(losses) <= SPARK_POINTS + 2
    assert list(losses) == sorted(losses, reverse=True), "from the beginning to the end"
    assert losses[-1] == pytest.approx(1 / 40_000, rel=0.05)


def source(store: Store) -> LocalSource:
    return LocalSource(LocalTarget(store))


async def test_a_page_gets_all_jobs_first_and_then_what_has_changed(store: Store):
    first, _ = stored(store, "first", phase="Running"), stored(store, "second", phase="Completed")
    watched = feed.Feed([source(store)])
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


async def test_a_job_that_comes_back_is_no_longer_removed(store: Store):
    stored(store).remove()
    watched = feed.Feed([source(store)])
    start = await watched.changes(since=0)
    stored(store)
    await watched.changes(start.revision)
    store.folder(("default", "mnist")).remove()
    await watched.changes(start.revision)
    stored(store)
    after = await watched.changes(start.revision)
    assert ([row.name for row in after.rows], after.removed) == (["mnist"], [])


async def test_a_page_that_follows_gets_each_change_once(store: Store):
    folder = stored(store, phase="Running")
    watched = feed.Feed([source(store)])
    changes = watched.follow((await watched.changes(since=0)).revision)
    folder.write_status(folder.job().status.model_copy(update={"restarts": 3}))  # type: ignore[union-attr]
    change = await asyncio.wait_for(anext(changes), 30)
    assert change and change.rows[0].restarts == 3
    assert watched.watchers == 1
    await changes.aclose()  # type: ignore[attr-defined]
    assert watched.watchers == 0
