"""Lines of a file that grows, and of any stream of bytes."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from paddlejob.lines import LineSplitter
from paddlejob.logs.tail import Tail, sampled_lines


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def append(log: Path, content: bytes) -> None:
    with log.open("ab") as file:
        file.write(content)


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_lines_do_not_depend_on_the_pieces_in_which_they_come(size: int):
    content, splitter = b"ab\nc\n\nd", LineSplitter()
    found = [line for start in range(0, 7, size) for line in splitter.feed(content[start : start + size])]
    assert (found, splitter.unfinished) == ([b"ab", b"c", b""], b"d")
    assert (splitter.take(), splitter.unfinished) == (b"d", b"")


def test_a_line_without_an_end_costs_linear_time_and_bounded_memory():
    splitter, chunk, parts, size = LineSplitter(), b"x" * 65536, 0, 0
    tracemalloc.start()
    for _ in range(2048):  # 128 MiB; each copied once more per chunk would be 17 TB
        for part in splitter.feed(chunk):
            parts, size = parts + 1, size + len(part)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size + len(splitter.unfinished) == 2048 * 65536
    assert parts > 100 and peak < 8 << 20


def test_a_file_is_read_on_from_where_reading_stopped(log: Path):
    tail = Tail(log)
    assert tail.read().lines == [], "it does not exist yet"
    log.write_bytes(b"one\nunfin")
    assert (tail.read().lines, tail.unfinished) == ([b"one"], b"unfin")
    append(log, b"ished\ntwo\n")
    assert tail.read().lines == [b"unfinished", b"two"]
    assert tail.read().lines == []
    append(log, b"last")
    assert (tail.read().lines, tail.take_rest(), tail.take_rest()) == ([], b"last", b"")


def test_a_file_is_read_in_pieces(log: Path):
    log.write_bytes(b"a\nb\nc\nd\n")
    pieces = list(Tail(log, piece=3).pieces())
    assert [piece.lines for piece in pieces] == [[b"a"], [b"b", b"c"], [b"d"]]
    assert [piece.more for piece in pieces] == [True, True, False]


def test_reading_may_begin_anywhere(log: Path):
    log.write_bytes(b"a\nb\n")
    assert Tail(log, 2).read().lines == [b"b"]


@pytest.mark.parametrize("replace", [False, True])
def test_a_file_that_is_truncated_or_replaced_is_read_from_its_beginning(log: Path, replace: bool):
    log.write_bytes(b"one\ntwo\nunfinished")
    tail = Tail(log)
    assert not tail.read().replaced
    new = log.with_suffix(".new")
    (new if replace else log).write_bytes(b"three\n" * (5 if replace else 1))
    if replace:
        new.replace(log)
    news = tail.read()
    assert news.replaced and set(news.lines) == {b"three"}
    assert not tail.read().replaced


def test_of_a_file_that_is_far_ahead_only_the_end_is_read_from_a_whole_line_on(log: Path):
    log.write_bytes(b"".join(b"%04d\n" % number for number in range(1000)))
    tail = Tail(log, first=50, most=22)
    news = tail.read()
    assert (news.lines[0], news.lines[-1], len(news.lines)) == (b"0991", b"0999", 9)
    assert news.skipped + 5 * 9 == 5000
    append(log, b"x" * 100 + b"\nend\n")
    news = tail.read()
    assert (news.lines, news.skipped) == ([b"end"], 101)
    append(log, b"a\nb\n")
    assert (tail.read().lines, tail.read().skipped) == ([b"a", b"b"], 0)


def test_of_a_long_progress_bar_the_end_begins_with_a_state(log: Path):
    log.write_bytes(b"".join(b"\r%5d/9999" % number for number in range(9999)))
    tail = Tail(log, first=100)
    assert tail.read().lines == []
    assert tail.unfinished.startswith(b" 9990/9999\r") and tail.bar == b" 9998/9999"


def test_a_progress_bar_is_seen_while_it_is_drawn(log: Path):
    log.write_bytes(b"start\n\r10%\r20%")
    tail = Tail(log)
    assert (tail.read().lines, tail.bar) == ([b"start"], b"20%")
    assert (tail.take_states(), tail.bar, tail.unfinished) == (b"\r10%\r", b"", b"20%")
    append(log, b"\r30%\r")
    tail.read()
    assert (tail.bar, tail.take_states(), tail.unfinished) == (b"30%", b"20%\r30%\r", b"")
    append(log, b"plain")
    tail.read()
    assert (tail.bar, tail.take_states()) == (b"", b"")


@pytest.mark.parametrize(("lines", "found"), [(3, [0, 1, 2]), (10, [0, 3, 6, 9]), (11, [1, 4, 7, 10]), (0, [])])
def test_of_a_small_file_lines_are_sampled_evenly(log: Path, lines: int, found: list[int]):
    log.write_bytes(b"".join(b"%04d\n" % number for number in range(lines)) + b"unfinished")
    assert [int(line) for line in sampled_lines(log, 4, block=50)] == found


def test_a_large_file_is_sampled_without_reading_all_of_it(log: Path):
    log.write_bytes(b"".join(b"%04d\n" % number for number in range(1000)))
    found = [int(line) for line in sampled_lines(log, 4, block=50)]
    assert found == [256, 504, 751, 999]
    assert sampled_lines(log.with_name("absent"), 4) == []
