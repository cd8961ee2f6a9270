"""The lines and patterns of docs/howto/progress.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from paddlejob.api.types import ProgressSpec
from paddlejob.api.validate import faults
from paddlejob.progress import Parser
from tests.support.builders import document

PAGE = (Path(__file__).parents[3] / "docs/howto/progress.md").read_text()
LINES = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)[0].splitlines()
SPECS = [yaml.safe_load(block)["spec"]["progress"] for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_the_page_is_recognized(line: str):
    sample = Parser().parse(line)
    assert sample and (sample.has_position or sample.checkpoint)


def test_the_settings_of_the_page_are_valid():
    assert len(SPECS) == 2
    assert [faults(document(progress=spec)) for spec in SPECS] == [[], []]


def test_the_pattern_of_the_page_reads_its_format():
    pattern = next(spec["pattern"] for spec in SPECS if "pattern" in spec)
    sample = Parser(ProgressSpec(pattern=pattern)).parse("round 7 of 20: error 0.5")
    assert sample and (sample.step, sample.total_steps, sample.metrics) == (7, 20, {"loss": 0.5})


def test_the_step_that_the_page_computes_is_right():
    sample = Parser().parse("Epoch 3/10 [20/61] loss 0.5")
    assert sample and (sample.step, sample.total_steps) == (142, 610)
    assert "iteration 20 of 61 in epoch 3 of 10 is step 142 of 610" in PAGE
