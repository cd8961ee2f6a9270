"""wide & deep and ResNet over each network that pods can have."""

from __future__ import annotations

import pytest
import yaml

from testbed.cluster import Cluster
from tests.support.on_cluster import EXAMPLES, Job, submit

pytestmark = pytest.mark.full


@pytest.mark.parametrize("intranet", ["PodIP", "Service", "Host"])
def test_wide_and_deep(operator: Cluster, cluster_namespace: str, intranet: str):
    job = submit(operator, cluster_namespace, "wide_and_deep.yaml", intranet=intranet)
    job.until(phase="Completed", restarts=0)
    trained, untrained = job.final("auc")
    assert trained > 0.85 > untrained


@pytest.mark.parametrize("intranet", ["PodIP", "Service"])
def test_resnet(operator: Cluster, cluster_namespace: str, intranet: str):
    document = yaml.safe_load((EXAMPLES / "resnet.yaml").read_text())
    document["spec"]["intranet"] = intranet
    del document["spec"]["worker"]["template"]["spec"]["containers"][0]["resources"]
    operator.kubectl("-n", cluster_namespace, "create", "-f", "-", input=yaml.safe_dump(document))
    job = Job(operator, cluster_namespace, "resnet")
    job.until(phase="Completed", restarts=0)
    trained, untrained = job.final("accuracy")
    assert trained > 0.6 > untrained


def test_two_host_jobs_at_once_on_one_node(operator: Cluster, cluster_namespace: str):
    jobs = []
    for name in ("first", "second"):
        document = yaml.safe_load((EXAMPLES / "wide_and_deep.yaml").read_text())
        document["metadata"]["name"] = name
        document["spec"]["intranet"] = "Host"
        for role in ("ps", "worker"):
            document["spec"][role]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "node-2"}
        operator.kubectl("-n", cluster_namespace, "create", "-f", "-", input=yaml.safe_dump(document))
        jobs.append(Job(operator, cluster_namespace, name))
    for job in jobs:
        job.until(phase="Completed", restarts=0, patience=400)
        assert job.final("auc")[0] > 0.85
