"""The logs of jobs on this machine: lines, samples, curves, pages, searches and downloads."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from paddlejob.errors import BadInput
from paddlejob.local.state.records import PodRecord
from paddlejob.local.state.store import JobFolder, JobStore
from paddlejob.logs import follow as follow_module
from paddlejob.logs.follow import PAGE_BYTES, LogPiece
from paddlejob.logs.selection import LogSelection
from paddlejob.targets.local import job_logs
from paddlejob.targets.local.local_target import LocalTarget
from paddlejob.targets.log_views import LastLines, LogRef
from tests.support.web_jobs import append, steps, stored

KEY = ("default", "mnist")
RUNNING, ENDED = {"phase": "Running", "attempt": 1}, {"phase": "Completed", "attempt": 2}


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_logs, "PAUSE", 0.01)
    monkeypatch.setattr(job_logs, "PAGE_PAUSE", 0.01)


@pytest.fixture
def target(tmp_path: Path) -> LocalTarget:
    return LocalTarget(JobStore(tmp_path))


@pytest.fixture
def folder(target: LocalTarget) -> JobFolder:
    """A job of two workers, of which the second attempt is the newest."""
    replicas = [f"{attempt}/{replica}" for attempt in (1, 2) for replica in ("worker-0", "worker-1")]
    return stored(target.store, logs={one: f"{one} first\n{one} last\n" for one in replicas}, **ENDED)


async def read(target: LocalTarget, follow: bool = False, **selection: Any) -> str:
    """As it is printed."""
    stream = await target.logs(*KEY, LogSelection(**selection), follow)
    lines = [line async for batch in stream.batches for line in batch]
    return b"".join((line.named() if stream.several else line.content) + line.end for line in lines).decode()


@contextmanager
def running(folder: JobFolder) -> Iterator[None]:
    """An engine runs the job."""
    lock = folder.runner_lock()
    assert lock.acquire()
    yield
    lock.release()


@pytest.mark.parametrize(
    ("selection", "text"),
    [
        ({"role": "worker", "index": 1}, "2/worker-1 first\n2/worker-1 last\n"),
        ({"tail": 1}, "[worker-0] 2/worker-0 last\n[worker-1] 2/worker-1 last\n"),
        ({"attempt": 1, "tail": 1}, "[worker-0] 1/worker-0 last\n[worker-1] 1/worker-1 last\n"),
        ({"pattern": re.compile(b"-1 last")}, "[worker-1] 2/worker-1 last\n"),
    ],
)
@pytest.mark.parametrize("follow", [False, True])
async def test_lines_are_selected_and_those_of_several_replicas_say_whose_they_are(
    target: LocalTarget, folder: JobFolder, follow: bool, selection: dict[str, Any], text: str
):
    assert await read(target, follow, **selection) == text


async def test_a_log_that_is_not_there_is_an_error(target: LocalTarget, folder: JobFolder):
    with pytest.raises(BadInput, match="job mnist has no such log; list its replicas with `pdj get mnist`"):
        await read(target, role="heter")
    assert await read(target, follow=True, role="heter") == ""


async def test_a_progress_bar_does_not_overwrite_the_name_of_its_replica(target: LocalTarget, folder: JobFolder):
    folder.log(2, "mnist-worker-0").write_text("\r10% loss=3\r50% loss=2\r100% loss=1\nend\r\nunfinished")
    shown = await read(target)
    assert shown.startswith("[worker-0] 100% loss=1\n[worker-0] end\n[worker-0] unfinished\n[worker-1] ")
    assert await read(target, pattern=re.compile(b"loss=[23]")) == "[worker-0] 50% loss=2\n"


async def test_what_is_added_is_followed_until_the_job_ends(
    target: LocalTarget, folder: JobFolder, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(follow_module, "BAR_SECONDS", 0.0)
    log = folder.log(2, "mnist-worker-0")
    log.write_text("one\n\r10%\r20%\r30")
    stream = await target.logs(*KEY, LogSelection(role="worker"), follow=True)
    seen = []
    folder.write_status(type(folder.job().status).model_validate(RUNNING))  # type: ignore[union-attr]
    with running(folder):
        while "[worker-0] 20%" not in seen:
            seen += [line.named().decode() for line in await anext(stream.batches)]
        append(log, "%\nfour")
    rest = [line.named().decode() async for batch in stream.batches for line in batch]
    assert seen[0] == "[worker-0] one" and rest[-2:] == ["[worker-0] 30%", "[worker-0] four"]


async def test_a_line_of_a_single_replica_is_not_waited_for(target: LocalTarget):
    folder = stored(target.store, logs={"1/worker-0": "tw"}, **RUNNING)
    stream = await target.logs(*KEY, LogSelection(index=0), follow=True)
    with running(folder):
        (part,) = await anext(stream.batches)
        assert (part.content, part.end) == (b"tw", b"")
        append(folder.log(1, "mnist-worker-0"), "o\n")
        (rest,) = await anext(stream.batches)
        assert (rest.content, rest.end) == (b"o", b"\n")


async def test_samples_are_read_from_the_first_worker_in_all_attempts(target: LocalTarget):
    stored(target.store, logs={"2/worker-1": steps(3), "1/worker-0": steps(2), "1/worker-1": steps(9)}, **ENDED)
    for follow in (False, True):
        found = [one async for batch in target.samples(*KEY, follow) for one in batch]
        assert [(one.attempt, one.sample.step) for one in found] == [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3)]


async def test_a_worker_that_wrote_nothing_yet_is_one_message(target: LocalTarget):
    stored(target.store, **ENDED)
    with pytest.raises(BadInput, match="no worker of job mnist has written a log yet; look at its replicas with `pdj"):
        await anext(target.samples(*KEY))
    assert [batch async for batch in target.samples(*KEY, follow=True)] == []
    with pytest.raises(BadInput, match="not found"):
        await anext(target.samples("default", "absent", follow=True))


async def test_curves_are_read_on_from_where_reading_stopped_and_anew_for_a_new_job(
    target: LocalTarget, monkeypatch: pytest.MonkeyPatch
):
    folder = stored(target.store, logs={"1/worker-0": steps(10)}, **RUNNING)
    assert (await target.series(*KEY)).metrics["loss"][0].steps == list(range(1, 11))
    append(folder.log(1, "mnist-worker-0"), steps(12, first=11))
    assert (await target.series(*KEY)).metrics["loss"][0].steps == list(range(1, 13))
    stored(target.store, logs={"1/worker-0": steps(2)})
    assert (await target.series(*KEY)).metrics["loss"][0].steps == [1, 2]
    monkeypatch.setattr(job_logs, "KEPT_SERIES", 1)
    stored(target.store, "other", logs={"1/worker-0": steps(3)})
    assert len((await target.series("default", "other")).losses) == 3
    assert (await target.series(*KEY)).losses == (1.0, 0.5), "it was forgotten, and is read again"
    (target.store.folder(KEY).path / "job.json").write_text("{")
    assert (await target.series(*KEY)).metrics == {}


async def test_the_end_of_the_log_that_explains_most_is_shown(target: LocalTarget):
    folder = stored(
        target.store, logs={"1/worker-0": "I0115 08:00:00.1 x\none\ntwo\n"}, progress={"step": 1}, **RUNNING
    )
    assert await target.last_lines(await target.job(*KEY), 5) == LastLines(), "its replicas have no log yet"
    log = str(folder.log(1, "mnist-worker-0"))
    folder.write_pods([PodRecord("mnist-worker-0", "u", "worker", 0, 1, "Running", log=log)])
    assert await target.last_lines(await target.job(*KEY), 5) == LastLines("worker-0", ("one", "two"))
    assert await target.last_lines(await target.job(*KEY), 0) == LastLines()


async def test_logs_are_listed_with_their_sizes(target: LocalTarget, folder: JobFolder):
    folder.log(2, "mnist-worker-0", "sidecar").write_text("aside\n")
    assert await target.log_refs(*KEY) == [
        LogRef(attempt, replica, 33) for attempt in (1, 2) for replica in ("worker-0", "worker-1")
    ]


async def test_a_page_follows_a_log_into_the_next_attempt(target: LocalTarget):
    folder = stored(target.store, logs={"1/worker-0": "first\n[worker-3] x\n\r10%\r20%"}, **RUNNING)
    pieces = target.log_pieces(*KEY, LogSelection("worker", 0))
    with running(folder):
        assert await anext(pieces) == [LogPiece("worker-0", ["first", "[worker-3] x"], "20%")]
        assert await anext(pieces) == [], "nothing has changed"
        append(folder.log(1, "mnist-worker-0"), "\r30%\nunfin")
        folder.log(2, "mnist-worker-0").parent.mkdir()
        folder.log(2, "mnist-worker-0").write_text("second\n")
        assert await anext(pieces) == [LogPiece("worker-0", ["30%"]), LogPiece("worker-0", ["second"])]
    rest = [piece async for batch in pieces for piece in batch]
    assert [piece.lines for piece in rest] == [["unfin"]]


async def test_a_page_gets_the_end_of_a_large_log_and_is_told_how_much_is_missing(target: LocalTarget):
    logs = {f"1/worker-{index}": ("x" * 99 + "\n") * 10_000 for index in range(8)}
    stored(target.store, logs=logs, **ENDED)
    (one,) = await anext(target.log_pieces(*KEY, LogSelection("worker", 0)))
    assert len(one.lines) <= PAGE_BYTES // 100 and one.skipped + 100 * len(one.lines) == 1_000_000
    every = await anext(target.log_pieces(*KEY, LogSelection()))
    assert sum(len(piece.lines) for piece in every) <= 4 * PAGE_BYTES // 100, "shared by all replicas"


async def test_logs_are_searched_and_downloaded(target: LocalTarget, folder: JobFolder):
    found = await target.search(*KEY, LogSelection(), "last")
    assert [(one.replica, one.attempt, one.line) for one in found.found] == [("worker-0", 2, 2), ("worker-1", 2, 2)]
    blocks = [block async for block in target.download(*KEY, LogSelection(attempt=1))]
    assert b"".join(blocks).splitlines()[0::3] == [b"==> worker-0 <==", b"==> worker-1 <=="]
    one = [block async for block in target.download(*KEY, LogSelection("worker", 0))]
    assert one == [b"2/worker-0 first\n2/worker-0 last\n"]


async def test_a_log_that_ends_while_nobody_reads_keeps_no_thread_busy(target: LocalTarget):
    folder = stored(target.store, logs={"1/worker-0": "a\n"}, **RUNNING)
    stream = await target.logs(*KEY, LogSelection(index=0), follow=True)
    with running(folder):
        await anext(stream.batches)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(stream.batches), 0.1)
