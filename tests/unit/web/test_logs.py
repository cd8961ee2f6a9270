"""Searching and following logs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from paddlejob.errors import BadInput
from paddlejob.local.state.store import Store
from paddlejob.web.logs.lines import LogQuery, Matches, decode, parse_query
from paddlejob.web.logs.search import BLOCK, MOST_MATCHES, MOST_SPANS, Searched, search
from paddlejob.web.sources.local.log_files import BATCH_BYTES, FIRST_BYTES, Follower, Tail, choose, find_logs
from tests.support.web_jobs import append, stored


def found(text: str, pattern: str) -> Matches:
    return search([Searched("worker-0", 1, [text.encode()])], pattern)


def test_lines_that_match_have_their_number_and_where_they_match():
    matches = found("one\nstep 1, step 2\nthree\nstep 3", "step")
    assert [(one.line, one.text, one.spans) for one in matches.found] == [
        (2, "step 1, step 2", ((0, 4), (8, 12))),
        (4, "step 3", ((0, 4),)),
    ]
    assert matches.complete


def test_positions_are_counted_as_a_browser_counts():
    (match,) = found("\x1b[32m你好\x1b[0m 😀 step", "step").found
    assert match.spans == ((15, 19),)
    assert match.text.encode("utf-16-le")[30:38].decode("utf-16-le") == "step"


def test_case_counts_only_with_an_upper_case_letter():
    assert [one.text for one in found("Error\nerror", "error").found] == ["Error", "error"]
    assert [one.text for one in found("Error\nerror", "Error").found] == ["Error"]


def test_a_line_across_two_blocks_is_found_once():
    text = ("x" * 99 + "\n") * (BLOCK // 100) + "y" * 50 + "needle" + "\nend"
    blocks = [text[: BLOCK - 7].encode(), text[BLOCK - 7 :].encode()]
    (match,) = search([Searched("worker-0", 1, blocks)], "needle").found
    assert match.line == BLOCK // 100 + 1


def test_a_search_stops_at_its_limits():
    many = found("needle\n" * (MOST_MATCHES + 1), "needle")
    assert (len(many.found), many.complete) == (MOST_MATCHES, False)
    assert len(found("ab" * 1000, "a").found[0].spans) == MOST_SPANS


def test_a_pattern_that_would_take_forever_elsewhere_is_quick():
    started = time.process_time()
    assert found("a" * 9000 + "!\n", r"(a+)+$").found == []
    assert time.process_time() - started < 5, "exponential in the length of the line"


@pytest.mark.parametrize("pattern", ["(", "", "a" * 1001, "[z-a]"])
def test_what_is_no_pattern_is_refused(pattern: str):
    with pytest.raises(BadInput):
        found("text", pattern)


@pytest.mark.parametrize("query", [("../worker-0", ""), ("worker-00", ""), ("", "x"), ("worker-0", "-1"), ("a\0", "")])
def test_only_names_of_replicas_and_numbers_reach_the_files(query: tuple[str, str]):
    with pytest.raises(BadInput):
        parse_query(*query)


def test_a_progress_bar_shows_its_last_state_and_a_long_line_is_cut():
    assert decode(b" 1%\r 50%\r100%\r\n") == "100%"
    assert decode(b"x" * 20_000) == "x" * 10_000 + "…"
    states = b"".join(b"\r%6d/9999 loss=%.6f" % (step, 1 / step) for step in range(1, 10_000))
    assert decode(states + b"\n") == "  9999/9999 loss=0.000100"


def test_output_without_newlines_is_shown_and_does_not_fill_the_memory(tmp_path: Path):
    folder = stored(Store(tmp_path), logs={"1/worker-0": "x" * 1000}, phase="Running", attempt=1)
    lock = folder.runner_lock()
    assert lock.acquire()
    tail = Tail(find_logs(folder)[0], FIRST_BYTES)
    assert tail.news(over=False) is None
    append(folder.log(1, "mnist-worker-0"), "x" * BATCH_BYTES)
    piece = tail.news(over=False)
    assert piece and piece.lines == ["x" * 10_000 + "…"]
    lock.release()


def test_a_progress_bar_is_seen_while_it_rewrites_itself_and_once_it_has_ended(tmp_path: Path):
    folder = stored(Store(tmp_path), logs={"1/worker-0": "start\n\r10%\r20%"}, phase="Running", attempt=1)
    log, tail = folder.log(1, "mnist-worker-0"), Tail(find_logs(folder)[0], FIRST_BYTES)

    def seen(text: str) -> tuple[list[str], str] | None:
        append(log, text)
        piece = tail.news(over=False)
        return (piece.lines, piece.bar) if piece else None

    assert seen("") == (["start"], "20%")
    assert seen("") is None, "nothing has changed"
    assert seen("\r30%\r") == ([], "30%")
    assert seen("\nnext\nunfinished") == (["30%", "next"], "")
    assert seen(" line") is None, "a line that only grows is shown when it ends"
    assert seen("\n") == (["unfinished line"], "")


def test_a_log_is_followed_into_the_next_attempt(tmp_path: Path):
    folder = stored(Store(tmp_path), logs={"1/worker-0": "first\nunfin"}, phase="Running", attempt=1)
    follower = Follower(folder, LogQuery("worker-0"))
    with_runner = folder.runner_lock()
    assert with_runner.acquire()
    assert [piece.lines for piece in follower.news()[0]] == [["first"]]
    append(folder.log(1, "mnist-worker-0"), "ished\n")
    folder.log(2, "mnist-worker-0").parent.mkdir()
    folder.log(2, "mnist-worker-0").write_text("second\n")
    pieces, over = follower.news()
    assert ([piece.lines for piece in pieces], over) == ([["unfinished"], ["second"]], False)
    with_runner.release()
    assert follower.news() == ([], True)


def test_only_the_end_of_a_large_log_is_sent_and_the_page_says_how_much_is_missing(tmp_path: Path):
    line = "x" * 99 + "\n"
    folder = stored(Store(tmp_path), logs={"1/worker-0": line * 10_000}, phase="Completed", attempt=1)
    (piece,), over = Follower(folder, LogQuery()).news()
    assert over and len(piece.lines) <= FIRST_BYTES // 100
    assert piece.skipped + 100 * len(piece.lines) == 1_000_000


def test_logs_are_found_by_attempt_and_replica_and_nothing_else_is(tmp_path: Path):
    logs = {"1/worker-0": "a", "2/worker-10": "b", "2/worker-2": "c", "2/ps-0": "d"}
    folder = stored(Store(tmp_path), logs=logs)
    attempt = folder.log(2, "mnist-worker-2").parent
    (attempt / "notes.txt").write_text("x")
    (attempt / "mnist-worker-3.log").symlink_to("/etc/passwd")
    (attempt.parent / "attempt-x").mkdir()
    files = find_logs(folder)
    assert [(one.attempt, one.replica) for one in files] == [
        (1, "worker-0"), (2, "ps-0"), (2, "worker-2"), (2, "worker-10"),
    ]  # fmt: skip
    assert [one.replica for one in choose(files, LogQuery())] == ["ps-0", "worker-2", "worker-10"]
    assert [one.replica for one in choose(files, LogQuery("worker-0", 1))] == ["worker-0"]
