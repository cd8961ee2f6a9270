"""The documents' walk, command by command, and every PaddleJob of theirs, on real pods with real PaddlePaddle."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from testbed.cluster import Cluster
from tests.support.on_cluster import EXAMPLES, ROOT, eventually, submit

WALK = (
    ("000:52", "kubectl create -f deploy/v1/crd.yaml", ""),
    ("000:60", "kubectl get crd", r"paddlejobs\.batch\.paddlepaddle\.org\s+\d{4}-"),
    ("000:82", "kubectl create -f deploy/v1/operator.yaml", ""),
    ("000:88", "kubectl -n paddle-system get pods", r"paddle-controller-manager-\S+\s+1/1\s+Running\s+0"),
    ("000:96", "kubectl -n paddle-system logs {operator}", r"watching all namespaces"),
    ("000:102", "kubectl -n paddle-system create -f deploy/examples/wide_and_deep.yaml", "created"),
    (
        "000:108",
        "kubectl -n paddle-system get pdj",
        r"NAME\s+STATUS\s+MODE\s+PS\s+WORKER\s+AGE\nwide-ande-deep\s+Pending",
    ),
    ("000:108", "kubectl -n paddle-system get pdj", r"\nwide-ande-deep\s+Completed\s+PS\s+2/2\s+0/2\s"),
    ("000:118", "kubectl -n paddle-system get pods", r"wide-ande-deep-worker-0\s+0/1\s+Completed\s+0"),
    ("000:126", "kubectl delete -f deploy/v1/crd.yaml -f deploy/v1/operator.yaml", "deleted"),
    ("000:126", "kubectl get crd", r"^(?!.*paddlejobs)"),
    ("000:126", "kubectl get namespaces", r"(?s)^(?!.*paddle-system)"),
)
"""Where it stands, the command, and what it prints in the end."""


def test_the_walk_of_the_first_document(images: Cluster):
    for place, command, expected in WALK:
        words = shlex.split(command.format(operator=_operator(images) if "{operator}" in command else ""))

        def prints_it(words: list[str] = words, expected: str = expected) -> bool:
            done = subprocess.run(words, cwd=ROOT, env=images.environment(), capture_output=True, text=True)
            prints_it.last = done.stdout + done.stderr  # type: ignore[attr-defined]
            return done.returncode == 0 and re.search(expected, done.stdout) is not None

        if words[1] in ("create", "delete") or words[3:4] == ["create"]:
            assert prints_it(), f"{place}: {command}: {prints_it.last}"  # type: ignore[attr-defined]
        else:
            eventually(f"{place}: {command} prints {expected}", prints_it)


def _operator(cluster: Cluster) -> str:
    return cluster.kubectl("-n", "paddle-system", "get", "pods", "-o", "name").stdout.split()[0]


def test_wide_and_deep_by_service_trains(operator: Cluster, cluster_namespace: str):
    job = submit(operator, cluster_namespace, "wide_and_deep_service.yaml")
    job.until(phase="Completed")
    trained, untrained = job.final("auc")
    assert trained > 0.85 > untrained


def test_resnet_waits_for_gpus_and_trains_once_nodes_have_them(operator: Cluster, cluster_namespace: str):
    job = submit(operator, cluster_namespace, "resnet.yaml")
    status = job.until(phase="Pending", reason="Unschedulable")
    assert "nvidia.com/gpu" in status["message"]
    with _gpus(operator, {"node-1": 1, "node-2": 1}):
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
        with _gpus(operator, {"node-1": 4}):
            job.until(phase="Completed")
    finally:
        operator.kubectl("label", "node", "node-1", "accelerator-")
    assert job.final("auc")[0] > 0.85


@pytest.mark.full
@pytest.mark.parametrize("file", ["wide_and_deep_podip.yaml"])
def test_wide_and_deep_trains(operator: Cluster, cluster_namespace: str, file: str):
    """As written; the log is followed, as the pods go when the job is complete."""
    job = submit(operator, cluster_namespace, file)
    job.until(phase="Running")
    said = job.kubectl("logs", "-f", f"{job.name}-worker-0")
    assert re.search(r"final auc=0\.[89]", said)
    job.until(phase="Completed")
    eventually("the pods are gone", lambda: not job.pods())


@pytest.mark.full
def test_code_and_data_come_from_a_volume(operator: Cluster, cluster_namespace: str, tmp_path: Path):
    """Document 001, example 5: a hostPath stands in for NFS; the job is as written."""
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


class _gpus:
    """An extended resource on nodes stands in for the device plugin's."""

    def __init__(self, cluster: Cluster, count: dict[str, int]) -> None:
        self._cluster = cluster
        self._count = count

    def __enter__(self) -> None:
        for node, count in self._count.items():
            self._patch(node, f'{{"status":{{"capacity":{{"nvidia.com/gpu":"{count}"}}}}}}')

    def __exit__(self, *_: object) -> None:
        for node in self._count:
            self._patch(node, '{"status":{"capacity":{"nvidia.com/gpu":"0"}}}')

    def _patch(self, node: str, patch: str) -> None:
        self._cluster.kubectl("patch", "node", node, "--subresource=status", "-p", patch)


def test_every_example_file_is_run_by_a_test():
    """The volcano one in test_volcano.py."""
    here = "".join((Path(__file__).parent / name).read_text() for name in ("test_documents.py", "test_volcano.py"))
    for path in EXAMPLES.glob("*.yaml"):
        assert path.name in here, path.name
