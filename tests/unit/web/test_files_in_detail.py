"""What the pages get from files of this machine: rows and details, curves, logs, sparks, and the machine itself."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from paddlejob.client.targets.local import LocalTarget
from paddlejob.client.targets.target import EventView, JobView, LogLine, PodView
from paddlejob.client.watch.usage import Usage
from paddlejob.errors import NotPossible
from paddlejob.local.machine.gpu_use import GpuUse
from paddlejob.local.machine.gpus import Gpu
from paddlejob.local.machine.resources import Machine
from paddlejob.local.state.store import Store
from paddlejob.web import feed as feed_module
from paddlejob.web.feed import Feed
from paddlejob.web.logs.lines import LogQuery, Match, decode, parse_query
from paddlejob.web.logs.search import Searched, _whole_lines, search
from paddlejob.web.sources.local import job_list, log_files, sparks
from paddlejob.web.sources.local import machine as machine_module
from paddlejob.web.sources.local import series as series_module
from paddlejob.web.sources.local.gpus import GpuTable
from paddlejob.web.sources.local.job_list import JobList
from paddlejob.web.sources.local.log_files import Follower, find_logs, references
from paddlejob.web.sources.local.machine import MachineMeter
from paddlejob.web.sources.local.series import SeriesFiles
from paddlejob.web.sources.local.source import LocalSource
from paddlejob.web.sources.local.sparks import Sparks, sampled_losses
from paddlejob.web.sources.source import Description
from paddlejob.web.views.attempts import attempts_of
from paddlejob.web.views.commands import commands
from paddlejob.web.views.detail import EVENTS, Replica, detail_of
from paddlejob.web.views.plan import plan_of
from paddlejob.web.views.row import MESSAGE_LIMIT, Row, moment, row_of
from paddlejob.web.views.series import MOST_METRICS, Collector, thinned
from tests.support.web_jobs import append, steps, stored, view

BEGAN, ENDED = "2027-01-15T08:00:00Z", "2027-01-15T08:10:00Z"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_a_row_has_everything_that_the_list_shows():
    status = {
        "phase": "Failed", "message": "x" * 400 + "\nmore", "restarts": 2, "disruptions": 1, "startTime": BEGAN,
        "completionTime": ENDED, "worker": {"ready": "1/2"}, "ps": {"ready": "0/1"},
        "progress": {"step": 3, "totalSteps": 4, "eta": ENDED},
    }  # fmt: skip
    row = row_of("cluster", view(status=status, ps=1), spark=(1.0,))
    assert row == Row(
        target="cluster", namespace="default", name="mnist", phase="Failed", mode="PS", message="x" * MESSAGE_LIMIT,
        ready={"ps": "0/1", "worker": "1/2"}, progress="3/4", fraction=0.75, eta=None, loss=None, restarts=2,
        disruptions=1, created=1800000000.0, started=1800000000.0, ended=1800000600.0, spark=(1.0,), queue="",
    )  # fmt: skip


def test_a_job_whose_engine_was_killed_shows_its_note_although_its_status_says_running():
    made = view(status={"phase": "Running", "message": "all pods are running", "progress": {"eta": ENDED}})
    killed = JobView(made.job, {}, "Interrupted", note="the engine was killed")
    row = row_of("local", killed)
    assert (row.phase, row.message, row.eta) == ("Interrupted", "the engine was killed", None)
    assert row_of("local", made).eta == 1800000600.0


def test_times_that_cannot_be_read_are_unknown():
    assert (moment(BEGAN), moment(""), moment(None), moment("yesterday")) == (1800000000.0, None, None, None)


def test_the_page_of_a_job_has_its_replicas_events_and_figures():
    progress = {
        "step": 9, "checkpointStep": 5, "metrics": {"loss": 1.0, "acc": 0.5}, "nonFinite": {"loss": "nan"},
        "lastOutputTime": BEGAN,
    }  # fmt: skip
    status = {"phase": "Failed", "reason": "R", "message": "mnist-worker-1 failed\nmore", "attempt": 2, "goodput": 80}
    made = view(status=status | {"progress": progress, "completionTime": ENDED}, flags=" -n team")
    made.document["metadata"]["managedFields"] = [{}]
    made.pods.extend(
        [
            PodView("mnist-worker-0", "worker", 0, "Failed", 2, "10.0.0.1", 3, note="n", pid=7),
            PodView("mnist-worker-1", "worker", 1, "Failed", 2, node="node-1", pid=8),
            PodView("mnist-worker-2", "worker", 2, "Pending"),
        ]
    )
    made.events.extend(EventView(str(number), "r", "m") for number in range(EVENTS + 1))
    found = detail_of("cluster", made, {"mnist-worker-1": Usage(1.0)}, read_only=False)
    assert (found.reason, found.message, found.attempt, found.goodput) == ("R", "mnist-worker-1 failed\nmore", 2, 80)
    assert (found.checkpoint, found.last_output) == (5, 1800000000.0)
    assert found.metrics == {"loss": "nan", "acc": 0.5}
    assert found.next.startswith("read `pdj logs mnist --role worker --index 1 -n team`")
    assert found.replicas[0] == Replica(
        "worker-0", "worker", 0, "Failed", 2, "pid 7", "10.0.0.1", 3, "n", None
    )  # fmt: skip
    assert [(one.where, one.usage) for one in found.replicas[1:]] == [("node-1", Usage(1.0)), ("", None)]
    assert (len(found.events), found.events[0].time) == (EVENTS, "1")
    assert "managedFields" not in found.file and "kind: PaddleJob" in found.file
    assert [one.action for one in found.commands] == ["rerun", "delete"]
    noted = JobView(made.job, made.document, "Failed", note="a note")
    assert detail_of("local", noted, {}, read_only=False).message == "a note"
    bare = detail_of("local", view(), {}, read_only=False)
    assert (bare.checkpoint, bare.metrics, bare.last_output) == (None, {}, None)


def test_workers_can_be_scaled_where_that_is_possible_now():
    def actions(**options: Any) -> list[str]:
        return [one.action for one in detail_of("local", view(**options), {}, read_only=False).commands]

    assert actions(status={"phase": "Running"}) == ["suspend", "delete"]
    assert actions(status={"phase": "Running"}, elastic=1, worker_={"requests": 1}) == ["suspend", "scale", "delete"]
    assert actions(status={"phase": "Suspended"}, suspend=True) == ["resume", "scale", "delete"]
    assert actions(status={"phase": "Suspended"}) == ["suspend", "scale", "delete"], "it waits for quota"


def test_what_a_page_offers_depends_on_what_only_the_target_knows():
    made = view(status={"phase": "Running"})
    for phase, damaged, expected in (
        ("Interrupted", False, ["resume", "delete"]),
        ("Deleting", False, []),
        ("Damaged", True, ["delete"]),
    ):
        seen = JobView(made.job, {}, phase, damaged=damaged)
        assert [one.action for one in commands(seen, resizable=False, read_only=False)] == expected
    ended = JobView(view(status={"phase": "Failed", "completionTime": ENDED}).job, {}, "Damaged", damaged=True)
    assert [one.action for one in commands(ended, resizable=True, read_only=False)] == ["delete"]
    scale = commands(view(status={"phase": "Running"}, flags=" -n team"), resizable=True, read_only=False)[1]
    assert scale.text == "pdj scale mnist WORKERS -n team"


def test_the_current_attempt_of_a_job():
    created = attempts_of(view(status={"phase": "Pending", "attempt": 1, "reason": "Unschedulable", "message": "a\nb"}))
    (one,) = created
    assert (one.start, one.end, one.reason, one.message, one.failed) == (
        1800000000.0,
        None,
        "Unschedulable",
        "a",
        False,
    )
    made = view(status={"phase": "Running", "attempt": 1, "reason": "Running"})
    (killed,) = attempts_of(JobView(made.job, {}, "Interrupted", note="killed"))
    assert (killed.reason, killed.message, killed.failed) == ("Running", "killed", True)


def test_a_job_that_cannot_be_planned_says_why():
    too_large = plan_of("local", view(workers=10_000))
    assert (too_large.objects, too_large.shown, "job mnist: " in too_large.text) == (0, 0, True)
    assert "127.1.0.2" in plan_of("local", view()).text
    assert "10.0.0.1" in plan_of("cluster", view()).text


def test_a_search_counts_lines_over_blocks_and_logs():
    blocks = [b"one\ntwo", b" needle\nthree\n", b"four needle"]
    found = search([Searched("worker-0", 1, blocks), Searched("ps-0", 2, [b"needle\n\nneedle"])], "needle")
    assert [(one.replica, one.attempt, one.line) for one in found.found] == [
        ("worker-0", 1, 2), ("worker-0", 1, 4), ("ps-0", 2, 1), ("ps-0", 2, 3)
    ]  # fmt: skip
    assert (found.searched, found.complete) == (len(b"".join(blocks)) + len(b"needle\n\nneedle"), True)


def test_a_match_of_nothing_and_of_newlines_is_one_line(monkeypatch: pytest.MonkeyPatch):
    (only, *_) = search([Searched("w", 1, [b"a\nb\n"])], "^").found
    assert only == Match("w", 1, 1, "a", ())
    assert [one.text for one in search([Searched("w", 1, [b"a\nb"])], "a|b").found] == ["a", "b"]
    assert [one.text for one in search([Searched("w", 1, [b"ab\ncd\n"])], "$").found] == ["ab", "cd"]
    monkeypatch.setattr("paddlejob.web.logs.search.BLOCK", 4)
    assert list(_whole_lines([b"abc", b"def", b"ghi", b"j\nk", b"l\n", b"m"])) == [b"abcdef", b"ghij\n", b"kl\n", b"m"]


def test_a_query_names_a_replica_and_an_attempt():
    assert parse_query("", "") == LogQuery("", 0)
    query = parse_query("worker-12", "3")
    assert (query.role, query.index, query.attempt) == ("worker", 12, 3)
    assert (LogQuery().role, LogQuery().index) == ("", None)
    assert decode("é".encode() * 10, limit=5) == "é" * 5 + "…"
    assert decode(b"12345", limit=5) == "12345"
    assert decode(b"a\xffb\n") == "a\ufffdb"


def test_logs_have_their_sizes(store: Store):
    folder = stored(store, logs={"1/worker-0": "12345"})
    (one,) = references(find_logs(folder))
    assert (one.attempt, one.replica, one.size) == (1, "worker-0", 5)
    (folder.path / "logs" / "backup-2").mkdir()
    (folder.path / "logs" / "backup-2" / "mnist-worker-0.log").write_text("x")
    assert len(find_logs(folder)) == 1
    (folder.path / "logs" / "attempt-1" / "mnist-worker-0.log").unlink()
    assert find_logs(folder) == []
    assert find_logs(store.folder(("default", "absent"))) == []


def test_a_log_that_grows_faster_than_a_page_can_show_is_cut(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(log_files, "BATCH_BYTES", 30)
    folder = stored(store, logs={"1/worker-0": "a\n"}, phase="Running", attempt=1)
    log = folder.log(1, "mnist-worker-0")
    held = folder.runner_lock()
    assert held.acquire()
    follower = Follower(folder, LogQuery())
    assert [piece.lines for piece in follower.news()[0]] == [["a"]]
    assert follower.news()[0] == []
    append(log, "123456789\n" * 3)
    assert [(piece.lines, piece.skipped) for piece in follower.news()[0]] == [(["123456789"] * 3, 0)]
    append(log, "123456789\n" * 4)
    assert [(piece.lines, piece.skipped) for piece in follower.news()[0]] == [(["123456789"] * 2, 20)]
    append(log, "unfinished")
    assert follower.news() == ([], False)
    held.release()
    ((piece,), over) = follower.news()
    assert (piece.lines, over) == (["unfinished"], True)


def test_the_first_bytes_are_shared_by_many_replicas(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(log_files, "FIRST_BYTES", 40)
    logs = {f"1/worker-{index}": "123456789\n" * 9 for index in range(8)}
    pieces, _ = Follower(stored(store, logs=logs), LogQuery()).news()
    assert {len(piece.lines) for piece in pieces} == {1}
    (alone,), _ = Follower(stored(store, "alone", logs={"1/worker-0": "123456789\n" * 9}), LogQuery()).news()
    assert len(alone.lines) == 3


def test_a_value_without_a_step_belongs_to_the_last_step():
    collector = Collector(None)
    collector.add([LogLine(1, "step 5/9 loss=3.0"), LogLine(1, "epoch 2/3 lr=0.5 loss=2.0")])
    found = collector.series(complete=False)
    assert [one.steps for one in found.metrics["loss"]] == [[5.0, 5.0]]
    assert [*found.metrics] == ["loss", "learning_rate"]
    assert (found.lines, found.complete) == (2, False)
    by_epoch = Collector(None)
    by_epoch.add([LogLine(1, f"epoch {epoch}/3 loss={epoch}.0") for epoch in (1, 2)])
    assert by_epoch.series().metrics["loss"][0].values == [1.0, 2.0]
    without = Collector(None)
    without.add([LogLine(1, "loss=3.0"), LogLine(1, "loss=2.0")])
    assert [one.steps for one in without.series().metrics["loss"]] in ([[0.0, 1.0]], [])


def test_the_number_of_metrics_is_bounded_but_not_that_of_attempts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("paddlejob.web.views.series.MOST_METRICS", 2)
    collector = Collector(None)
    for attempt in (1, 2, 3):
        collector.add([LogLine(attempt, "step 1/9 loss=3.0 lr=0.5 ips=7 samples/s")])
    found = collector.series().metrics
    assert len(found) == 2 and all(len(curves) == 3 or len(curves) == 1 for curves in found.values())
    assert MOST_METRICS == 40


def test_a_curve_keeps_its_ends_and_its_extremes():
    assert thinned([1.0] * 4, 4) == [0, 1, 2, 3]
    assert thinned([float(one) for one in range(9)], 4) == [0, 4, 5, 8]
    assert thinned([0.0, 9.0, 1.0, 1.0, 1.0, 1.0, -5.0, 1.0, 1.0], 4) == [0, 1, 5, 6, 8]


def test_of_a_small_log_every_loss_counts_and_attempts_share_the_points(store: Store):
    folder = stored(store, logs={"1/worker-0": steps(3), "2/worker-0": steps(2)})
    logs = {attempt: folder.log(attempt, "mnist-worker-0") for attempt in (1, 2)}
    assert sampled_losses(logs, None) == (1.0, 0.5, 0.333333, 1.0, 0.5)
    assert sampled_losses({}, None) == ()


def test_jobs_are_sampled_when_due_and_as_far_as_time_allows(store: Store, monkeypatch: pytest.MonkeyPatch):
    now = [100.0]
    monkeypatch.setattr(sparks.time, "monotonic", lambda: now[0])
    folders = {folder.key: folder for folder in (stored(store, name, logs={"1/worker-0": steps(2)}) for name in "ab")}
    (a, b), made = folders, Sparks()
    made.update(folders, active={a})
    assert made.get(a) == made.get(b) == (1.0, 0.5)
    for folder in folders.values():
        append(folder.log(1, f"{folder.key[1]}-worker-0"), "step 3/3 loss=0.25\n")
    now[0] += 4.9
    made.update(folders, active={a})
    assert len(made.get(a)) == 2
    now[0] += 0.2
    made.update(folders, active={a})
    assert (len(made.get(a)), len(made.get(b))) == (3, 2), "a job that has ended does not change"
    made.expire(b)
    now[0] += 5.0
    made.update(folders, active=set())
    assert len(made.get(b)) == 3
    before = made.get(b)
    made.expire(b)
    now[0] += 5.0
    made.update(folders, active=set())
    assert made.get(b) is before, "its log has not grown"
    made.forget(b)
    assert made.get(b) == ()
    monkeypatch.setattr(sparks, "BUDGET_SECONDS", -1.0)
    made.update(folders, active=set())
    assert made.get(b) == ()


def test_a_damaged_job_or_a_missing_log_hides_no_other(store: Store):
    folder = stored(store, logs={"1/worker-0": steps(2)})
    (folder.path / "job.json").write_text("{")
    made = Sparks()
    made.update({folder.key: folder}, active=set())
    assert made.get(folder.key) == ()
    assert SeriesFiles().read(folder).metrics == {}


def test_losses_are_only_sampled_while_somebody_looks(store: Store, monkeypatch: pytest.MonkeyPatch):
    stored(store, logs={"1/worker-0": steps(2)})
    jobs = JobList(LocalTarget(store))
    jobs.sample_losses()
    jobs.rows()
    real = time.monotonic()
    monkeypatch.setattr(job_list.time, "monotonic", lambda: real + 5.5)
    jobs.sample_losses()
    monkeypatch.undo()
    assert jobs.rows()["default", "mnist"].spark == ()
    jobs.sample_losses()
    assert jobs.rows()["default", "mnist"].spark == (1.0, 0.5)


def test_the_list_skips_what_is_no_job_and_notices_a_runner(store: Store):
    folder = stored(store, phase="Running")
    (store.root / "jobs" / "default" / ".hidden").mkdir()
    (store.root / "jobs" / "file").touch()
    (store.root / "jobs" / "default" / "empty").mkdir()
    jobs = JobList(LocalTarget(store))
    assert [*jobs.rows()] == [("default", "mnist")]
    assert jobs.rows()["default", "mnist"].phase == "Interrupted"
    held = folder.runner_lock()
    assert held.acquire()
    assert jobs.rows()["default", "mnist"].phase == "Running"
    assert jobs.view("default", "mnist").phase == "Running"
    held.release()
    assert jobs.view("default", "mnist").phase == "Interrupted"
    assert JobList(LocalTarget(Store(store.root / "absent"))).rows() == {}


def test_views_and_readings_that_are_kept_are_bounded(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(job_list, "KEPT_VIEWS", 2)
    monkeypatch.setattr(series_module, "KEPT", 2)
    jobs, files = JobList(LocalTarget(store)), SeriesFiles()
    for name in "abc":
        files.read(stored(store, name, logs={"1/worker-0": steps(2)}))
        jobs.view("default", name)
    assert [key[1] for key in jobs._views] == ["c"]
    assert [key[1] for key in files._readings] == ["b", "c"]
    files.read(store.folder(("default", "b")))
    files.read(stored(store, "d"))
    assert [key[1] for key in files._readings] == ["b", "d"], "those that were looked at last"


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


async def test_the_feed_counts_changes_of_jobs_and_of_targets(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(feed_module, "PAUSE", 0.0)
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


async def test_the_feed_reads_once_for_all_who_ask_at_the_same_time():
    target = Target()
    feed = Feed([target])  # type: ignore[list-item]
    await feed.refresh()
    target.rows = {("n", "a"): Row("one", "n", "a", "Running")}
    assert (await feed.changes(0)).rows == []
    feed._refreshed -= feed_module.PAUSE
    assert len((await feed.changes(0)).rows) == 1


async def test_a_page_without_changes_gets_a_sign_of_life(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(feed_module, "PAUSE", 0.001)
    monkeypatch.setattr(feed_module, "HEARTBEAT", 0.01)
    feed = Feed([Target()])  # type: ignore[list-item]
    following = feed.follow((await feed.changes(0)).revision)
    assert [await anext(following), await anext(following)] == [None, None]
    await following.aclose()  # type: ignore[attr-defined]


def test_gpus_show_how_busy_they_are_and_who_holds_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("paddlejob.client.watch.gpus.read_gpu_use", lambda: {"u1": GpuUse("u1", "H100", 30.0, 5, 80)})
    holders = {"mnist": {"gpus": {"mnist-worker-0": ["u1", "u9"]}}, "other": {"gpus": {}}}
    one, two = GpuTable().table((Gpu("u1", "0"), Gpu("u2", "1")), holders)
    assert (one.index, one.name, one.holder, one.percent, one.memory, one.capacity) == (
        "0", "H100", "mnist · mnist-worker-0", 30.0, 5, 80
    )  # fmt: skip
    assert (two.index, two.name, two.holder, two.percent) == ("1", "u2", "", None)
    assert GpuTable().table((), {}) == []


def test_the_machine_shows_what_jobs_hold_and_what_is_in_use(store: Store, monkeypatch: pytest.MonkeyPatch):
    made = Machine("here", cpus=8.0, memory=1 << 30, gpus=(Gpu("u1", "0"),), gpu_note="a note")
    monkeypatch.setattr(machine_module, "this_machine", lambda: made)
    holders = {"a": {"asked": {"cpu": 2.0, "nvidia.com/gpu": 1}, "gpus": {}}, "b": {"asked": {"cpu": 1.5}, "gpus": {}}}
    monkeypatch.setattr(machine_module, "held_by_jobs", lambda _: holders)
    now, busy = [100.0], [10.0]
    monkeypatch.setattr(machine_module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(machine_module, "_busy_seconds", lambda: busy[0])
    meter = MachineMeter(store, GpuTable())
    found = meter.read()
    cpu, memory, gpu = found.resources
    assert (found.name, found.title, found.note) == ("local", "here", "a note")
    assert (cpu.name, cpu.capacity, cpu.held, cpu.used, cpu.holders) == ("cpu", 8.0, 3.5, 0.0, {"a": 2.0, "b": 1.5})
    assert (memory.capacity, memory.holders) == (float(1 << 30), {})
    assert memory.used and memory.used > 1 << 20
    assert (gpu.name, gpu.capacity, gpu.held, gpu.used) == ("nvidia.com/gpu", 1.0, 1.0, None)
    now[0], busy[0] = 100.4, 99.0
    assert meter.read().resources[0].used == 0.0, "too soon"
    now[0], busy[0] = 102.0, 13.0
    assert meter.read().resources[0].used == 1.5
    monkeypatch.setattr(machine_module, "this_machine", lambda: Machine("bare", cpus=1.0, memory=1))
    assert [one.name for one in MachineMeter(store, GpuTable()).read().resources] == ["cpu", "memory"]

    def broken() -> Machine:
        raise NotPossible("CUDA_VISIBLE_DEVICES: wrong")

    monkeypatch.setattr(machine_module, "this_machine", broken)
    assert MachineMeter(store, GpuTable()).read().note == "CUDA_VISIBLE_DEVICES: wrong"


def test_busy_seconds_count_no_idle_ones(monkeypatch: pytest.MonkeyPatch):
    text = "cpu  100 20 30 4000 500 6 7 8 99 99\ncpu0 1 2 3\n"
    monkeypatch.setattr(Path, "read_text", lambda self: text)
    monkeypatch.setattr(machine_module.os, "sysconf", lambda _: 100)
    assert machine_module._busy_seconds() == (100 + 20 + 30 + 6 + 7 + 8) / 100
    monkeypatch.setattr(Path, "read_text", lambda self: "MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable: 40 kB\n")
    assert machine_module._memory_in_use() == 60 * 1024


async def test_the_source_of_this_machine_reads_files_in_threads(store: Store):
    stored(store, logs={"1/worker-0": steps(3)}, phase="Completed", attempt=1, completionTime=ENDED)
    source = LocalSource(LocalTarget(store), "default")
    assert source.describe() == Description("local", "this machine", "", "default")
    assert [*(await source.refresh())] == [("default", "mnist")]
    assert (await source.usage(await source.view("default", "mnist"))) == {}
    (batch,) = [batch async for batch in source.follow("default", "mnist", LogQuery("worker-0"))]
    assert [piece.lines[0] for piece in batch] == ["step 1/3 loss=1.000000"]
