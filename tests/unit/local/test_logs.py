"""Reading logs: whole, by replica, from near the end."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from paddlejob.client.describe.log_tail import last_lines
from paddlejob.client.targets.target import LogChoice
from paddlejob.errors import BadInput
from paddlejob.local.options import RunOptions
from paddlejob.local.state import logs
from paddlejob.local.state.log_times import LogTimes
from paddlejob.local.state.logs import follow_logs, log_tail
from paddlejob.local.state.store import JobFolder, Store
from tests.support.builders import NOON, document


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    """A job of which the second attempt is the newest."""
    made, lock = Store(tmp_path).begin(document("a-b"), RunOptions(), NOON)
    lock.release()
    for attempt in (1, 2):
        for pod in ("a-b-worker-0", "a-b-worker-1", "a-b-ps-0"):
            log = made.log(attempt, pod)
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text(f"{pod} {attempt} first\n{pod} {attempt} last\n")
    made.log(2, "a-b-worker-0", "sidecar").write_text("aside\n")
    return made


def read(folder: JobFolder, **choice: object) -> str:
    return b"".join(follow_logs(folder, LogChoice(**choice))).decode()


def test_one_replica_is_read_as_it_is(folder: JobFolder):
    assert read(folder, role="worker", index=1) == "a-b-worker-1 2 first\na-b-worker-1 2 last\n"


def test_lines_of_several_replicas_say_whose_they_are(folder: JobFolder):
    assert read(folder, role="worker", tail=1) == "[worker-0] a-b-worker-0 2 last\n[worker-1] a-b-worker-1 2 last\n"
    assert len(read(folder).splitlines()) == 6


def test_an_earlier_attempt_and_another_container(folder: JobFolder):
    assert "worker-0 1 first" in read(folder, attempt=1)
    assert read(folder, container="sidecar") == "aside\n"


def test_a_log_that_is_not_there_is_an_error(folder: JobFolder):
    with pytest.raises(BadInput, match="no such log"):
        read(folder, role="heter")


@pytest.mark.parametrize("tail", [0, 1, 3, 1000, 5000])
def test_the_tail_of_a_long_log(folder: JobFolder, tail: int):
    log = folder.log(2, "a-b-ps-0")
    lines = [f"{number} {'x' * 100}\n" for number in range(3000)]
    log.write_text("".join(lines))
    assert read(folder, role="ps", tail=tail) == "".join(lines[len(lines) - min(tail, 3000) :])


def test_a_progress_bar_does_not_overwrite_the_name_of_its_replica(folder: JobFolder):
    folder.log(2, "a-b-worker-0").write_text("\r10% loss=3\r50% loss=2\r100% loss=1\nend\r\n")
    expected = (
        "[worker-0] 100% loss=1\n[worker-0] end\n[worker-1] a-b-worker-1 2 first\n[worker-1] a-b-worker-1 2 last\n"
    )
    assert read(folder, role="worker") == expected
    assert read(folder, role="worker", pattern=re.compile(b"loss=[23]")) == "[worker-0] 50% loss=2\n"


def test_a_progress_bar_of_one_of_several_replicas_is_seen_before_it_ends(
    folder: JobFolder, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(logs, "BAR_SECONDS", 0.0)
    folder.log(2, "a-b-worker-0").write_text("\r10%\r20%\r30")
    lock = folder.runner_lock()
    assert lock.acquire()
    pieces = follow_logs(folder, LogChoice(role="worker", follow=True))
    assert b"[worker-0] 20%\n" in [next(pieces) for _ in range(2)]
    lock.release()
    assert b"".join(pieces).endswith(b"[worker-0] 30\n")


@pytest.mark.parametrize(("tail", "shown"), [(0, ""), (1, "c"), (2, "b\nc"), (3, "a\nb\nc"), (9, "a\nb\nc")])
def test_a_last_line_without_a_newline_counts_as_a_line_of_the_tail(folder: JobFolder, tail: int, shown: str):
    folder.log(2, "a-b-ps-0").write_text("a\nb\nc")
    assert read(folder, role="ps", index=0, tail=tail) == shown


def test_the_tail_of_a_log_begins_with_a_whole_line(tmp_path: Path):
    log = tmp_path / "log"
    log.write_text("".join(f"line {number}\n" for number in range(1000)))
    tail = log_tail(log)
    assert tail.startswith("line ")
    assert tail.endswith("line 999")
    assert len(tail) <= 2048
    assert log_tail(tmp_path / "absent") == ""


def test_lines_for_the_screen_have_no_control_characters(tmp_path: Path):
    log = tmp_path / "log"
    log.write_bytes(b"one\n\x1b[31mred\x1b[0m\n 10%\r 50%\r100%\n\n")
    assert last_lines(log, 3) == ["one", "red", "100%"]


def test_a_last_line_that_never_ended_is_shown_too(folder: JobFolder):
    folder.log(2, "a-b-worker-1").write_text("first\nloss=0.1")
    assert read(folder, role="worker").endswith("[worker-1] first\n[worker-1] loss=0.1\n")


def test_replicas_are_in_the_order_of_their_numbers(folder: JobFolder):
    for index in (2, 10):
        folder.log(2, f"a-b-worker-{index}").write_text("here\n")
    titles = [line.split()[0] for line in read(folder, role="worker", tail=1).splitlines()]
    assert titles == ["[worker-0]", "[worker-1]", "[worker-2]", "[worker-10]"]


def test_a_job_may_have_a_dot_in_its_name(tmp_path: Path):
    made, lock = Store(tmp_path).begin(document("my.job"), RunOptions(), NOON)
    lock.release()
    for name in ("", "sidecar"):
        log = made.log(1, "my.job-worker-0", name)
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"from {name or 'paddle'}\n")
    assert (read(made), read(made, container="sidecar")) == ("from paddle\n", "from sidecar\n")


def test_the_environment_that_the_launcher_prints_stays_in_the_log(tmp_path: Path):
    log = tmp_path / "log"
    log.write_text("Container failed\nenv {'SECRET_TOKEN': 'hunter2', 'HOME': '/'}\nthe end\n")
    assert log_tail(log) == "Container failed\nenv {...}\nthe end"
    assert last_lines(log, 2) == ["env {...}", "the end"]


def test_the_last_matching_lines_are_found_however_far_back(folder: JobFolder):
    lines = [f"{number} {'loss' if number % 1000 == 0 else 'noise'}" for number in range(5000)]
    folder.log(2, "a-b-ps-0").write_text("\n".join(lines) + "\nloss at the end")
    matching = re.compile(b"loss")
    assert read(folder, role="ps", tail=2, pattern=matching) == "4000 loss\nloss at the end\n"
    assert read(folder, role="ps", tail=0, pattern=matching) == ""
    assert read(folder, role="ps", pattern=matching).count("loss") == 6


def test_a_pattern_is_not_searched_in_the_name_of_the_replica(folder: JobFolder):
    folder.log(2, "a-b-worker-0").write_text("mine\n")
    assert read(folder, role="worker", pattern=re.compile(b"-1 2 last|mine")) == (
        "[worker-0] mine\n[worker-1] a-b-worker-1 2 last\n"
    )


def test_output_is_shown_since_a_moment(folder: JobFolder):
    log, times = folder.log(2, "a-b-ps-0"), LogTimes()
    written = ""
    for moment, text in ((1000, "old\n"), (1005, "between two records\n"), (1020, "half"), (1040, " a line\nnew\n")):
        written += text
        log.write_text(written)
        times.record(folder, float(moment))
    os.utime(log, (1040, 1040))
    assert read(folder, role="ps", since=900.0) == written
    assert read(folder, role="ps", since=1001.0) == "between two records\nhalf a line\nnew\n"
    assert read(folder, role="ps", since=1030.0) == "half a line\nnew\n"
    assert read(folder, role="ps", since=1050.0) == ""
    assert read(folder, role="ps", since=900.0, tail=1) == "new\n"


def test_a_log_without_recorded_times_is_shown_if_it_was_written_since(folder: JobFolder):
    log = folder.log(2, "a-b-ps-0")
    os.utime(log, (1000, 1000))
    assert read(folder, role="ps", since=900.0) == log.read_text()
    assert read(folder, role="ps", since=1100.0) == ""


def test_a_log_that_does_not_grow_gets_no_more_records(folder: JobFolder):
    times = LogTimes()
    for moment in range(0, 1000, 5):
        times.record(folder, float(moment))
    assert folder.log(2, "a-b-ps-0").with_suffix(".log.times").read_text().count("\n") == 1
