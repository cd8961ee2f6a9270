"""A program from a directory to training on a real cluster, without building an image."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from testbed.cluster import Cluster
from tests.support.cluster_pdj import ClusterPdj
from tests.support.programs import write_project

IMAGE = "registry.baidubce.com/paddle-operator/demo-resnet:v1"
"""It has PaddlePaddle; its own program is not used."""


@pytest.mark.full
def test_an_edited_program_trains_with_its_own_module_and_data_file(operator: Cluster, tmp_path: Path):
    write_project(tmp_path / "project")
    pdj = ClusterPdj(operator, tmp_path)  # type: ignore[arg-type]
    pdj.folder = tmp_path / "project"
    submit = ("submit", "train.py", "--workers", "2", "--image", IMAGE, "--code", ".", "-n", "default", "--follow")
    done = pdj.run(*submit, "--name", "first")
    assert done.returncode == 0, done.stdout + done.stderr
    losses = re.findall(r"worker-0.*step=\d+/30 loss=([\d.]+) world=2", done.stdout)
    assert float(losses[-1]) < 0.1 * float(losses[0])
    (pdj.folder / "helper.py").write_text("def target(x):\n    print('edited')\n    return x * 0")
    again = pdj.run(*submit, "--name", "second")
    assert "edited" in again.stdout
    codes = re.findall(r"^code (\w+):", done.stdout + again.stdout, re.MULTILINE)
    assert len(set(codes)) == 2
    operator.kubectl("-n", "default", "delete", "pdj", "first", "second")
