"""The objects that `pdj plan` shows, for each engine."""

from __future__ import annotations

import pytest

from paddlejob.client.planned import planned_objects
from paddlejob.errors import BadInput
from tests.support.builders import job


def test_a_plan_shows_what_each_engine_would_create():
    found = planned_objects(job(ps=1, workers=1, intranet="Service"), "kubernetes")
    assert [one["kind"] for one in found] == ["Service", "Pod", "Pod", "ConfigMap"]
    named = [(one["kind"], one["metadata"]["name"]) for one in found]
    assert len(set(named)) == len(named), "each object is shown once"
    assert ("ConfigMap", "mnist-env-uid-o-1") in named
    local = planned_objects(job(ps=1, workers=260), "local")[-1]["data"]
    assert any("127.1.0.2" in value for value in local.values())
    assert any("127.1.1.2" in value for value in local.values())
    pods = planned_objects(job(workers=260), "kubernetes")[-1]["data"]
    assert any("10.0.0.1:" in value and "10.0.1.1:" in value for value in pods.values())
    gang = planned_objects(job(schedulingPolicy={"minAvailable": 2}), "kubernetes")
    assert gang[0]["kind"] == "PodGroup"
    queued = job(labels={"kueue.x-k8s.io/queue-name": "q"})
    assert planned_objects(queued, "kubernetes")[0]["kind"] == "Workload"
    assert planned_objects(queued, "local")[0]["kind"] == "Pod"
    with pytest.raises(BadInput, match="job mnist: "):
        planned_objects(job(workers=10_000), "kubernetes")
