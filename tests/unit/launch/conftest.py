"""Fixtures for the fake API server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.launch.fake_api_server import Plain, Script, serving


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def server(script: Script, tmp_path: Path) -> Iterator[Plain]:
    with serving(script, tmp_path) as opened:
        yield opened
