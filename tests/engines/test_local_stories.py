"""Every story on the embedded engine, from the same file."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlejob.local.engine import LocalEngine
from paddlejob.local.machine.resources import Machine
from paddlejob.local.state.store import JobStore
from tests.engines.stories import STORIES, Story
from tests.support.local_stage import CPUS, LocalStage


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
async def test_embedded(story: Story, tmp_path: Path):
    strings = tmp_path / "strings"
    strings.mkdir()
    machine = Machine("machine", cpus=CPUS, memory=64 << 30)
    async with LocalEngine(JobStore(tmp_path / "state"), machine) as engine:
        await story(LocalStage(engine, strings))
