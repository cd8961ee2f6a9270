"""The plain batch/v1 Jobs of documents 003 and 004, unchanged, on real nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from testbed.cluster import Cluster
from tests.support.batch_job import looks_as_in_the_documents
from tests.support.on_cluster import EXAMPLES, eventually

FILES = EXAMPLES / "batch-job"
MFS = Path("/home/work/mfs")


@pytest.fixture
def shared(images: Cluster, tmp_path: Path) -> Iterator[Path]:
    """One directory mounted at /home/work/mfs on every node, like a network file system.

    The empty mount point stays: removing it would unmount it in every other mount namespace, and the tests of the
    embedded engine, which run side by side, mount there too.
    """
    tmp_path.chmod(0o777)
    MFS.mkdir(parents=True, exist_ok=True)
    for node in images.nodes:
        node.run("mount", "--bind", str(tmp_path), str(MFS))
    images.kubectl("create", "-f", str(FILES / "role.yaml"))
    yield tmp_path
    images.kubectl("-n", "default", "delete", "jobs,pvc,pv", "--all", "--wait=true", "--timeout=90s", check=False)
    images.kubectl("delete", "-f", str(FILES / "role.yaml"), check=False)
    for node in images.nodes:
        node.run("umount", "--lazy", str(MFS))


@pytest.fixture
def parts(images: Cluster, shared: Path) -> Path:
    """The job's directory, as the first file of document 003 creates it."""
    images.kubectl("-n", "default", "create", "-f", str(FILES / "pv-pvc.yaml"))
    images.kubectl("-n", "default", "create", "-f", str(FILES / "paddle-data-job.yaml"))
    _complete(images, "paddle-data")
    job = shared / "paddle-cluster-job"
    assert {path.name for path in job.iterdir()} >= {"0", "1", "2", "quick_start", "output"}
    return job


def test_the_two_jobs_of_document_003_split_and_train(images: Cluster, parts: Path):
    """In the namespace that they name; a directory that all nodes share replaces EFS."""
    images.kubectl("-n", "default", "create", "-f", str(FILES / "paddle-cluster-job.yaml"))
    _complete(images, "paddle-cluster-job")
    looks_as_in_the_documents(parts)
    logs = images.kubectl("-n", "default", "logs", "-l", "job-name=paddle-cluster-job", "--tail=-1").stdout
    assert re.search(r"pass", logs), "the logs also reach kubectl logs"


@pytest.mark.full
def test_the_two_jobs_of_document_004_report_what_is_wrong_and_train_once_it_is_fixed(images: Cluster, shared: Path):
    """The first file does not mount its claim at OUT_DIR; the second needs a program that the first does not copy."""
    images.kubectl("-n", "default", "create", "-f", "-", input=_volume_and_claim("mfs"))
    data = (FILES / "hostpath-data-job.yaml").read_text()
    images.kubectl("-n", "default", "create", "-f", "-", input=data)
    _complete(images, "paddle-data")
    assert "is not on a volume" in images.kubectl("-n", "default", "logs", "job/paddle-data").stdout
    assert list(shared.iterdir()) == []
    images.kubectl("-n", "default", "delete", "job", "paddle-data")
    fixed = data.replace('mountPath: "/mnt"', "mountPath: /home/work/mfs")
    images.kubectl("-n", "default", "create", "-f", "-", input=fixed)
    _complete(images, "paddle-data")
    job = shared / "paddle-cluster-job"

    train = ("-n", "default", "create", "-f", str(FILES / "hostpath-cluster-job.yaml"))
    images.kubectl(*train)
    eventually("a pod says which programs there are", lambda: "found quick_start" in _logs(images))
    images.kubectl("-n", "default", "delete", "job", "paddle-cluster-job", "--cascade=foreground")
    (job / "quick_start").rename(job / "recommendation")
    images.kubectl(*train)
    _complete(images, "paddle-cluster-job")
    looks_as_in_the_documents(job, "recommendation")


@pytest.mark.full
def test_an_indexed_job_with_a_headless_service_needs_no_permissions(images: Cluster, parts: Path):
    images.kubectl("delete", "-f", str(FILES / "role.yaml"))
    images.kubectl("-n", "default", "create", "-f", str(FILES / "paddle-indexed-job.yaml"))
    try:
        _complete(images, "paddle-cluster-job")
    finally:
        images.kubectl("-n", "default", "delete", "service", "paddle-cluster-job")
    looks_as_in_the_documents(parts)
    for index, pod in enumerate(sorted(_pods(images))):
        log = images.kubectl("-n", "default", "logs", pod).stdout
        assert f"trainer {index} read" in log, "the index is the trainer id"


@pytest.mark.full
def test_a_pod_is_killed_and_new_pods_continue_from_the_last_pass(images: Cluster, parts: Path):
    job = yaml.safe_load((FILES / "paddle-cluster-job.yaml").read_text())
    job["spec"]["template"]["spec"]["containers"][0]["env"].append({"name": "NUM_PASSES", "value": "60"})
    images.kubectl("-n", "default", "create", "-f", "-", input=yaml.safe_dump(job))
    output = parts / "output"
    eventually("two passes are written", lambda: (output / "pass-00001" / "done").exists())
    first = _pods(images)
    images.kubectl("-n", "default", "delete", "pod", first[0], "--force", "--grace-period=0")
    _complete(images, "paddle-cluster-job")
    assert len([pod for pod in _pods(images) if pod not in first]) >= 3, "a whole new group"
    logs = "".join((output / f"node_{node}" / "train.log").read_text() for node in range(3))
    assert re.search(r"resumes after pass-000\d\d", logs)


def _volume_and_claim(name: str) -> str:
    return (FILES / "pv-pvc.yaml").read_text().replace("name: efsvol", f"name: {name}")


def _logs(cluster: Cluster) -> str:
    return cluster.kubectl(
        "-n", "default", "logs", "-l", "job-name=paddle-cluster-job", "--tail=-1", check=False
    ).stdout


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
