"""Gang scheduling by a real Volcano."""

from __future__ import annotations

import pytest

from testbed.addons.volcano import Volcano
from testbed.cluster import Cluster
from tests.support.on_cluster import submit

pytestmark = pytest.mark.full


def test_the_documents_example_trains_with_the_users_own_pod_group(
    operator: Cluster, volcano: Volcano, cluster_namespace: str
):
    job = submit(operator, cluster_namespace, "wide_and_deep_volcano.yaml")
    job.until(phase="Running")
    for pod in job.pods().values():
        assert pod["spec"]["schedulerName"] == "volcano"
        assert pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "wide-ande-deep"
    job.until(phase="Completed")
    assert job.final("auc")[0] > 0.85


def test_a_gang_that_does_not_fit_waits_as_a_whole_and_reports_it(
    operator: Cluster, volcano: Volcano, cluster_namespace: str
):
    job = submit(
        operator,
        cluster_namespace,
        "wide_and_deep_podip.yaml",
        name="large",
        schedulingPolicy={"minResources": {"cpu": "1000"}},
    )
    status = job.until(phase="Pending", reason="GangNotAdmitted")
    assert "pod group large-" in status["message"]
    assert all(pod["status"]["phase"] == "Pending" for pod in job.pods().values()), "no pod of it runs"
    job.kubectl("delete", "pdj", "large")


def test_a_pod_group_is_created_and_removed_if_the_user_has_none(
    operator: Cluster, volcano: Volcano, cluster_namespace: str
):
    job = submit(
        operator,
        cluster_namespace,
        "wide_and_deep_podip.yaml",
        name="own",
        schedulingPolicy={"queue": "default"},
        worker_env={"EPOCHS": 1},
        ps_env={"EPOCHS": 1},
    )
    job.until(phase="Running")
    assert "own-" in job.kubectl("get", "podgroups.scheduling.volcano.sh", "-o", "name")
    job.until(phase="Completed")
    assert job.kubectl("get", "podgroups.scheduling.volcano.sh", "-o", "name") == ""
