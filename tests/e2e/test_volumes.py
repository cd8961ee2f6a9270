"""Volumes that are written back when they are unmounted: the next attempt reads what the one before has written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed.addons.writeback import VOLUME, write_back_volumes
from testbed.cluster import Cluster
from tests.support.on_cluster import Job, eventually

TRAIN = """
step=$(cat /checkpoint/step 2>/dev/null || echo 0)
echo resumed from $step
trap 'exit 143' TERM
while true; do step=$((step + 1)); echo $step > /checkpoint/step; [ $step = 43 ] && exit 1; sleep 0.05; done
"""
FLUSH = 8.0
"""Seconds for which the cache is written back."""


@pytest.mark.full
def test_an_attempt_resumes_from_the_checkpoint_that_a_cache_wrote_back(
    operator: Cluster, cluster_namespace: str, tmp_path: Path
):
    container = {
        "name": "paddle",
        "image": "busybox",
        "command": ["sh", "-c", TRAIN],
        "volumeMounts": [{"name": "checkpoint", "mountPath": "/checkpoint"}],
    }
    template = {"spec": {"containers": [container], "volumes": [{"name": "checkpoint", **VOLUME}]}}
    document = {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": "cached"},
        "spec": {"worker": {"replicas": 1, "template": template}},
    }
    with write_back_volumes(operator, tmp_path / "store", FLUSH):
        operator.kubectl("-n", cluster_namespace, "create", "-f", "-", input=json.dumps(document))
        job = Job(operator, cluster_namespace, "cached")
        job.until(phase="Running", attempt=2, restarts=1)
        eventually("it resumes", lambda: "resumed" in job.log("cached-worker-0"))
        assert job.log("cached-worker-0").startswith("resumed from 43\n")
        job.kubectl("delete", "pdj", "cached")
        eventually("its volumes are unmounted", lambda: not job.pods())
