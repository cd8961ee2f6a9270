"""Lines of logs, whatever the pieces in which they arrive."""

from __future__ import annotations

import pytest

from paddlejob.client.describe.log_lines import lines_of, matching_lines
from paddlejob.errors import BadInput


def test_lines_do_not_depend_on_the_pieces():
    assert list(lines_of([b"a", b"b\nc\n\n", b"", b"d"])) == [b"ab\n", b"c\n", b"\n", b"d"]


def test_only_matching_lines_are_shown_also_those_with_other_bytes():
    pieces = [b"step=1 loss=2\nnoise\n\xff lo", b"ss=1\n"]
    assert list(matching_lines(pieces, "loss|Error")) == [b"step=1 loss=2\n", b"\xff loss=1\n"]


def test_a_pattern_that_is_none_is_one_message():
    with pytest.raises(BadInput, match=r"--grep \(: is not a regular expression"):
        matching_lines([], "(")
