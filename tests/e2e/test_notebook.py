"""The notebook of the documentation, against a real cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.cluster import Cluster
from tests.support.cluster_pdj import ClusterPdj
from tests.support.notebook import cells_for_a_cluster, execute

IMAGE = "registry.baidubce.com/paddle-operator/demo-resnet:v1"


@pytest.mark.full
def test_every_cell_of_the_tutorial_runs_on_a_cluster(operator: Cluster, tmp_path: Path):
    pdj = ClusterPdj(operator, tmp_path)  # type: ignore[arg-type]
    shown = execute(cells_for_a_cluster(IMAGE), tmp_path, pdj.environment)
    assert "step=50/50 loss=" in shown[2]
    assert shown[3:5] == ["Completed\n", "50 True\n"]
    assert "<polyline" in shown[5]
    operator.kubectl("-n", "default", "delete", "pdj", "train")
