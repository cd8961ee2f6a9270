"""Commands of the documentation that need a cluster, run as a reader would: on fake nodes, or with fake kubelets."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.build.binaries import binaries
from testbed.controlplane import ControlPlane
from tests.apiserver.test_log_reading import bind
from tests.apiserver.test_startup import until_created
from tests.support.builders import document
from tests.support.cluster_pdj import PATIENCE, ClusterPdj
from tests.support.log_server import LogServer
from tests.support.operator_stage import OperatorStage
from tests.support.pages import shape, shown_by
from tools.docs.commands import command_lines
from tools.docs.markdown import Block, parse
from tools.docs.pages import DOCS, ROOT, english_pages

pytestmark = pytest.mark.full
NAMESPACE = "training"
SUBMIT = "pdj submit job.yaml -n training"
DELETE = "pdj delete wide-and-deep --cluster -n training"
KUBECTL = "kubectl create -f deploy/v1/crd.yaml -f deploy/v1/operator.yaml"
HELM = "helm install paddlejob deploy/chart"
OLD_OPERATOR = (
    "kubectl create -f deploy/v1/crd.yaml && kubectl create namespace paddle-system && "
    "kubectl -n paddle-system create deployment paddle-controller-manager --image=old"
)
BEFORE = {
    "kubectl pdj list": KUBECTL,
    "pdj doctor --cluster -n training": "pdj install",
    "kubectl -n paddle-system delete deployment": OLD_OPERATOR,
    "sed 's#paddlejob/operator#registry.example.com/&#' deploy/v1/operator.yaml |   kubectl apply": KUBECTL,
    "kubectl apply --server-side --force-conflicts -f deploy/chart": HELM,
    "helm uninstall": HELM,
}
"""What a reader has installed before a block that begins like this."""


def blocks() -> Iterator[tuple[str, Block]]:
    for page in english_pages():
        for block in parse((DOCS / page).read_text()).blocks:
            if block.marker and block.marker.kind == "run on a cluster":
                yield page, block


@pytest.fixture
def reader(kwok_cluster: ControlPlane, tmp_path: Path) -> Iterator[ClusterPdj]:
    """Someone with a checkout, the programs that the pages use, and a namespace; afterwards nothing is installed."""
    made = ClusterPdj(kwok_cluster, tmp_path)
    programs = [made.environment["PATH"], str(kwok_cluster.kubectl_path.parent), str(binaries("helm")["helm"].parent)]
    made.environment |= {"PATH": os.pathsep.join(programs), "HOME": str(tmp_path)}
    kwok_cluster.create_namespace(NAMESPACE)
    yield made
    types(made, "helm uninstall paddlejob --wait --ignore-not-found")
    for namespace in ("paddle-system", NAMESPACE):
        made.run("uninstall", "--yes", "-n", namespace)
    kwok_cluster.kubectl("delete", "crd", "paddlejobs.batch.paddlepaddle.org", "--ignore-not-found")
    kwok_cluster.kubectl("delete", "namespace", "paddle-system", NAMESPACE, "--ignore-not-found")


def types(reader: ClusterPdj, line: str) -> subprocess.CompletedProcess[str]:
    shell = ["bash", "-euo", "pipefail", "-c", f"exec 2>&1; {line}"]
    return subprocess.run(
        shell, cwd=ROOT, env=reader.environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


@pytest.mark.parametrize(
    ("page", "block"), [pytest.param(page, block, id=f"{page}:{block.line}") for page, block in blocks()]
)
def test_the_commands_of_a_block_work_on_a_cluster(reader: ClusterPdj, page: str, block: Block):
    lines = command_lines(block)
    for line in [*(before for start, before in BEFORE.items() if lines[0].startswith(start)), *lines]:
        done = types(reader, line)
        advises = line.startswith("pdj doctor") and "Changes needed:" in done.stdout
        assert done.returncode == 0 or advises, f"docs/{page}:{block.line}\n{line}\n{done.stdout}"


@pytest.fixture
def pdj(installed: ControlPlane, tmp_path: Path) -> ClusterPdj:
    return ClusterPdj(installed, tmp_path)


class Submitted:
    """The job of docs/howto/submit.md, whose pods print a step; a fake kubelet runs them."""

    def __init__(self, pdj: ClusterPdj, stage: OperatorStage, plane: ControlPlane, logs: LogServer) -> None:
        self.pdj, self.stage, self.plane, self.logs = pdj, stage, plane, logs
        self.pods = ("wide-and-deep-worker-0", "wide-and-deep-worker-1")
        stage.name = "wide-and-deep"

    async def type(self, line: str) -> subprocess.CompletedProcess[str]:
        program, *arguments = line.partition("#")[0].replace(f"-n {NAMESPACE}", f"-n {self.stage.namespace}").split()
        assert program == "pdj"
        return await self.pdj(*arguments)

    async def succeeds(self, line: str) -> str:
        done = await self.type(line)
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        return done.stdout

    async def run(self) -> None:
        """Until its pods run and have printed something."""
        self.stage.kubelet.hold |= {*self.pods}
        await until_created(self.stage, *self.pods)
        bind(self.plane, self.stage.namespace, *self.pods)
        self.stage.kubelet.hold.clear()
        await self.stage.until(phase="Running")
        for pod in self.pods:
            self.logs.write(pod, "step 120/500 loss=0.5")

    async def end(self) -> None:
        for pod in self.pods:
            await self.stage.exit(pod, 0)
        await self.stage.until(phase="Completed")


@pytest.fixture
def submitted(pdj: ClusterPdj, stage: OperatorStage, installed: ControlPlane, logs: LogServer) -> Submitted:
    made = document("wide-and-deep", workers=2, elastic=1, cleanPodPolicy="Never", worker_={"requests": 1, "limits": 4})
    del made["metadata"]["namespace"]
    pdj.write(made)
    return Submitted(pdj, stage, installed, logs)


def lines_of(page: str, number: int) -> list[str]:
    return command_lines(parse((DOCS / page).read_text()).blocks[number])


async def test_a_job_is_submitted_as_the_page_shows(submitted: Submitted):
    """docs/howto/submit.md, its first block."""
    validate, submit, wait = lines_of("howto/submit.md", 0)
    for line in (validate, submit, DELETE):
        await submitted.succeeds(line)
    waiting = asyncio.create_task(submitted.type(wait))
    await submitted.run()
    await submitted.end()
    assert (await waiting).returncode == 0


async def test_a_job_on_a_cluster_is_looked_at_and_changed_as_the_page_shows(submitted: Submitted):
    """docs/howto/submit.md, its second block."""
    lines = {line.split()[1]: line for line in lines_of("howto/submit.md", 1)}
    await submitted.succeeds(SUBMIT)
    await submitted.run()
    follow = [lines.pop("watch"), lines.pop("logs"), "pdj metrics wide-and-deep -o json -f --cluster -n training"]
    following = [asyncio.create_task(submitted.type(line)) for line in follow]
    printed = {verb: await submitted.succeeds(lines.pop(verb)) for verb in ("list", "get", "metrics", "why")}
    assert all("wide-and-deep" in printed[verb] for verb in ("list", "get", "why"))
    assert "120/500" in printed["metrics"]
    await submitted.end()
    watched, followed, measured = await asyncio.gather(*following)
    assert "wide-and-deep completed in" in watched.stdout, watched.stderr
    assert "step 120/500 loss=0.5" in followed.stdout, followed.stderr
    assert json.loads(measured.stdout)["loss"] == 0.5, measured.stderr

    await submitted.succeeds(DELETE)
    await submitted.succeeds(SUBMIT)
    await submitted.run()
    assert list(lines) == ["scale", "suspend", "resume", "delete"], "every command was typed, and these are left"
    await submitted.succeeds(lines["scale"])
    await submitted.succeeds(lines["suspend"])
    await submitted.stage.until(phase="Suspended")
    await submitted.succeeds(lines["resume"])
    await submitted.stage.until(phase="Running", worker_ready="4/4")
    await submitted.succeeds(lines["delete"])
    assert await submitted.stage.pods() == {}


async def test_the_size_of_an_elastic_job_looks_as_the_page_shows(
    pdj: ClusterPdj, stage: OperatorStage, installed: ControlPlane
):
    """docs/howto/elastic.md."""
    stage.name = "resnet"
    stage.kubelet.hold.add("resnet-worker-3")
    await stage.submit(workers=4, elastic=1, scheduleTimeoutSeconds=2, worker_={"requests": 2, "limits": 8})
    await until_created(stage, "resnet-worker-3")
    await stage.kubelet.unschedulable("resnet-worker-3", "0/3 nodes are available: 3 Insufficient cpu.")
    await stage.until(phase="Running", worker_ready="3/4")
    listed = installed.kubectl("get", "pdj", "resnet", "-n", stage.namespace).stdout
    assert shape(listed) == shape(shown_by("howto/elastic.md", "$ kubectl get pdj resnet"))
    shown = await pdj("get", "resnet", "--cluster", "-n", stage.namespace)
    expected = shape(shown_by("howto/elastic.md", "$ pdj get resnet --cluster"))
    assert shape(shown.stdout)[: len(expected)] == expected
