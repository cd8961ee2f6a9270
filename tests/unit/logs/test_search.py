"""Searching logs with patterns of RE2."""

from __future__ import annotations

import time

import pytest

from paddlejob.errors import BadInput
from paddlejob.logs.search import BLOCK, MOST_MATCHES, MOST_SPANS, Match, Matches, Searched, search


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


def test_a_search_counts_lines_over_blocks_and_logs():
    blocks = [b"one\ntwo", b" needle\nthree\n", b"four needle"]
    found = search([Searched("worker-0", 1, blocks), Searched("ps-0", 2, [b"needle\n\nneedle"])], "needle")
    assert [(one.replica, one.attempt, one.line) for one in found.found] == [
        ("worker-0", 1, 2), ("worker-0", 1, 4), ("ps-0", 2, 1), ("ps-0", 2, 3)
    ]  # fmt: skip
    assert (found.searched, found.complete) == (len(b"".join(blocks)) + len(b"needle\n\nneedle"), True)


def test_a_match_of_nothing_is_one_line():
    (only, *_) = search([Searched("w", 1, [b"a\nb\n"])], "^").found
    assert only == Match("w", 1, 1, "a", ())
    assert [one.text for one in search([Searched("w", 1, [b"a\nb"])], "a|b").found] == ["a", "b"]
    assert [one.text for one in search([Searched("w", 1, [b"ab\ncd\n"])], "$").found] == ["ab", "cd"]


def test_a_line_longer_than_a_block_is_searched_in_parts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("paddlejob.logs.search.BLOCK", 4)
    blocks = [b"abc", b"def", b"ghi", b"j\nk", b"l\n", b"m"]
    assert [one.text for one in search([Searched("w", 1, blocks)], ".").found] == ["abcdef", "ghij", "kl", "m"]
