"""start_paddle.py runs on the Python of the image, which may be older than that of paddlejob."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.launch.pods import stage
from tests.launch.recorder import Cluster
from tests.support.interpreters import installed

OLD = ("3.8", "3.9", "3.10")


@pytest.mark.parametrize("version", OLD)
def test_three_pods_train_to_the_end_and_notice_a_failure(version: str, tmp_path: Path):
    python = installed(version)
    if not python:
        pytest.skip(f"Python {version} is not installed; run `pyenv install {version}`")
    with stage(tmp_path / "good") as on:
        cluster = Cluster(on, tmp_path / "good", python=python).start()
        for rank in range(3):
            cluster.finish(rank)
        assert [pod.wait() for pod in cluster.pods] == [0, 0, 0], cluster.pods[0].text
        assert (on.job / "output" / "node_2" / "train.log").read_text() == "this is train\n"
    with stage(tmp_path / "bad") as on:
        cluster = Cluster(on, tmp_path / "bad", python=python).start()
        cluster.wait_for_trainers()
        cluster.pods[0].kill()
        assert [pod.wait() for pod in cluster.pods[1:]] == [75, 75], cluster.pods[1].text
