"""The selected logs of a job on this machine, as they grow: for a terminal and for a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlejob.logs import follow
from paddlejob.logs.follow import PAGE_BYTES, PageFollower, read_logs
from paddlejob.logs.line import LogLine
from paddlejob.logs.selection import LogSelection


class Logs:
    """Of a job `mnist`, by attempt and replica."""

    def __init__(self, job: Path) -> None:
        self.job = job

    def write(self, text: str | bytes, replica: str = "worker-0", attempt: int = 1) -> None:
        path = self.job / "logs" / f"attempt-{attempt}" / f"mnist-{replica}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(text if isinstance(text, bytes) else text.encode())

    def read(self, several: bool = False, **selection: object) -> str:
        """As a terminal shows it."""
        return printed(read_logs(self.job, "mnist", LogSelection(**selection), several), several)


def printed(batches: Iterator[list[LogLine]], several: bool) -> str:
    lines = [line for batch in batches for line in batch]
    return b"".join((line.named() if several else line.content) + line.end for line in lines).decode()


@pytest.fixture
def logs(tmp_path: Path) -> Logs:
    return Logs(tmp_path)


def test_a_single_replica_is_printed_as_it_is(logs: Logs):
    text = "\x1b[1mone\x1b[0m\r\n\n\r10%\r20%\n\rlast state"
    logs.write(text)
    assert logs.read() == text


def test_lines_of_several_replicas_say_whose_they_are_in_the_order_of_their_numbers(logs: Logs):
    for replica in ("worker-10", "worker-2", "ps-0"):
        logs.write("first\nlast", replica)
    assert logs.read(several=True, tail=1) == "[ps-0] last\n[worker-2] last\n[worker-10] last\n"


def test_a_line_that_looks_like_the_name_of_a_replica_stays_a_line(logs: Logs):
    logs.write("[worker-3] x\n")
    (batch,) = read_logs(logs.job, "mnist", LogSelection(), several=True)
    assert batch == [LogLine("worker-0", 1, None, b"[worker-3] x")]
    (piece,) = PageFollower(logs.job, "mnist", LogSelection()).news(over=True)
    assert (piece.replica, piece.lines) == ("worker-0", ["[worker-3] x"])


def test_of_a_progress_bar_among_others_the_last_state_is_shown_or_the_last_that_matches(logs: Logs):
    logs.write("\r10% loss=3\r50% loss=2\r100% loss=1\nend\r\n")
    assert logs.read(several=True) == "[worker-0] 100% loss=1\n[worker-0] end\n"
    assert logs.read(several=True, pattern=re.compile(b"loss=[23]")) == "[worker-0] 50% loss=2\n"


def test_a_pattern_selects_lines_also_an_unfinished_one(logs: Logs):
    logs.write("loss 1\nnoise\nloss 2")
    matching = re.compile(b"loss")
    assert logs.read(pattern=matching) == "loss 1\nloss 2\n"
    assert logs.read(pattern=matching, tail=1) == "loss 2\n"
    assert logs.read(pattern=re.compile(b"worker")) == "", "the name of the replica is not searched"


def test_new_output_is_read_until_the_job_is_over_also_of_the_next_attempt(logs: Logs):
    logs.write("first\nunfin")
    steps = iter(
        [
            lambda: None,
            lambda: logs.write("ished\n"),
            lambda: logs.write("second\n", attempt=2),
            lambda: logs.write("late\nlast", attempt=1),
        ]
    )

    def over() -> bool:
        step = next(steps, None)
        if step:
            step()
        return step is None

    batches = list(read_logs(logs.job, "mnist", LogSelection(), several=True, over=over))
    assert [[line.content for line in batch] for batch in batches] == [
        *([b"first"], [], [b"unfinished"], [], [b"second"], [], [b"late"], [], [b"last"]),
    ]
    assert {line.end for batch in batches for line in batch} == {b"\n"}


def test_a_single_replica_is_not_waited_for_at_the_end_of_a_line(logs: Logs):
    logs.write("\r10%")
    looks = iter([False, False, True])

    def over() -> bool:
        done = next(looks)
        if not done:
            logs.write("\r20%")
        return done

    batches = [batch for batch in read_logs(logs.job, "mnist", LogSelection(), several=False, over=over) if batch]
    assert [(line.content, line.end) for batch in batches for line in batch] == [(b"\r10%\r20%", b""), (b"\r20%", b"")]


def test_a_progress_bar_of_one_of_several_replicas_is_seen_before_it_ends(logs: Logs, monkeypatch: pytest.MonkeyPatch):
    logs.write("\r10%\r20%\r30")
    hidden = read_logs(logs.job, "mnist", LogSelection(), several=True, over=lambda: False)
    assert [next(hidden), next(hidden)] == [[], []]
    monkeypatch.setattr(follow, "BAR_SECONDS", 0.0)
    looks = iter([False, True])
    batches = read_logs(logs.job, "mnist", LogSelection(), several=True, over=lambda: next(looks))
    assert printed(batches, several=True) == "[worker-0] 20%\n[worker-0] 30\n"


def test_output_without_newlines_comes_in_parts(logs: Logs):
    logs.write(b"x" * 3_000_000 + b"\nend\n")
    lines = [line for batch in read_logs(logs.job, "mnist", LogSelection(), several=True) for line in batch]
    assert max(len(line.content) for line in lines) < 2_200_000
    assert sum(len(line.content) for line in lines) == 3_000_003


class Page:
    def __init__(self, logs: Logs, **selection: object) -> None:
        self._follower = PageFollower(logs.job, "mnist", LogSelection(**selection))

    def news(self, over: bool = False) -> list[tuple[list[str], str]]:
        return [(piece.lines, piece.bar) for piece in self._follower.news(over)]


def test_a_page_sees_a_progress_bar_while_it_rewrites_itself_and_once_it_has_ended(logs: Logs):
    page = Page(logs)
    logs.write("start\n\r10%\r20%")
    assert page.news() == [(["start"], "20%")]
    assert page.news() == [], "nothing has changed"
    logs.write("\r30%\r")
    assert page.news() == [([], "30%")]
    logs.write("\nnext\nunfinished")
    assert page.news() == [(["30%", "next"], "")]
    logs.write(" line")
    assert page.news() == [], "a line that only grows is shown when it ends"
    logs.write("\n")
    assert page.news() == [(["unfinished line"], "")]


def test_a_page_shows_output_without_newlines_before_it_fills_the_memory(logs: Logs):
    page = Page(logs)
    logs.write("x" * 1000)
    assert page.news() == []
    logs.write("x" * PAGE_BYTES)
    assert page.news() == [(["x" * 10_000 + "…"], "")]


def test_a_page_follows_a_log_into_the_next_attempt_and_shows_an_unfinished_line_in_the_end(logs: Logs):
    page = Page(logs, role="worker", index=0)
    logs.write("first\nunfin")
    logs.write("other\n", "worker-1")
    assert page.news() == [(["first"], "")]
    logs.write("ished\n")
    logs.write("second\nla", attempt=2)
    assert page.news() == [(["unfinished"], ""), (["second"], "")]
    assert page.news(over=True) == [(["la"], "")]


def test_a_page_gets_the_end_of_a_large_log_and_how_much_is_missing(logs: Logs):
    line = "x" * 99 + "\n"
    logs.write(line * 10_000)
    (piece,) = PageFollower(logs.job, "mnist", LogSelection()).news(over=False)
    assert PAGE_BYTES // 100 - 1 <= len(piece.lines) <= PAGE_BYTES // 100
    assert piece.skipped + 100 * len(piece.lines) == 1_000_000


def test_many_replicas_share_the_first_bytes_of_a_page_and_what_is_added_too_fast_is_cut(logs: Logs):
    line = "x" * 99 + "\n"
    for index in range(8):
        logs.write(line * 3000, f"worker-{index}")
    follower = PageFollower(logs.job, "mnist", LogSelection())
    assert {len(piece.lines) for piece in follower.news(over=False)} == {PAGE_BYTES // 200}
    logs.write(line * 3000, "worker-5")
    (piece,) = follower.news(over=False)
    assert (piece.replica, len(piece.lines)) == ("worker-5", PAGE_BYTES // 100)
    assert piece.skipped + 100 * len(piece.lines) == 300_000
