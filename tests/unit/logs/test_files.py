"""The log files of a job: which there are, where the selected lines begin, the last lines, and which are kept."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from paddlejob.logs.files import (
    KEPT_ATTEMPTS,
    TAIL_BYTES,
    find_logs,
    first_worker_logs,
    last_lines,
    log_tail,
    prune_logs,
    select_logs,
    start_of,
)
from paddlejob.logs.selection import LogSelection
from paddlejob.logs.times import EVERY, LogTimes, size_at

LOSS = re.compile(b"loss")


def write(job: Path, text: str, attempt: int = 1, pod: str = "mnist-worker-0") -> Path:
    log = job / "logs" / f"attempt-{attempt}" / f"{pod}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(text)
    return log


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """With logs of two attempts, and what is none."""
    for attempt, replica in ((1, "worker-0"), (2, "worker-10"), (2, "worker-2"), (2, "ps-0"), (2, "worker-2.sidecar")):
        write(tmp_path, "text", attempt, f"mnist-{replica}")
    attempt_2 = tmp_path / "logs" / "attempt-2"
    (attempt_2 / "notes.txt").write_text("x")
    (attempt_2 / "mnist-worker-x.log").write_text("x")
    (attempt_2 / "mnist-worker-3.log").symlink_to("/etc/passwd")
    for name in ("attempt-x", "other-1"):
        (tmp_path / "logs" / name).mkdir()
    return tmp_path


def test_logs_are_found_by_attempt_role_and_index_and_nothing_else_is(job: Path):
    assert [(log.attempt, log.replica, log.container, log.size) for log in find_logs(job, "mnist")] == [
        (1, "worker-0", "", 4),
        (2, "ps-0", "", 4),
        (2, "worker-2", "", 4),
        (2, "worker-2", "sidecar", 4),
        (2, "worker-10", "", 4),
    ]
    assert find_logs(job / "absent", "mnist") == []


@pytest.mark.parametrize(
    ("selection", "replicas"),
    [
        (LogSelection(), ["ps-0", "worker-2", "worker-10"]),
        (LogSelection(role="worker"), ["worker-2", "worker-10"]),
        (LogSelection(index=2), ["worker-2"]),
        (LogSelection(attempt=1), ["worker-0"]),
        (LogSelection(attempt=3), []),
        (LogSelection(container="sidecar"), ["worker-2"]),
        (LogSelection(role="ps", index=1), []),
    ],
)
def test_logs_are_selected(job: Path, selection: LogSelection, replicas: list[str]):
    assert [log.replica for log in select_logs(job, "mnist", selection)] == replicas


def test_a_job_may_have_a_dot_in_its_name(tmp_path: Path):
    write(tmp_path, "", pod="my.job-worker-0")
    write(tmp_path, "", pod="my.job-worker-0.sidecar")
    assert [(log.replica, log.container) for log in find_logs(tmp_path, "my.job")] == [
        ("worker-0", ""),
        ("worker-0", "sidecar"),
    ]


def test_the_first_worker_of_each_attempt_is_the_one_with_the_lowest_index(job: Path):
    assert [(log.attempt, log.replica) for log in first_worker_logs(job, "mnist")] == [(1, "worker-0"), (2, "worker-2")]


@pytest.mark.parametrize(
    ("text", "tail", "rest"),
    [
        ("a\nb\nc\n", 0, ""),
        ("a\nb\nc\n", 1, "c\n"),
        ("a\nb\nc\n", 2, "b\nc\n"),
        ("a\nb\nc\n", 9, "a\nb\nc\n"),
        ("a\nb\nc", 1, "c"),
        ("a\nb\nc", 2, "b\nc"),
        ("a\nb\nc", -1, "a\nb\nc"),
        ("", 3, ""),
    ],
)
def test_a_tail_begins_at_the_last_lines(tmp_path: Path, text: str, tail: int, rest: str):
    log = write(tmp_path, text)
    assert log.read_text()[start_of(log, LogSelection(tail=tail)) :] == rest


def test_a_tail_is_found_over_blocks(tmp_path: Path):
    log = write(tmp_path, "".join(f"{number:09}\n" for number in range(20_000)))
    for lines in (1, 6553, 6554, 6555, 15_000):
        assert start_of(log, LogSelection(tail=lines)) == 10 * (20_000 - lines)


def test_the_last_matching_lines_are_found_however_far_back(tmp_path: Path):
    lines = [f"{number} {'loss' if number % 1000 == 0 else 'noise'}" for number in range(5000)]
    log = write(tmp_path, "\n".join(lines) + "\nloss at the end")

    def first(tail: int) -> str:
        return log.read_text()[start_of(log, LogSelection(tail=tail, pattern=LOSS)) :].partition("\n")[0]

    assert (first(0), first(1), first(2), first(9)) == ("", "loss at the end", "4000 loss", "0 loss")


def test_sizes_of_logs_are_recorded_once_in_a_while_and_only_when_they_grow(tmp_path: Path):
    times, log = LogTimes(), write(tmp_path, "one\n")
    record = log.with_name("mnist-worker-0.log.times")
    times.record(tmp_path, 1000.0)
    log.write_text("one\ntwo\n")
    times.record(tmp_path, 1000.0 + EVERY - 1)
    assert record.read_text() == "1000 4\n"
    times.record(tmp_path, 1000.0 + EVERY)
    times.record(tmp_path, 1000.0 + 2 * EVERY)
    assert record.read_text() == "1000 4\n1010 8\n"
    times.forget(tmp_path)
    times.record(tmp_path, 1000.0 + 2 * EVERY)
    assert record.read_text() == "1000 4\n1010 8\n1020 8\n"


def test_what_was_written_since_a_moment_begins_with_a_line(tmp_path: Path):
    log = write(tmp_path, "0123456789\n" * 10 + "unfinished")
    os.utime(log, (2000, 2000))
    log.with_name(f"{log.name}.times").write_text("1000 11\n1010 27\n1020 120\ndamaged\n1030 999\n")
    moments = (999, 1000, 1009, 1010, 1020, 1030, 2000)
    assert [size_at(log, moment) for moment in moments] == [0, 11, 11, 27, 120, 120, 120]
    assert [start_of(log, LogSelection(since=moment)) for moment in moments] == [0, 11, 11, 22, 110, 110, 110]
    assert start_of(log, LogSelection(since=1000, tail=2)) == 99
    assert start_of(log, LogSelection(since=1010, pattern=re.compile(b"0"), tail=99)) == 22
    assert size_at(log, 2001) == 120, "nothing was written since"
    assert size_at(log.with_name("absent"), 5) == 0


def test_logs_of_old_attempts_are_removed(tmp_path: Path):
    for attempt in range(1, KEPT_ATTEMPTS + 3):
        write(tmp_path, "x", attempt)
    (tmp_path / "logs" / "attempt-x").mkdir()
    prune_logs(tmp_path, KEPT_ATTEMPTS + 2)
    kept = {path.name for path in (tmp_path / "logs").iterdir()}
    assert kept == {"attempt-x", *(f"attempt-{number}" for number in range(3, KEPT_ATTEMPTS + 3))}


def test_the_end_of_a_log_begins_with_a_whole_line_if_it_is_cut(tmp_path: Path):
    assert log_tail(write(tmp_path, "a\nb\n")) == "a\nb"
    exact = "x" * (TAIL_BYTES - 2) + "\ny"
    assert log_tail(write(tmp_path, exact)) == exact
    assert log_tail(write(tmp_path, "cut" + exact)) == "y"
    assert log_tail(write(tmp_path, "z" * (TAIL_BYTES + 5))) == "z" * TAIL_BYTES
    assert log_tail(tmp_path / "absent") == ""


def test_the_environment_that_the_launcher_prints_stays_in_the_log(tmp_path: Path):
    log = write(tmp_path, "Container failed\nenv {'SECRET_TOKEN': 'hunter2', 'HOME': '/'}\nthe end\n")
    assert log_tail(log) == "Container failed\nenv {...}\nthe end"
    assert last_lines(log, 2) == ["env {...}", "the end"]


def test_lines_for_the_screen_have_no_control_characters(tmp_path: Path):
    log = write(tmp_path, "one\n\x1b[31mred\x1b[0m\n 10%\r 50%\r100%\n\n")
    assert last_lines(log, 3) == ["one", "red", "100%"]
    assert last_lines(log, 2, max_bytes=10) == ["100%"]
    assert last_lines(tmp_path / "absent", 3) == []


def test_lines_of_the_framework_are_left_out_if_asked_for(tmp_path: Path):
    noise = "LAUNCH INFO x\nI0115 08:00:00.123456 gloo\na.py:3: UserWarning: x\n"
    log = write(tmp_path, f"mine\n{noise}{'y' * 500}\n")
    assert last_lines(log, 9, without_noise=True) == ["mine", "y" * 300 + " ..."]
    assert len(last_lines(log, 9)) == 5
