"""The samples of paddle-operator on real pods, unchanged but for the directory of the hostPath."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from testbed.cluster import Cluster
from tests.support.on_cluster import ROOT, Job, eventually, gpus, submit

SAMPLES = ROOT / "examples"


@pytest.mark.full
def test_the_elastic_sample_survives_a_deleted_pod_and_a_second_run_resumes(
    operator: Cluster, cluster_namespace: str, tmp_path: Path
):
    """The nodes share the file system of this machine, so a hostPath is the same directory on each of them."""
    sample = _with_host_path(SAMPLES / "elastic" / "job.yaml", tmp_path)
    with gpus(operator, {"node-1": 2, "node-2": 1}):
        job = submit(operator, cluster_namespace, sample)
        _until_saved(job)
        job.kubectl("delete", "pod", "resnet-elastic-worker-1", "--force", "--grace-period=0")
        job.until(phase="Completed", disruptions=1)
        first = job.log("resnet-elastic-worker-0")
        assert _began(first) > 0, "the second attempt continues"
        trained, untrained = job.final("accuracy")
        assert trained > 0.6 > untrained

        job.kubectl("delete", "pdj", job.name)
        eventually("the pods are gone", lambda: not job.pods())
        again = submit(operator, cluster_namespace, sample)
        again.until(phase="Completed", restarts=0)
        assert "worker 0 of 3 starts after step 124 of 124" in again.log("resnet-elastic-worker-0")
        assert again.final("accuracy") == pytest.approx((trained, untrained), abs=0.02)


@pytest.mark.full
def test_the_deepfm_sample_trains(operator: Cluster, cluster_namespace: str):
    job = submit(operator, cluster_namespace, SAMPLES / "deepfm" / "job.yaml", cleanPodPolicy="Never")
    job.until(phase="Completed", restarts=0)
    trained, untrained = job.final("auc")
    assert trained > 0.85 > untrained


def _with_host_path(sample: Path, directory: Path) -> Path:
    text = sample.read_text()
    (volume,) = (one for one in _volumes(text) if "hostPath" in one)
    (directory / "checkpoint").mkdir()
    written = directory / sample.name
    written.write_text(text.replace(volume["hostPath"]["path"], str(directory / "checkpoint")))
    return written


def _volumes(text: str) -> list[dict[str, dict[str, str]]]:
    found: list[dict[str, dict[str, str]]] = yaml.safe_load(text)["spec"]["worker"]["template"]["spec"]["volumes"]
    return found


def _until_saved(job: Job) -> None:
    log = f"{job.name}-worker-0"
    eventually("a checkpoint is saved", lambda: "checkpoint step=10 saved" in job.log(log))


def _began(log: str) -> int:
    (step,) = re.findall(r"worker 0 of 3 starts after step (\d+) of 124", log)
    return int(step)
