"""Every PaddleJob of the documents, on real pods with real PaddlePaddle."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from testbed.cluster import Cluster
from tests.support.on_cluster import EXAMPLES, ROOT, Job, eventually, gpus, submit


@pytest.mark.full
def test_wide_and_deep_by_service_trains(operator: Cluster, cluster_namespace: str):
    job = submit(operator, cluster_namespace, "wide_and_deep_service.yaml")
    job.until(phase="Completed")
    trained, untrained = job.final("auc")
    assert trained > 0.85 > untrained


def test_resnet_waits_for_gpus_and_trains_once_nodes_have_them(operator: Cluster, cluster_namespace: str):
    job = submit(operator, cluster_namespace, "resnet.yaml")
    status = job.until(phase="Pending", reason="Unschedulable")
    assert "nvidia.com/gpu" in status["message"]
    with gpus(operator, {"node-1": 1, "node-2": 1}):
        job.until(phase="Completed", restarts=0, disruptions=0)
    trained, untrained = job.final("accuracy")
    assert trained > 0.6 > untrained


@pytest.mark.full
def test_gpus_and_a_node_selector_are_waited_for(operator: Cluster, cluster_namespace: str):
    job = submit(operator, cluster_namespace, "wide_and_deep_gpu.yaml", cleanPodPolicy="Never")
    status = job.until(phase="Pending", reason="Unschedulable")
    assert "node" in status["message"]
    operator.kubectl("label", "node", "node-1", "accelerator=nvidia-tesla-p100")
    try:
        with gpus(operator, {"node-1": 4}):
            job.until(phase="Completed")
    finally:
        operator.kubectl("label", "node", "node-1", "accelerator-")
    assert job.final("auc")[0] > 0.85


@pytest.mark.full
@pytest.mark.parametrize("file", ["wide_and_deep_podip.yaml"])
def test_wide_and_deep_trains(operator: Cluster, cluster_namespace: str, file: str):
    """Unchanged; the log is followed, because the pods are deleted when the job completes."""
    job = submit(operator, cluster_namespace, file)
    job.until(phase="Running")
    log = job.kubectl("logs", "-f", f"{job.name}-worker-0")
    assert re.search(r"final auc=0\.[89]", log)
    job.until(phase="Completed")
    eventually("the pods are gone", lambda: not job.pods())


@pytest.mark.full
def test_code_and_data_come_from_a_volume(operator: Cluster, cluster_namespace: str, tmp_path: Path):
    """Document 001, example 5, with a hostPath instead of NFS; the job is unchanged."""
    tmp_path.chmod(0o755)
    shutil.copytree(ROOT / "src/paddlejob/examples/wide_and_deep", tmp_path / "wide_and_deep")
    volume, claim = yaml.safe_load_all((EXAMPLES / "pv-pvc.yaml").read_text())
    for key in ("nfs", "mountOptions"):
        volume["spec"].pop(key)
    volume["spec"] |= {"hostPath": {"path": str(tmp_path)}, "persistentVolumeReclaimPolicy": "Retain"}
    operator.kubectl("create", "-f", "-", input=yaml.safe_dump(volume))
    try:
        job = submit(operator, cluster_namespace, "data_demo.yaml")
        status = job.until(phase="Pending", reason="VolumeMissing")
        assert "nfs-pvc" in status["message"]
        operator.kubectl("-n", cluster_namespace, "create", "-f", "-", input=yaml.safe_dump(claim))
        job.until(phase="Completed", restarts=0)
    finally:
        operator.kubectl("delete", "pv", "nfs-pv", "--wait=false", check=False)


def test_every_example_file_is_run_by_a_test():
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    for path in EXAMPLES.glob("*.yaml"):
        assert path.name in tests, path.name


@pytest.mark.full
def test_the_same_verbs_on_a_cluster(operator: Cluster, cluster_namespace: str):
    """pdj submit, get, logs -f, why and delete, on real pods."""
    file = str(EXAMPLES / "wide_and_deep_podip.yaml")
    assert "created" in pdj(operator, "submit", file, "-n", cluster_namespace)
    followed = pdj(operator, "logs", "-f", "wide-ande-deep", "--role", "worker", "--cluster", "-n", cluster_namespace)
    assert re.search(r"final auc=0\.[89]", followed)
    Job(operator, cluster_namespace, "wide-ande-deep").until(phase="Completed")
    assert "completed" in pdj(operator, "why", "wide-ande-deep", "--cluster", "-n", cluster_namespace)
    shown = pdj(operator, "list", "--cluster", "-n", cluster_namespace)
    assert re.search(r"wide-ande-deep\s+Completed\s+PS", shown)
    pdj(operator, "delete", "wide-ande-deep", "--cluster", "-n", cluster_namespace)


def pdj(cluster: Cluster, *arguments: str) -> str:
    command = [sys.executable, "-m", "paddlejob", *arguments]
    done = subprocess.run(command, env=cluster.environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
