from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paddlejob.local.runtime import pod_worker
from tests.support.scripted_supervisor import Make, OnePod, Timers


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[OnePod] = []

    def build(**pod: Any) -> OnePod:
        made.append(OnePod(tmp_path, **pod))
        return made[-1]

    yield build
    for one in made:
        one.close()


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> Timers:
    """Time passes when a test says so."""
    made = Timers()
    monkeypatch.setattr(pod_worker.asyncio, "get_running_loop", lambda: made)
    return made
