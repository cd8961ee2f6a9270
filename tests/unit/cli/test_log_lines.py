"""Lines of logs, whatever the pieces in which they arrive."""

from __future__ import annotations

import pytest

from paddlejob.client.describe.log_lines import LONGEST, line_pattern, lines_of
from paddlejob.errors import BadInput


def test_lines_do_not_depend_on_the_pieces():
    assert list(lines_of([b"a", b"b\nc\n\n", b"", b"d"])) == [b"ab\n", b"c\n", b"\n", b"d"]


def test_a_line_without_an_end_does_not_fill_the_memory():
    parts = list(lines_of([b"x" * 1000] * 5000))
    assert max(map(len, parts)) <= LONGEST + 1001
    assert sum(part.count(b"x") for part in parts) == 5_000_000


def test_a_pattern_that_is_none_is_one_message():
    with pytest.raises(BadInput, match=r"--grep \(: is not a regular expression"):
        line_pattern("(")
