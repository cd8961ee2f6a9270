"""Documents 003 and 004: the plain batch/v1 Jobs, as they are, on real nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from testbed.cluster import Cluster
from tests.support.on_cluster import EXAMPLES, eventually

pytestmark = pytest.mark.full
FILES = EXAMPLES / "batch-job"


@pytest.fixture
def shared(images: Cluster, tmp_path: Path) -> Iterator[Path]:
    """The claim of document 003, on a directory that all nodes see; and the rights that the pods need."""
    tmp_path.chmod(0o777)
    volume, claim = yaml.safe_load_all((FILES / "pv-pvc.yaml").read_text())
    volume["spec"] = {key: value for key, value in volume["spec"].items() if key not in ("nfs", "mountOptions")}
    volume["spec"] |= {"hostPath": {"path": str(tmp_path)}, "persistentVolumeReclaimPolicy": "Retain"}
    for document in (volume, claim):
        images.kubectl("-n", "default", "create", "-f", "-", input=yaml.safe_dump(document))
    images.kubectl("create", "-f", str(FILES / "role.yaml"))
    yield tmp_path
    images.kubectl("-n", "default", "delete", "jobs", "--all", "--wait=true", check=False)
    images.kubectl("-n", "default", "delete", "pvc", "--all", "--wait=true", "--timeout=60s", check=False)
    images.kubectl("delete", "pv", volume["metadata"]["name"], "--wait=true", "--timeout=60s", check=False)
    images.kubectl("delete", "-f", str(FILES / "role.yaml"), check=False)


def test_the_two_jobs_of_document_003_split_and_train(images: Cluster, shared: Path):
    """In the namespace that they name; a hostPath stands in for EFS."""
    images.kubectl("-n", "default", "create", "-f", str(FILES / "paddle-data-job.yaml"))
    _complete(images, "paddle-data")
    job = shared / "paddle-cluster-job"
    assert {path.name for path in job.iterdir()} >= {"0", "1", "2", "quick_start", "output"}
    images.kubectl("-n", "default", "create", "-f", str(FILES / "paddle-cluster-job.yaml"))
    _complete(images, "paddle-cluster-job")
    _looks_as_in_the_document(job / "output")
    said = images.kubectl("-n", "default", "logs", "-l", "job-name=paddle-cluster-job", "--tail=-1").stdout
    assert re.search(r"pass", said), "the logs also reach kubectl logs"


def test_a_pod_is_killed_and_new_pods_go_on_from_the_last_pass(images: Cluster, shared: Path):
    images.kubectl("-n", "default", "create", "-f", str(FILES / "paddle-data-job.yaml"))
    _complete(images, "paddle-data")
    job = yaml.safe_load((FILES / "paddle-cluster-job.yaml").read_text())
    job["spec"]["template"]["spec"]["containers"][0]["env"].append({"name": "NUM_PASSES", "value": "60"})
    images.kubectl("-n", "default", "create", "-f", "-", input=yaml.safe_dump(job))
    output = shared / "paddle-cluster-job/output"
    eventually("two passes are written", lambda: (output / "pass-00001" / "done").exists())
    first = _pods(images)
    images.kubectl("-n", "default", "delete", "pod", first[0], "--force", "--grace-period=0")
    _complete(images, "paddle-cluster-job")
    assert len([pod for pod in _pods(images) if pod not in first]) >= 3, "a whole new group"
    logs = "".join((output / f"node_{node}" / "train.log").read_text() for node in range(3))
    assert re.search(r"goes on after pass-000\d\d", logs)


def _pods(cluster: Cluster) -> list[str]:
    listed = cluster.kubectl("-n", "default", "get", "pods", "-l", "job-name=paddle-cluster-job", "-o", "name").stdout
    return [name.removeprefix("pod/") for name in listed.split()]


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
