"""`pdj aws status` while a cluster is created, replaced or unhealthy; with scripted responses."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.cloud.aws.session import Aws
from paddlejob.cloud.aws.stack.stack import StackState
from paddlejob.cloud.aws.stack.status import ClusterStatus, status

STATE = StackState("id", "paddle-cluster", "CREATE_IN_PROGRESS", {}, {}, {})
OUTPUTS = {"NodeGroup": "Nodes-1", "ApiName": "api.paddle", "FileSystemId": "fs-1", "BucketName": "data-1"}
Answers = dict[str, Any]


def instance(id: str, state: str, **changes: Any) -> dict[str, Any]:
    where = {"Placement": {"AvailabilityZone": "us-west-2a"}}
    return {"InstanceId": id, "State": {"Name": state}, "InstanceType": "m5.xlarge", **where, **changes}


def look(patch: pytest.MonkeyPatch, answers: Answers, outputs: dict[str, str]) -> ClusterStatus:
    """Ask an AWS that knows only these answers, by operation."""
    instances = answers.get("describe_instances", [])
    patch.setattr(Aws, "find", lambda self, service, operation, absent, **_: answers.get(operation))

    def items(self: Aws, service: str, operation: str, key: str, Filters: list[Any]) -> list[Any]:
        tag, states = Filters
        assert states["Values"] == ["pending", "running", "stopping", "shutting-down"], "terminated ones are gone"
        return [{"Instances": instances}] if tag["Name"] == "tag:eks:cluster-name" else []

    patch.setattr(Aws, "items", items)
    return status(Aws("us-west-2"), STATE, outputs)


def test_before_the_control_plane_exists_the_stack_is_shown_and_the_name_is_pending(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = look(monkeypatch, {}, {})
    assert [line.split(":")[0] for line in found.lines()] == [
        *("Cluster Name", "Controller DNS Name", "Stack", "Region", "Nodes")
    ]
    assert [line.split(": ")[1].strip() for line in found.lines()] == [
        *("paddle-cluster", "pending", "CREATE_IN_PROGRESS", "us-west-2", "0 of 0 running")
    ]


def test_nodes_are_sorted_and_only_those_that_run_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {
        "describe_cluster": {"cluster": {"endpoint": "https://1.eks.amazonaws.com/", "version": "1.36"}},
        "describe_nodegroup": {"nodegroup": {"scalingConfig": {"desiredSize": 3}}},
        "describe_instances": [
            instance("i-3", "pending"),
            instance("i-2", "running", PrivateDnsName="ip-10-0-0-2"),
            instance("i-1", "running", PrivateDnsName="ip-10-0-0-1"),
        ],
    }
    found = look(monkeypatch, answers, OUTPUTS)
    assert [node.name for node in found.nodes] == ["i-3", "ip-10-0-0-1", "ip-10-0-0-2"]
    lines = found.lines()
    assert "Nodes:                  2 of 3 running" in lines
    assert "Controller DNS Name:    1.eks.amazonaws.com" in lines
    assert "Kubernetes:             1.36" in lines
    assert "DNS name in the VPC:    api.paddle" in lines
    assert "EFS:                    fs-1.efs.us-west-2.amazonaws.com" in lines
    assert "S3 bucket:              s3://data-1" in lines
    assert lines[-1].split() == ["ip-10-0-0-2", "i-2", "running", "m5.xlarge", "us-west-2a"]


def test_what_eks_reports_of_unhealthy_nodes_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    issue = {"code": "AsgInstanceLaunchFailures", "message": "Could not launch On-Demand Instances."}
    answers = {
        "describe_cluster": {"cluster": {"status": "ACTIVE"}},
        "describe_nodegroup": {"nodegroup": {"scalingConfig": {"desiredSize": 1}, "health": {"issues": [issue]}}},
    }
    found = look(monkeypatch, answers, OUTPUTS)
    assert found.lines()[-1] == "Problem: Could not launch On-Demand Instances."
    assert found.as_dict()["problems"] == ["Could not launch On-Demand Instances."]


def test_while_the_node_group_is_replaced_there_is_none_to_count(monkeypatch: pytest.MonkeyPatch) -> None:
    found = look(monkeypatch, {"describe_cluster": {"cluster": {"status": "ACTIVE"}}}, OUTPUTS)
    assert (found.nodes_wanted, found.problems) == (0, ())


def test_a_program_reads_every_fact_by_a_name_in_camel_case(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {
        "describe_cluster": {"cluster": {"computeConfig": {"enabled": True}}},
        "describe_instances": [instance("i-1", "running")],
    }
    found = look(monkeypatch, answers, {})
    assert found.as_dict() == {
        "clusterName": "paddle-cluster",
        "region": "us-west-2",
        "stack": "CREATE_IN_PROGRESS",
        "controllerDNSName": "",
        "kubernetesVersion": "",
        "apiName": "",
        "nodesWanted": None,
        "nodes": [{"name": "i-1", "id": "i-1", "state": "running", "type": "m5.xlarge", "zone": "us-west-2a"}],
        "problems": [],
        "fileSystem": "",
        "bucket": "",
    }
    assert "Nodes:                  1 running" in found.lines(), "Auto Mode wants no number"
