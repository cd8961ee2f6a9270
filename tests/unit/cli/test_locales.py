"""Output in a locale whose encoding lacks a character, as GBK, Latin-1 and ASCII do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.called_pdj import pdj

NAME = "训练ѵ.yaml"
"""Chinese, and a letter that GBK lacks."""


@pytest.mark.parametrize("encoding", ["gbk", "latin-1", "ascii", "utf-8"])
@pytest.mark.parametrize("verb", ["validate", "plan"])
def test_a_character_that_the_locale_lacks_is_escaped(tmp_path: Path, encoding: str, verb: str):
    done = pdj(verb, NAME, folder=tmp_path, encoding=encoding)
    escaped = NAME.encode(encoding, "backslashreplace").decode(encoding)
    assert (done.returncode, done.stderr) == (2, f"pdj: {escaped}: no such file\n")
