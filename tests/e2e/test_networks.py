"""wide & deep and ResNet over each network that pods can have."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from testbed.cluster import Cluster
from tests.support.on_cluster import EXAMPLES, Job, eventually, submit

pytestmark = pytest.mark.full


@pytest.fixture(autouse=True)
def cached_names(operator: Cluster) -> Iterator[None]:
    """As most clusters do it: CoreDNS, NodeLocal DNSCache, or both."""
    with operator.names.cached():
        yield


def resnet(cluster: Cluster, namespace: str, intranet: str, **env: int) -> Job:
    """On CPUs."""
    document = yaml.safe_load((EXAMPLES / "resnet.yaml").read_text())
    document["spec"]["intranet"] = intranet
    container = document["spec"]["worker"]["template"]["spec"]["containers"][0]
    del container["resources"]
    container["env"] = [{"name": name, "value": str(value)} for name, value in env.items()]
    cluster.kubectl("-n", namespace, "create", "-f", "-", input=yaml.safe_dump(document))
    return Job(cluster, namespace, "resnet")


@pytest.mark.parametrize("intranet", ["PodIP", "Service", "Host"])
def test_wide_and_deep(operator: Cluster, cluster_namespace: str, intranet: str):
    job = submit(operator, cluster_namespace, "wide_and_deep.yaml", intranet=intranet)
    job.until(phase="Completed", restarts=0)
    trained, untrained = job.final("auc")
    assert trained > 0.85 > untrained


def test_a_restart_by_service_does_not_wait_for_caches_to_forget_dead_pods(operator: Cluster, cluster_namespace: str):
    """Paddle looks its master up once, and would try an address that a cache still has for 900 s."""
    with operator.names.cached(300):
        job = resnet(operator, cluster_namespace, "Service", STEPS=5000)
        eventually("it trains", lambda: "step" in job.log("resnet-worker-0"))
        job.kubectl("delete", "pod", "resnet-worker-0", "--force", "--grace-period=0")
        job.until(phase="Running", attempt=2)
        eventually("it trains again", lambda: "step" in job.log("resnet-worker-0"), patience=45)


@pytest.mark.parametrize("intranet", ["PodIP", "Service"])
def test_resnet(operator: Cluster, cluster_namespace: str, intranet: str):
    job = resnet(operator, cluster_namespace, intranet)
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
