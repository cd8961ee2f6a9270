from __future__ import annotations

import sys
from pathlib import Path

import pytest

from testbed.cluster import Cluster
from testbed.fixtures import *  # noqa: F403
from testbed.images.productimages import push_programs, push_training

ROOT = Path(__file__).parent.parent.parent
CRD, OPERATOR = "deploy/v1/crd.yaml", "deploy/v1/operator.yaml"


@pytest.fixture(scope="session")
def images(cluster: Cluster, request: pytest.FixtureRequest) -> Cluster:
    """The cluster, with the product's images in its registry under the names that the documents use."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        push_programs(cluster.registry, _say)
        push_training(cluster.registry, _say)
    cluster.drop_stale_images()
    return cluster


@pytest.fixture(scope="session")
def operator(images: Cluster) -> Cluster:
    """The cluster with the operator installed, as the first document does it."""
    images.kubectl("create", "-f", str(ROOT / CRD), "-f", str(ROOT / OPERATOR))
    images.kubectl(
        *["-n", "paddle-system", "rollout", "status", "deployment/paddle-controller-manager", "--timeout=180s"]
    )
    return images


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
