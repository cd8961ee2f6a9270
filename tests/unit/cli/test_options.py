"""Options that several verbs share."""

from __future__ import annotations

import pytest

from paddlejob.cli.options import parse_duration
from paddlejob.errors import BadInput


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("10m", 600), ("1h30m", 5400), ("2d", 172800)])
def test_durations_are_written_as_people_do(text: str, seconds: int):
    assert parse_duration("--since", text) == seconds


@pytest.mark.parametrize("text", ["10", "m", "-5m", "1.5h", "5 m"])
def test_a_duration_that_is_none_is_one_message(text: str):
    with pytest.raises(BadInput, match="write it as 30s, 10m, 2h or 1d"):
        parse_duration("--since", text)
