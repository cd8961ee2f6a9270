"""`pdj rerun` on a cluster: the job is deleted and created again, with its code."""

from __future__ import annotations

import asyncio

from testbed.controlplane import ControlPlane
from tests.apiserver.test_code import code_maps, pdj, submit
from tests.support.cluster_pdj import ClusterPdj
from tests.support.on_cluster import eventually
from tests.support.operator_stage import OperatorStage

__all__ = ["pdj"]


async def test_a_job_that_ended_runs_again_with_the_code_that_was_submitted(
    pdj: ClusterPdj, stage: OperatorStage, installed: ControlPlane, namespace: str
):
    flags = ("--cluster", "-n", namespace)
    await submit(pdj, namespace, "story")
    await stage.until(phase="Running")
    early = await pdj("rerun", "story", *flags)
    assert early.returncode == 2 and "has not ended (Running)" in early.stderr
    uid = uid_of(installed, namespace)
    await stage.exit("story-worker-0", 0)
    await stage.until(phase="Completed")
    (code,) = code_maps(installed, namespace)
    done = await pdj("rerun", "story", *flags)
    assert done.returncode == 0, done.stderr
    assert uid_of(installed, namespace) != uid
    await stage.until(phase="Running")
    await asyncio.to_thread(
        eventually, "the code is kept", lambda: code_maps(installed, namespace) == {code: ["story"]}
    )
    await stage.exit("story-worker-0", 0)
    await stage.until(phase="Completed")


def uid_of(plane: ControlPlane, namespace: str) -> str:
    return plane.kubectl("-n", namespace, "get", "paddlejob", "story", "-o", "jsonpath={.metadata.uid}").stdout
