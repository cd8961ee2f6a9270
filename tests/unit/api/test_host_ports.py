"""How many nodes the jobs of a cluster need because of host ports."""

from __future__ import annotations

from typing import Any

from paddlejob.api.checks.host_ports import node_problems


def pods(kind: str = "PaddleJob", host_network: bool = False, ports: Any = None, **spec: Any) -> dict[str, Any]:
    container = {"name": "paddle", "ports": ports or [{"containerPort": 1, "hostPort": 2379}]}
    template = {"spec": {"containers": [container], "hostNetwork": host_network}}
    roles = {role: {"replicas": spec.pop(role), "template": template} for role in ("ps", "worker") if role in spec}
    return {"kind": kind, "metadata": {"name": "mnist"}, "spec": {**spec, **(roles or {"template": template})}}


def test_a_job_whose_pods_share_a_host_port_needs_a_node_for_each():
    assert node_problems([pods(ps=1, worker=2)], 3) == []
    assert node_problems([pods(ps=1, worker=2)], 2) == [
        "job mnist: 3 pods use host port 2379/TCP, which needs a node for each, and workerCount is 2; set workerCount "
        "to at least 3"
    ]
    assert node_problems([pods("Job", parallelism=3, completions=2)], 2) == []
    assert node_problems([pods("Job", parallelism=3)], 2) != []
    assert node_problems([pods("Job", parallelism=3, completions=5)], 2) != []
    assert (
        node_problems([pods("Job")], 1) == node_problems([pods("Secret")], 0) == node_problems(["text", None], 0) == []
    )
    plain = [{"containerPort": 8080}]
    assert node_problems([pods(worker=2, ports=plain)], 1) == []
    (found_port,) = node_problems([pods(worker=2, ports=[{**plain[0], "protocol": "UDP"}], host_network=True)], 1)
    assert "8080/UDP" in found_port
    nameless = {**pods(worker=2), "metadata": None}
    assert node_problems([nameless], 1)[0].startswith("job (unnamed): 2 pods")
    many = pods(worker=2, ports=[{"containerPort": 1, "hostPort": port} for port in (9, 7, 8)])
    assert "host port 7/TCP" in node_problems([many], 1)[0]
