"""Document 003's plain Jobs, as they are, on this machine: data is split, three pods find each other and train."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from paddlejob.local.nursery import probe
from tests.support.pdj import Pdj

pytest.importorskip("paddle", reason="PaddlePaddle is not installed")
pytestmark = pytest.mark.skipif(not probe()[0], reason="no mount namespaces here")
JOBS = Path(__file__).parents[2] / "deploy" / "examples" / "batch-job"


def test_the_two_jobs_split_and_train_and_leave_the_documents_tree(pdj: Pdj):
    pdj.environment |= {"SAMPLES": "1500", "NUM_PASSES": "2"}
    shared = pdj.folder / "efs"
    shared.mkdir()
    for file in ("paddle-data-job.yaml", "paddle-cluster-job.yaml"):
        done = pdj("run", "--volume", f"efsvol={shared}", str(JOBS / file), timeout=180)
        assert done.returncode == 0, done.stdout + done.stderr
    job = shared / "paddle-cluster-job"
    assert {path.name for path in job.iterdir()} >= {"0", "1", "2", "quick_start", "output"}
    output = job / "output"
    for node in range(3):
        assert (output / f"node_{node}" / "server.log").exists()
    logs = [(output / f"node_{node}" / "train.log").read_text() for node in range(3)]
    read = sorted(match[1] for log in logs for match in re.finditer(r"trainer \d read 500 reviews: (\S+)", log))
    assert read == ["0-499", "1000-1499", "500-999"], "each part is read exactly once"
    assert {"done", "path.txt", "trainer_config.lr.py"} <= {path.name for path in (output / "pass-00001").iterdir()}
    assert "trainer 0 read" in pdj("logs", "paddle-cluster-job").stdout, "the logs also reach standard output"
