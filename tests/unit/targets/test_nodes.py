"""What the nodes of a cluster have, and which jobs hold it."""

from __future__ import annotations

from typing import Any

from paddlejob import contract
from paddlejob.kube.client import Client
from paddlejob.targets.cluster import cluster_meter as machine
from paddlejob.targets.cluster.cluster_meter import ClusterMeter
from paddlejob.targets.cluster.cluster_target import ClusterTarget
from paddlejob.targets.views import Usage
from tests.support.scripted_cluster import Object, ScriptedCluster, failure, listed


def node(name: str, ready: str = "True", **spec: Any) -> Object:
    status = {
        "allocatable": {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "2", "pods": "110", "hugepages-2Mi": "4Mi"},
        "conditions": [{"type": "MemoryPressure", "status": "True"}, {"type": "Ready", "status": ready}],
    }
    return {"metadata": {"name": name}, "spec": spec, "status": status}


def busy(node_name: str, job: str = "", namespace: str = "team") -> Object:
    labels = {contract.LABEL_JOB: job} if job else {}
    containers = [{"resources": {"requests": {"cpu": "1500m"}, "limits": {"nvidia.com/gpu": 1}}}]
    spec = {"containers": containers} | ({"nodeName": node_name} if node_name else {})
    return {"metadata": {"name": "p", "namespace": namespace, "labels": labels}, "spec": spec}


async def test_the_nodes_of_a_cluster_show_what_is_held_and_by_whom(api: ScriptedCluster, client: Client):
    api.answers["GET", "nodes"] = listed(
        node("one"), node("two", "False", unschedulable=True), {**node("x"), "status": {}}
    )
    api.answers["GET", "pods"] = listed(busy("one", "mnist"), busy("one"), busy("", "mnist"))
    meter = ClusterMeter()
    found = await meter.read(client, "the title", "", [])
    assert (found.name, found.title, found.note) == ("cluster", "the title", "")
    assert [(one.name, one.state) for one in found.nodes] == [
        ("one", "Ready"), ("two", "NotReady, cordoned"), ("x", "NotReady")
    ]  # fmt: skip
    assert found.nodes[0].capacity == {"cpu": 4.0, "memory": 8.0 * 2**30, "nvidia.com/gpu": 2.0}
    assert found.nodes[0].held["cpu"] == 3.0 and found.nodes[1].held == {}
    resources = {one.name: one for one in found.resources}
    assert [*resources] == ["cpu", "memory", "nvidia.com/gpu"]
    assert (resources["cpu"].capacity, resources["cpu"].held) == (8.0, 3.0)
    assert resources["cpu"].holders == {"team/mnist": 3.0}
    assert (resources["nvidia.com/gpu"].holders, resources["nvidia.com/gpu"].used) == ({"team/mnist": 2.0}, None)
    assert ("pods", {"fieldSelector": machine.ACTIVE, "limit": "500"}) in api.queries
    assert await meter.read(client, "another", "", []) is found, "it is not asked again at once"


async def test_who_may_not_list_nodes_sees_ones_own_namespace_and_why(api: ScriptedCluster, client: Client):
    api.answers["GET", "nodes"] = failure(403, "Forbidden", "nodes is forbidden")
    api.answers["GET", "team/pods"] = listed(busy("one", "mnist"))
    found = await ClusterMeter().read(client, "t", "team", [])
    assert (found.nodes, "nodes is forbidden" in found.note) == ([], True)
    assert found.resources[0].holders == {"team/mnist": 1.5}
    assert (await ClusterMeter().read(client, "t", "", [])).resources[0].holders == {}


async def test_the_use_of_pods_and_nodes_is_read_over_the_same_connection(api: ScriptedCluster, target: ClusterTarget):
    api.add_job({"phase": "Running", "attempt": 1})
    api.add_pod(state="waiting")
    assert await target.usage(await target.job("default", "mnist")) == {}, "no pod runs"
    api.add_pod()
    view = await target.job("default", "mnist")
    usage = {"metadata": {"name": "mnist-worker-0"}, "containers": [{"usage": {"cpu": "2", "memory": "1Ki"}}]}
    api.answers["GET", "default/pods"] = listed(usage)
    assert await target.usage(view) == {"mnist-worker-0": Usage(2.0, 1024)}
    api.answers["GET", "nodes"] = listed(node("one"))
    api.answers["GET", "pods"] = listed()
    assert (await target.capacity()).title == target.access.server
