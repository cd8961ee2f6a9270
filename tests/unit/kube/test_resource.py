from __future__ import annotations

import pytest

from paddlejob.kube.resource import CRDS, LEASES, PODS, Resource


def test_paths_follow_group_namespace_and_subresource() -> None:
    assert PODS.collection() == "/api/v1/pods"
    assert PODS.collection("ml") == "/api/v1/namespaces/ml/pods"
    assert PODS.item("a", "ml", "log") == "/api/v1/namespaces/ml/pods/a/log"
    assert LEASES.item("l", "ml") == "/apis/coordination.k8s.io/v1/namespaces/ml/leases/l"
    assert CRDS.item("x.y") == "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/x.y"


def test_a_resource_is_named_as_kubectl_names_it() -> None:
    assert (str(PODS), PODS.api_version) == ("pods", "v1")
    assert (str(LEASES), LEASES.api_version) == ("leases.coordination.k8s.io", "coordination.k8s.io/v1")


@pytest.mark.parametrize(("name", "namespace"), [("", "ml"), ("a", ""), ("a", None)])
def test_a_path_that_would_mean_a_whole_collection_is_rejected(name: str, namespace: str | None) -> None:
    with pytest.raises(ValueError):
        PODS.item(name, namespace)


def test_a_cluster_wide_resource_takes_no_notice_of_a_namespace() -> None:
    nodes = Resource("", "v1", "nodes", namespaced=False)
    assert nodes.item("n1", "ml") == "/api/v1/nodes/n1"
