"""What `pdj convert` makes really trains, on this machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlejob.local.sandbox.supervisor import probe
from tests.launch.pods import get_data, stage
from tests.support.pdj import Pdj

FILES = Path(__file__).resolve().parents[2] / "deploy" / "examples" / "batch-job"
PATIENCE = 180.0
KUBEFLOW = """
apiVersion: kubeflow.org/v1
kind: PaddleJob
metadata: {name: wide-and-deep}
spec:
  runPolicy: {cleanPodPolicy: Running, backoffLimit: 0}
  paddleReplicaSpecs:
    Master: &role
      replicas: 1
      restartPolicy: Never
      template:
        spec:
          containers:
          - name: paddle
            image: registry.baidubce.com/paddle-operator/demo-wide-and-deep:v1
            command: [python]
            args: ["-m", paddle.distributed.launch, train.py]
            ports: [{containerPort: 37777, name: master}]
    Worker: {<<: *role, replicas: 2}
---
apiVersion: kubeflow.org/v1
kind: PaddleJob
metadata: {name: paddle-simple}
spec:
  runPolicy: {backoffLimit: 0}
  paddleReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: OnFailure
      template:
        spec:
          containers:
          - name: paddle
            image: registry.baidubce.com/paddlepaddle/paddle:2.4.0rc0-cpu
            command: [python]
            args: ["-m", paddle.distributed.launch, run_check]
            ports: [{containerPort: 37777, name: master}]
"""


@pytest.fixture
def pdj(tmp_path: Path) -> Iterator[Pdj]:
    runner = Pdj(tmp_path)
    yield runner
    runner.close()


@pytest.mark.skipif(not probe()[0], reason="no mount namespaces here")
@pytest.mark.full
def test_the_documents_job_trains_in_servers_and_workers_of_their_own(pdj: Pdj, tmp_path: Path):
    job = str(tmp_path / "job.yaml")
    with stage(tmp_path) as on:
        get_data(on, 3, 900).check_returncode()
        assert pdj("convert", str(FILES / "paddle-cluster-job.yaml"), "-o", job).returncode == 0
        pdj.environment |= {"NUM_PASSES": "2", "OMP_NUM_THREADS": "1"}
        done = pdj("run", "--volume", f"efsvol={on.volume}", job, timeout=PATIENCE)
        assert done.returncode == 0, done.stdout + done.stderr
        output = on.job / "output"
        assert (output / "pass-00001" / "done").exists()
        logs = [(output / f"node_{node}" / "train.log").read_text() for node in range(3)]
        read = [re.findall(r"trainer (\d) read 300 reviews: (\S+)", log) for log in logs]
        assert read == [[("0", "0-299")], [("1", "300-599")], [("2", "600-899")]]


@pytest.mark.full
def test_kubeflows_jobs_train_with_servers_and_without(pdj: Pdj, tmp_path: Path):
    (tmp_path / "kubeflow.yaml").write_text(KUBEFLOW)
    job = str(tmp_path / "job.yaml")
    converted = pdj("convert", str(tmp_path / "kubeflow.yaml"), "-o", job)
    assert converted.returncode == 0, converted.stderr
    pdj.environment |= {"EPOCHS": "1", "OMP_NUM_THREADS": "1"}
    done = pdj("run", job, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "wide-and-deep: Completed: all 2 workers succeeded" in done.stdout
    assert "paddle-simple: Completed: all 2 workers succeeded" in done.stdout
