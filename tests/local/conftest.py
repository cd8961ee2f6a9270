from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.pdj import Pdj


@pytest.fixture
def pdj(tmp_path: Path) -> Iterator[Pdj]:
    """`pdj` as a user starts it, with a state directory of its own; whatever a test does, no process may be left."""
    runner = Pdj(tmp_path)
    yield runner
    runner.close()
    assert runner.processes() == [], "processes were left behind"
