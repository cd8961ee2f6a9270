"""The operator and CRD of 0.2.0 are replaced while jobs run in every network: nothing restarts."""

from __future__ import annotations

import subprocess
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from paddlejob.kube.access import find_access
from paddlejob.kube.client import Client
from testbed.controlplane import ControlPlane
from tests.support.kubelet import Kubelet
from tests.support.operator_fixtures import ACCOUNT, ROOT, install
from tests.support.operator_process import OperatorProcess
from tests.support.operator_stage import OperatorStage

pytestmark = pytest.mark.full
RELEASE = "cd496be"
"""The commit of 0.2.0, until there is a tag."""
NAMESPACE = "upgrade"
SHAPES: dict[str, dict[str, Any]] = {"ps": {"ps": 1, "workers": 2}, "collective": {"workers": 2}}
JOBS = {
    f"{shape}-{intranet.lower()}": {**roles, "intranet": intranet}
    for shape, roles in SHAPES.items()
    for intranet in ("PodIP", "Service", "Host")
} | {
    "single": {"workers": 1},
    "heter": {"ps": 1, "workers": 2, "heter": 1},
    "elastic": {"workers": 2, "elastic": 1},
    "gloo": {"ps": 1, "workers": 2, "withGloo": 1},
}


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """The files of 0.2.0, from the history of the repository."""
    packed = tmp_path / "release.tar"
    done = subprocess.run(["git", "archive", "-o", packed, RELEASE, "src", "deploy"], cwd=ROOT, capture_output=True)
    if done.returncode:
        pytest.skip("the history of the repository is not here (a shallow clone?)")
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path / "release", filter="data")
    return tmp_path / "release"


@pytest.fixture
async def stages(own_control_plane: ControlPlane) -> AsyncIterator[dict[str, OperatorStage]]:
    own_control_plane.create_namespace(NAMESPACE)
    async with Client(find_access(str(own_control_plane.kubeconfig))) as client, Kubelet(client, NAMESPACE) as kubelet:
        yield {name: OperatorStage(client, kubelet, NAMESPACE, name) for name in JOBS}


async def test_running_jobs_go_on_in_every_network_and_complete(
    release: Path, stages: dict[str, OperatorStage], own_control_plane: ControlPlane, tmp_path: Path
):
    install(own_control_plane, release / "deploy")
    account = Path(own_control_plane.kubeconfig_for(*ACCOUNT))
    with OperatorProcess(account, tmp_path / "old.log", source=release / "src") as old:
        old.until_ready()
        for name, stage in stages.items():
            await stage.submit(**JOBS[name])
        before = {}
        for name, stage in stages.items():
            await stage.until(phase="Running")
            before[name] = await stage.pods()

    for file in ("crd.yaml", "operator.yaml"):
        own_control_plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(ROOT / "deploy/v1" / file))
    with OperatorProcess(account, tmp_path / "new.log") as new:
        new.until_ready()
        for name, stage in stages.items():
            await stage.change(ttlSecondsAfterFinished=600)
            await stage.until(observedGeneration=2)
            status = await stage.until(phase="Running")
            assert (status["attempt"], status.get("restarts", 0), status.get("disruptions", 0)) == (1, 0, 0), name
            assert await stage.pods() == before[name], name
        for name, stage in stages.items():
            for index in range(JOBS[name]["workers"]):
                await stage.exit(f"{name}-worker-{index}", 0)
            status = await stage.until(phase="Completed")
            assert status["attempt"] == 1, name
