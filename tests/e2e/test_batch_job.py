"""Documents 003 and 004: the plain batch/v1 Jobs, as they are, on real nodes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from testbed.cluster import Cluster
from tests.support.on_cluster import EXAMPLES, eventually

pytestmark = pytest.mark.full
FILES = EXAMPLES / "batch-job"


def test_the_two_jobs_of_document_003_split_and_train(images: Cluster, tmp_path: Path):
    """In the namespace that they name; a hostPath stands in for EFS."""
    tmp_path.chmod(0o777)
    volume, claim = yaml.safe_load_all((FILES / "pv-pvc.yaml").read_text())
    volume["spec"] = {key: value for key, value in volume["spec"].items() if key not in ("nfs", "mountOptions")}
    volume["spec"] |= {"hostPath": {"path": str(tmp_path)}, "persistentVolumeReclaimPolicy": "Retain"}
    for document in (volume, claim):
        images.kubectl("-n", "default", "create", "-f", "-", input=yaml.safe_dump(document))
    images.kubectl("create", "-f", str(FILES / "role.yaml"))
    try:
        images.kubectl("-n", "default", "create", "-f", str(FILES / "paddle-data-job.yaml"))
        _complete(images, "paddle-data")
        job = tmp_path / "paddle-cluster-job"
        assert {path.name for path in job.iterdir()} >= {"0", "1", "2", "quick_start", "output"}
        images.kubectl("-n", "default", "create", "-f", str(FILES / "paddle-cluster-job.yaml"))
        _complete(images, "paddle-cluster-job")
        _looks_as_in_the_document(job / "output")
        said = images.kubectl("-n", "default", "logs", "-l", "job-name=paddle-cluster-job", "--tail=-1").stdout
        assert re.search(r"pass", said), "the logs also reach kubectl logs"
    finally:
        images.kubectl("-n", "default", "delete", "jobs", "--all", "--wait=true", check=False)
        images.kubectl("-n", "default", "delete", "pvc", "--all", "--wait=false", check=False)
        images.kubectl("delete", "pv", volume["metadata"]["name"], "--wait=false", check=False)
        images.kubectl("delete", "-f", str(FILES / "role.yaml"), check=False)


def _complete(cluster: Cluster, job: str) -> None:
    def done() -> bool:
        shown = cluster.kubectl(
            "-n", "default", "get", "job", job, "-o", "jsonpath={.status.conditions[*].type}"
        ).stdout
        assert "Failed" not in shown, cluster.kubectl("-n", "default", "logs", "-l", f"job-name={job}").stdout
        return "Complete" in shown.split()

    eventually(f"job {job} is complete", done, patience=400)


def _looks_as_in_the_document(output: Path) -> None:
    for node in range(3):
        assert (output / f"node_{node}" / "train.log").exists()
        assert (output / f"node_{node}" / "server.log").exists()
    passes = sorted(output.glob("pass-*"))
    assert [path.name for path in passes[:2]] == ["pass-00000", "pass-00001"]
    assert {"done", "path.txt", "trainer_config.lr.py"} <= {path.name for path in passes[0].iterdir()}
