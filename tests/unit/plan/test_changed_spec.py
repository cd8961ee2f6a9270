"""What is a change of the spec that pods are rebuilt for, and what only looks like one."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.api.types import PaddleJob, Phase, Role
from paddlejob.plan import plan
from tests.support import builders
from tests.support.builders import NOON, all_pods, job, template, world
from tests.support.model import Model

NEW_DEFAULT = template(imagePullPolicy="IfNotPresent")


def read_with(model: Model, *, generations: int, worker: dict[str, Any] | None = None, **spec: Any) -> None:
    """The job as the API server hands it out later: `generations` patches on, with other values in its spec."""
    assert model.job is not None
    document = model.job.model_dump(mode="json")
    document["metadata"]["generation"] += generations
    document["spec"]["worker"] |= worker or {}
    document["spec"] |= spec
    model.job = PaddleJob.model_validate(document)


async def training(**options: Any) -> Model:
    model = Model(job(**options))
    await model.settle()
    assert model.status.phase is Phase.RUNNING
    return model


async def test_a_ttl_patched_after_a_crd_upgrade_does_not_restart_the_job():
    """The new CRD has a default that the old one had not; the operator first sees it with the patch."""
    model = await training()
    read_with(model, generations=1, worker={"template": NEW_DEFAULT}, ttlSecondsAfterFinished=60)
    await model.settle()
    assert (model.status.attempt, model.status.phase) == (1, Phase.RUNNING)


async def test_several_patches_after_a_crd_upgrade_that_the_operator_has_seen_do_not_restart_the_job():
    model = await training()
    read_with(model, generations=0, worker={"template": NEW_DEFAULT})
    await model.settle()
    read_with(model, generations=3, ttlSecondsAfterFinished=60, backoffLimit=9)
    await model.settle()
    assert (model.status.attempt, model.status.phase) == (1, Phase.RUNNING)


async def test_a_template_changed_while_the_operator_was_down_restarts_the_job():
    """Suspended with the change in one patch, and resumed in a second one."""
    model = await training()
    read_with(model, generations=2, worker={"template": template(command=["new"])})
    await model.settle()
    assert (model.status.attempt, model.status.phase) == (2, Phase.RUNNING)


async def test_a_job_scaled_in_one_patch_restarts():
    model = await training(elastic=1)
    read_with(model, generations=1, worker={"replicas": 3, "template": NEW_DEFAULT})
    await model.settle()
    assert (model.status.attempt, model.status.worker.ready) == (2, "3/3")


@pytest.mark.parametrize(("seen", "rebuilt"), [(0, True), (1, False)])
def test_pods_of_another_spec_are_rebuilt_if_it_is_not_known_which_generation_was_seen_last(seen: int, rebuilt: bool):
    made = builders.running(job())
    known = {"observedGeneration": seen, "worker": made.status.role(Role.WORKER).model_copy(update={"replicas": 2})}
    made = made.model_copy(update={"status": made.status.model_copy(update=known)})
    decided = plan(made, world(*all_pods(made, build="of-an-older-spec/7"), environments={1: "uid"}), NOON)
    assert (decided.status.reason == "SpecChanged") is rebuilt
