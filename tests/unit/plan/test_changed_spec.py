"""What is a change of the spec that pods are rebuilt for, and what only looks like one."""

from __future__ import annotations

from typing import Any

from paddlejob.api.types import PaddleJob, Phase
from tests.support.builders import job, template
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


async def running(**options: Any) -> Model:
    model = Model(job(**options))
    await model.settle()
    assert model.status.phase is Phase.RUNNING
    return model


async def test_a_ttl_patched_after_a_crd_upgrade_does_not_restart_the_job():
    """The new CRD has a default that the old one had not; the operator first sees it with the patch."""
    model = await running()
    read_with(model, generations=1, worker={"template": NEW_DEFAULT}, ttlSecondsAfterFinished=60)
    await model.settle()
    assert (model.status.attempt, model.status.phase) == (1, Phase.RUNNING)


async def test_several_patches_after_a_crd_upgrade_that_the_operator_has_seen_do_not_restart_the_job():
    model = await running()
    read_with(model, generations=0, worker={"template": NEW_DEFAULT})
    await model.settle()
    read_with(model, generations=3, ttlSecondsAfterFinished=60, backoffLimit=9)
    await model.settle()
    assert (model.status.attempt, model.status.phase) == (1, Phase.RUNNING)


async def test_a_patch_that_an_older_operator_saw_before_the_upgrade_does_not_restart_the_job():
    model = await running()
    read_with(model, generations=1, ttlSecondsAfterFinished=60)
    await model.settle()
    old = model.job.status.model_copy(update={"templateDigest": ""})
    model.job = model.job.model_copy(update={"status": old})
    read_with(model, generations=0, worker={"template": NEW_DEFAULT})
    await model.settle()
    assert (model.status.attempt, model.status.phase) == (1, Phase.RUNNING)


async def test_a_template_changed_while_the_operator_was_down_restarts_the_job():
    """Suspended with the change in one patch, and resumed in a second one."""
    model = await running()
    read_with(model, generations=2, worker={"template": template(command=["new"])})
    await model.settle()
    assert (model.status.attempt, model.status.phase) == (2, Phase.RUNNING)


async def test_a_job_scaled_in_one_patch_restarts():
    model = await running(elastic=1)
    read_with(model, generations=1, worker={"replicas": 3, "template": NEW_DEFAULT})
    await model.settle()
    assert (model.status.attempt, model.status.worker.ready) == (2, "3/3")
