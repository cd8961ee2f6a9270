"""A pod with an agent, and one that has an operator to talk to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agent_stage import Pod, pod


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Pod]:
    """Without an operator."""
    with pod(tmp_path / "agent") as made:
        yield made


@pytest.fixture
def led(alone: Pod) -> Pod:
    alone.connect()
    return alone
