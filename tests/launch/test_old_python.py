"""start_paddle.py runs on the Python of the image, which may be older than that of paddlejob."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.launch.pods import stage
from tests.launch.recorder import Cluster

OLD = ("3.8", "3.9", "3.10")


def interpreter(version: str) -> Path | None:
    """On the path, or among those of pyenv."""
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    on_path = shutil.which(f"python{version}")
    found = [*versions.glob(f"{version}.*/bin/python3"), *([Path(on_path)] if on_path else [])]
    return next((path for path in found if _is(version, path)), None)


def _is(version: str, path: Path) -> bool:
    script = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([path, "-c", script], capture_output=True, text=True, check=False)
    return done.stdout.strip() == version


@pytest.mark.parametrize("version", OLD)
def test_three_pods_train_to_the_end_and_notice_a_failure(version: str, tmp_path: Path):
    python = interpreter(version)
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
