"""Every story on a real API server."""

from __future__ import annotations

import pytest

from tests.engines.stories import STORIES, Story
from tests.support.operator_stage import OperatorStage


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
async def test_on_the_operator(story: Story, stage: OperatorStage):
    await story(stage)
