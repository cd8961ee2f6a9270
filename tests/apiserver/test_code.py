"""Code that is shipped with a job: its ConfigMaps on a real API server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from testbed.controlplane import ControlPlane
from tests.support.cluster_pdj import ClusterPdj
from tests.support.on_cluster import eventually
from tests.support.operator_stage import OperatorStage
from tests.support.programs import write_project

READER = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: jobs-only, namespace: {namespace}}}
rules:
- {{apiGroups: [batch.paddlepaddle.org], resources: [paddlejobs], verbs: ["*"]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: jobs-only, namespace: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: jobs-only}}
subjects: [{{kind: ServiceAccount, name: jobs-only, namespace: {namespace}}}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {{name: jobs-only, namespace: {namespace}}}
"""


@pytest.fixture
def pdj(installed: ControlPlane, tmp_path: Path) -> ClusterPdj:
    write_project(tmp_path / "project")
    found = ClusterPdj(installed, tmp_path)
    found.folder = tmp_path / "project"
    return found


def code_maps(plane: ControlPlane, namespace: str) -> dict[str, list[str]]:
    """The owners of each ConfigMap that holds code."""
    listed = plane.kubectl("-n", namespace, "get", "cm", "-l", "batch.paddlepaddle.org/code", "-o", "json").stdout
    items: list[dict[str, Any]] = json.loads(listed)["items"]
    return {
        one["metadata"]["name"]: [owner["name"] for owner in one["metadata"].get("ownerReferences", [])]
        for one in items
    }


async def submit(pdj: ClusterPdj, namespace: str, name: str) -> str:
    done = await pdj("submit", "train.py", "--name", name, "--image", "paddle:1", "--code", ".", "-n", namespace)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_equal_code_is_shared_edited_code_is_new_and_all_of_it_goes_with_the_jobs(
    pdj: ClusterPdj, stage: OperatorStage, installed: ControlPlane, namespace: str
):
    async def gone(left: int) -> None:
        await asyncio.to_thread(eventually, "code is gone", lambda: len(code_maps(installed, namespace)) <= left)

    first = await submit(pdj, namespace, "one")
    assert "3 files of ., " in first
    assert "left out because it may be secret: .env; to ship it, write `!NAME` into .pdjignore" in first
    await submit(pdj, namespace, "two")
    (shared,) = code_maps(installed, namespace).items()
    assert sorted(shared[1]) == ["one", "two"]
    (pdj.folder / "train.py").write_text("print('edited')")
    await submit(pdj, namespace, "three")
    assert len(code_maps(installed, namespace)) == 2

    out = pdj.folder.parent / "out"
    done = await pdj("code", "two", "-n", namespace, "-o", str(out))
    assert done.stdout == f"wrote 3 files to {out}\n", done.stderr
    assert (out / "data" / "scale.txt").read_text() == "2"
    assert "DataParallel" in (out / "train.py").read_text()

    for name in ("one", "three"):
        installed.kubectl("-n", namespace, "delete", "pdj", name)
    await gone(1)
    assert code_maps(installed, namespace).keys() == {shared[0]}, "the other job still needs it"
    installed.kubectl("-n", namespace, "delete", "pdj", "two")
    await gone(0)


async def test_a_config_map_that_somebody_planted_is_not_used(
    pdj: ClusterPdj, stage: OperatorStage, installed: ControlPlane, namespace: str
):
    await submit(pdj, namespace, "one")
    (name,) = code_maps(installed, namespace)
    installed.kubectl("-n", namespace, "delete", "pdj", "one")
    await asyncio.to_thread(eventually, "code is gone", lambda: not code_maps(installed, namespace))
    labels = "batch.paddlepaddle.org/code=1"
    installed.kubectl("-n", namespace, "create", "configmap", name, "--from-literal=part-000=planted")
    installed.kubectl("-n", namespace, "label", "configmap", name, labels)
    done = await pdj("submit", "train.py", "--image", "paddle:1", "--code", ".", "-n", namespace)
    assert done.returncode == 1, done.stdout
    assert f"ConfigMap {name} in namespace {namespace} exists and holds something else" in done.stderr
    assert installed.kubectl("-n", namespace, "get", "pdj", "-o", "name").stdout == ""


async def test_without_the_right_to_create_config_maps_nothing_is_left(
    pdj: ClusterPdj, stage: OperatorStage, installed: ControlPlane, namespace: str
):
    installed.kubectl("apply", "-f", "-", input=READER.format(namespace=namespace))
    token = installed.kubectl("-n", namespace, "create", "token", "jobs-only").stdout.strip()
    config = json.loads(installed.kubectl("config", "view", "--raw", "-o", "json").stdout)
    config["users"] = [{"name": one["name"], "user": {"token": token}} for one in config["users"]]
    file = pdj.folder.parent / "kubeconfig"
    file.write_text(json.dumps(config))
    pdj.environment["KUBECONFIG"] = str(file)
    done = await pdj("submit", "train.py", "--image", "paddle:1", "--code", ".", "-n", namespace)
    assert done.returncode == 1, done.stdout
    assert "the code cannot be stored in a ConfigMap, so nothing was submitted" in done.stderr
    assert "Traceback" not in done.stderr
    assert (await stage.pods()) == {}
    assert installed.kubectl("-n", namespace, "get", "pdj", "-o", "name").stdout == ""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("train.py", "--code", "nowhere", "--image", "i"), "--code nowhere is not a directory"),
        (("train.py", "--code", "data", "--image", "i"), "--code data does not ship train.py"),
        (("train.py", "--gpus", "8"), "--image is missing; name an image with PaddlePaddle, or set `gpu_image`"),
        (("train.py", "--volume", "Data", "--image", "i"), "--volume Data must have the form CLAIM or CLAIM=/PATH"),
    ],
)
async def test_bad_input_is_one_message_and_nothing_is_submitted(
    pdj: ClusterPdj, installed: ControlPlane, namespace: str, arguments: tuple[str, ...], expected: str
):
    done = await pdj("submit", *arguments, "-n", namespace)
    assert done.returncode == 2, done.stdout
    assert expected in done.stderr
    assert installed.kubectl("-n", namespace, "get", "pdj", "-o", "name").stdout == ""
