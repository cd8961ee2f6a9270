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


WATCHES = """
import paddlejob as pj
open("train.py", "w").write('''
import time
for step in range(1, 5):
    print(f"step={step}/4 loss={1 / step}", flush=True)
    time.sleep(1)
''')
pj.run(pj.collective("train.py", workers=2)).watch(timeout=60).phase
"""


@pytest.mark.full
def test_a_cell_that_watches_shows_the_job_while_it_runs_and_its_end(pdj: Pdj):
    (shown,) = execute([WATCHES], pdj.folder, {"PADDLEJOB_STATE": str(pdj.state)})
    assert "<b>train</b>: Completed" in shown
    assert shown.count("<table>") == 1, "it is updated, not repeated"
    assert "<polyline" in shown
    assert "Phase.COMPLETED" in shown or "Completed" in shown.rpartition("</div>")[2]
