"""Lines of logs, what a terminal or a page shows of them, and which are selected."""

from __future__ import annotations

import re

import pytest

from paddlejob.errors import BadInput
from paddlejob.logs.line import LogLine, last_state, shown, states
from paddlejob.logs.selection import LogSelection, line_pattern, parse_replica
from tests.support.builders import job


@pytest.mark.parametrize(
    ("line", "all_states", "last"),
    [
        (b"plain", [b"plain"], b"plain"),
        (b"\r10%\r 20%\r", [b"10%", b" 20%"], b" 20%"),
        (b"end\r", [b"end"], b"end"),
        (b"", [], b""),
        (b"\r \r", [], b"\r \r"),
    ],
)
def test_of_a_progress_bar_the_last_state_counts(line: bytes, all_states: list[bytes], last: bytes):
    assert (states(line), last_state(line)) == (all_states, last)


def test_a_pattern_selects_the_last_state_that_matches():
    bar = b"\r10% loss=3\r50% loss=2\r100%"
    assert last_state(bar, re.compile(b"loss")) == b"50% loss=2"
    assert last_state(bar, re.compile(b"acc")) == b"100%"


def test_a_progress_bar_does_not_overwrite_the_name_of_its_replica():
    assert LogLine("worker-3", 1, None, b"\r10%\r100%\r").named() == b"[worker-3] 100%"
    assert LogLine("worker-3", 1, None, b"").named() == b"[worker-3] "


def test_a_line_is_text_whatever_its_bytes():
    assert LogLine("worker-0", 1, None, b"caf\xe9").text == "caf\ufffd"


def test_a_page_shows_the_last_state_of_a_progress_bar_and_cuts_a_long_line():
    assert shown(b" 1%\r 50%\r100%\r\n") == "100%"
    assert shown(b"x" * 20_000) == "x" * 10_000 + "…"
    assert shown("你".encode() * 10_000) == "你" * 10_000
    bar = b"".join(b"\r%6d/9999 loss=%.6f" % (step, 1 / step) for step in range(1, 10_000))
    assert shown(bar) == "  9999/9999 loss=0.000100"


@pytest.mark.parametrize(
    ("replica", "attempt", "selection"),
    [
        ("", "", LogSelection()),
        ("worker-12", "3", LogSelection("worker", 12, 3)),
        ("ps-0", "", LogSelection("ps", 0)),
    ],
)
def test_a_page_selects_a_replica_and_an_attempt(replica: str, attempt: str, selection: LogSelection):
    assert parse_replica(replica, attempt) == selection


@pytest.mark.parametrize(
    "query", [("../worker-0", ""), ("worker-00", ""), ("", "x"), ("worker-0", "-1"), ("a\0", ""), ("", "1" * 10)]
)
def test_only_names_of_replicas_and_numbers_reach_the_files(query: tuple[str, str]):
    with pytest.raises(BadInput):
        parse_replica(*query)


@pytest.mark.parametrize(
    ("selection", "several"),
    [
        (LogSelection(), True),
        (LogSelection("worker"), True),
        (LogSelection("ps"), False),
        (LogSelection("worker", 1), False),
        (LogSelection(index=0), True),
    ],
)
def test_lines_need_a_name_where_several_replicas_are_selected(selection: LogSelection, several: bool):
    assert selection.several(job(workers=2, ps=1).spec) is several
    assert not LogSelection().several(job(workers=1).spec)


def test_lines_are_selected_by_a_pattern():
    assert [LogSelection(pattern=line_pattern("l.ss")).matches(line) for line in (b"a loss", b"lost")] == [True, False]
    assert LogSelection().matches(b"")
    with pytest.raises(BadInput, match=r"--grep \( is not a regular expression"):
        line_pattern("(")
