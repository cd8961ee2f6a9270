"""A program from a directory to training on a real cluster, without building an image."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from testbed.cluster import Cluster
from tests.support.cluster_pdj import START, ClusterPdj
from tests.support.programs import write_project
from tests.support.terminal import terminal

IMAGE = "registry.baidubce.com/paddle-operator/demo-resnet:v1"
"""It has PaddlePaddle; its own program is not used."""
LONG = 180.0
STEPS = """\
import time
for step in range(1, 6):
    print(f"step={step}/10 loss={1 / step}", flush=True)
    time.sleep(1)
time.sleep(300)
"""


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
    again = pdj.run(*submit, "--name", "second", "--save-logs", "kept")
    assert "edited" in (pdj.folder / "kept" / "second-worker-0.log").read_text()
    assert "edited" in again.stdout
    codes = re.findall(r"^code (\w+):", done.stdout + again.stdout, re.MULTILINE)
    assert len(set(codes)) == 2
    operator.kubectl("-n", "default", "delete", "pdj", "first", "second")


@pytest.mark.full
def test_a_job_on_a_cluster_is_watched_and_left(operator: Cluster, tmp_path: Path):
    (tmp_path / "train.py").write_text(STEPS)
    pdj = ClusterPdj(operator, tmp_path)  # type: ignore[arg-type]
    submit = ("submit", "train.py", "--name", "watched", "--image", IMAGE, "--code", ".", "-n", "default")
    with terminal([*START, *submit, "--follow"], pdj.environment, tmp_path) as screen:
        screen.until("step 5/10, loss 0.2", LONG)
        screen.until("50%")
        screen.until("▁")
        screen.press(b"q")
        assert screen.end() == 0
        assert "watched keeps training; watch it again with `pdj watch watched --cluster" in screen.shown
    recent = pdj.run("logs", "watched", "--cluster", "-n", "default", "--since", "1h", "--grep", "step=", "--tail", "1")
    assert recent.stdout == "step=5/10 loss=0.2\n"
    operator.kubectl("-n", "default", "delete", "pdj", "watched")
