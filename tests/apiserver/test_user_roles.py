"""Users with Kubernetes' own roles `view` and `edit` may use jobs, and nothing else that is new."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.controlplane import ControlPlane
from tests.support.builders import document
from tests.support.cluster_pdj import ClusterPdj

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


@pytest.mark.parametrize("user", ["view"], indirect=True)
async def test_a_kubeconfig_that_impersonates_a_user_has_that_users_rights(
    installed: ControlPlane, namespace: str, user: str, tmp_path: Path
):
    """With the rights of the file's own user, `pdj delete` would delete what kubectl may not."""
    pdj = ClusterPdj(installed, tmp_path)
    config = json.loads(installed.kubectl("config", "view", "--raw", "-o", "json").stdout)
    for one in config["users"]:
        one["user"] |= {"as": user, "as-groups": ["system:serviceaccounts", "system:authenticated"]}
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    job = {**document("mine"), "metadata": {"name": "mine", "namespace": namespace}}
    installed.kubectl("create", "-f", "-", input=json.dumps(job))
    pdj.environment["KUBECONFIG"] = str(tmp_path / "kubeconfig")
    assert "mine" in (await pdj("list", "--cluster", "-n", namespace)).stdout
    rejected = await pdj("delete", "mine", "--cluster", "-n", namespace)
    assert rejected.returncode == 1
    assert f'User "{user}" cannot delete resource "paddlejobs"' in rejected.stderr
    assert installed.kubectl("-n", namespace, "get", "pdj", "mine").returncode == 0


@pytest.mark.parametrize("user", ["edit"], indirect=True)
def test_an_editor_gets_nothing_else(installed: ControlPlane, namespace: str, user: str):
    for resource in ("customresourcedefinitions", "clusterroles.rbac.authorization.k8s.io", "nodes"):
        assert not may(installed, user, "create", resource, namespace), resource
