"""An operator for one namespace, with a Role there instead of a ClusterRole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlejob.kube.client import Client
from paddlejob.operator.manifests import NAME, manifests
from testbed.controlplane import ControlPlane
from tests.support.kubelet import Kubelet
from tests.support.operator_process import OperatorProcess
from tests.support.operator_stage import OperatorStage

NAMESPACE = "narrow"


@pytest.fixture
def operator(own_plane: ControlPlane, tmp_path: Path) -> Iterator[OperatorProcess]:
    """The only operator, with just the permissions of a one-namespace installation."""
    own_plane.create_namespace(NAMESPACE)
    made = manifests(namespace=NAMESPACE, watch=NAMESPACE)
    objects = [one for one in made if one["kind"] not in ("Namespace", "Deployment")]
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    own_plane.kubectl("create", "-f", "-", input=listed)
    account = Path(own_plane.kubeconfig_for(NAMESPACE, NAME))
    options = (f"--namespace={NAMESPACE}", "--leader-elect", f"--leader-namespace={NAMESPACE}")
    with OperatorProcess(account, tmp_path / "log", *options) as process:
        process.until_ready()
        yield process


async def test_it_runs_the_jobs_of_its_namespace_and_has_no_permissions_elsewhere(
    operator: OperatorProcess, own_client: Client, own_plane: ControlPlane
):
    async with Kubelet(own_client, NAMESPACE) as kubelet:
        stage = OperatorStage(own_client, kubelet, NAMESPACE)
        await stage.submit(ps=1, workers=1, intranet="Service")
        await stage.until(phase="Running")
        await stage.exit("story-worker-0", 0)
        await stage.until(phase="Completed")
    account = f"--as=system:serviceaccount:{NAMESPACE}:{NAME}"
    for what in (("create", "pods"), ("list", "paddlejobs.batch.paddlepaddle.org")):
        done = own_plane.kubectl("auth", "can-i", *what, "-n", "default", account, check=False)
        assert done.stdout.strip() == "no"
