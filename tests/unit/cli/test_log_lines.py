"""Lines of logs, whatever the pieces in which they arrive."""

from __future__ import annotations

import pytest

from paddlejob import contract
from paddlejob.client.describe.log_lines import LONGEST, line_pattern, lines_of
from paddlejob.client.targets.logs import format_line
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


def test_a_progress_bar_of_a_pod_does_not_overwrite_the_name_of_its_replica():
    pod = {"metadata": {"labels": {contract.LABEL_ROLE: "worker", contract.LABEL_INDEX: "3"}}}
    assert format_line(pod, b"\r10%\r100%\r", prefixed=True) == b"[worker-3] 100%\n"
    assert format_line(pod, b"", prefixed=True) == b"[worker-3] \n"
    assert format_line(pod, b"\r10%\r100%", prefixed=False) == b"\r10%\r100%\n"
