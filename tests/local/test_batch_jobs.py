"""The plain Jobs of both documents, as they are, on this machine: data is split, and three pods train."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from paddlejob.local.sandbox.supervisor import probe
from tests.support.batch_job import looks_as_in_the_documents
from tests.support.pdj import Pdj

pytest.importorskip("paddle", reason="PaddlePaddle is not installed")
pytestmark = [
    pytest.mark.skipif(not probe()[0], reason="no mount namespaces here"),
    pytest.mark.xdist_group("training"),
]
JOBS = Path(__file__).parents[2] / "deploy" / "examples" / "batch-job"


@pytest.fixture
def shared(pdj: Pdj) -> Path:
    pdj.environment |= {"SAMPLES": "1500", "NUM_PASSES": "2"}
    made = pdj.folder / "shared"
    made.mkdir()
    return made


def test_the_two_jobs_of_document_003_split_and_train_and_leave_the_documents_tree(pdj: Pdj, shared: Path):
    for file in ("paddle-data-job.yaml", "paddle-cluster-job.yaml"):
        done = pdj("run", "--volume", f"efsvol={shared}", str(JOBS / file), timeout=180)
        assert done.returncode == 0, done.stdout + done.stderr
    looks_as_in_the_documents(shared / "paddle-cluster-job")
    assert "trainer 0 read" in pdj("logs", "paddle-cluster-job").stdout, "the logs also reach standard output"


def test_the_two_jobs_of_document_004_share_a_directory_that_the_user_names(pdj: Pdj, shared: Path):
    """The first writes beside its volume, the second asks for a program that the first does not bring."""
    mfs = ("--volume", f"/home/work/mfs={shared}")
    done = pdj("run", *mfs, str(JOBS / "hostpath-data-job.yaml"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert not Path("/home/work/mfs/paddle-cluster-job").exists(), "nothing is written beside what the user named"

    hasty = yaml.safe_load((JOBS / "hostpath-cluster-job.yaml").read_text())
    hasty["spec"]["backoffLimit"] = 0
    (pdj.folder / "hasty.yaml").write_text(yaml.safe_dump(hasty))
    rejected = pdj("run", *mfs, "hasty.yaml")
    assert rejected.returncode != 0
    why = pdj("why", "paddle-cluster-job").stdout
    assert "recommendation" in why
    assert "quick_start" in why, "what is there is listed"
    assert pdj("delete", "paddle-cluster-job").returncode == 0

    job = shared / "paddle-cluster-job"
    (job / "quick_start").rename(job / "recommendation")
    done = pdj("run", *mfs, str(JOBS / "hostpath-cluster-job.yaml"), timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    looks_as_in_the_documents(job, "recommendation")
