"""The notebook of the documentation, run on this machine."""

from __future__ import annotations

import importlib.util

import pytest

from tests.support.notebook import cells, execute
from tests.support.pdj import Pdj

TRAINS = pytest.mark.skipif(importlib.util.find_spec("paddle") is None, reason="needs PaddlePaddle")


@TRAINS
@pytest.mark.full
@pytest.mark.xdist_group("training")
def test_every_cell_of_the_tutorial_runs(pdj: Pdj):
    shown = execute(cells(), pdj.folder, {"PADDLEJOB_STATE": str(pdj.state)})
    _, _, followed, waited, measured, page = shown
    assert "step=50/50 loss=" in followed
    assert waited == "Completed\n"
    assert measured == "50 True\n"
    assert "<polyline" in page
    assert "worker-1" in page
