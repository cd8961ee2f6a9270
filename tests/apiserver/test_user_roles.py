"""Users with Kubernetes' own roles `view` and `edit` may use jobs, and nothing else that is new."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testbed.controlplane import ControlPlane

JOBS = "paddlejobs.batch.paddlepaddle.org"


@pytest.fixture
def user(installed: ControlPlane, namespace: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """A service account with a role in one namespace."""
    installed.kubectl("create", "serviceaccount", "user", "-n", namespace)
    account = f"{namespace}:user"
    bind = ("create", "rolebinding", "user", f"--clusterrole={request.param}", f"--serviceaccount={account}")
    installed.kubectl(*bind, "-n", namespace)
    yield f"system:serviceaccount:{account}"


def may(plane: ControlPlane, user: str, verb: str, resource: str, namespace: str) -> bool:
    resource, _, part = resource.partition("/")
    ask = ("auth", "can-i", verb, resource, f"--subresource={part}", "-n", namespace, f"--as={user}")
    asked = plane.kubectl(*ask, check=False)
    return asked.stdout.strip() == "yes"


@pytest.mark.parametrize("user", ["edit", "admin"], indirect=True)
def test_an_editor_can_submit_follow_scale_and_delete_jobs(installed: ControlPlane, namespace: str, user: str):
    for verb in ("create", "get", "list", "watch", "patch", "update", "delete"):
        assert may(installed, user, verb, JOBS, namespace), verb
    assert may(installed, user, "update", f"{JOBS}/scale", namespace)
    assert may(installed, user, "get", f"{JOBS}/status", namespace)
    assert not may(installed, user, "update", f"{JOBS}/status", namespace), "that is for the operator"
    assert not may(installed, user, "create", JOBS, "default"), "only where the role was granted"


@pytest.mark.parametrize("user", ["view"], indirect=True)
def test_a_viewer_can_only_read_jobs(installed: ControlPlane, namespace: str, user: str):
    assert may(installed, user, "list", JOBS, namespace)
    assert may(installed, user, "get", f"{JOBS}/status", namespace)
    for verb in ("create", "patch", "delete"):
        assert not may(installed, user, verb, JOBS, namespace), verb


@pytest.mark.parametrize("user", ["edit"], indirect=True)
def test_an_editor_gets_nothing_else(installed: ControlPlane, namespace: str, user: str):
    for resource in ("customresourcedefinitions", "clusterroles.rbac.authorization.k8s.io", "nodes"):
        assert not may(installed, user, "create", resource, namespace), resource
