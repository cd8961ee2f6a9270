"""The environment of an attempt is deleted, or was never ours."""

from __future__ import annotations

from paddlejob.api.types import Phase
from paddlejob.engine.backend import Rejected
from paddlejob.plan import PodPhase, names
from tests.support.builders import job
from tests.support.model import Model


async def test_pods_that_start_with_a_foreign_environment_are_rebuilt():
    """Someone created a ConfigMap with the name that the attempt's environment will have."""
    model = Model(job(workers=2))
    foreign = names.environment(model.job, 1)
    model.rejects[foreign] = Rejected("NameTaken", f"ConfigMap {foreign} exists, without an owner")
    await model.step()
    model.tick()
    model.change("mnist-worker-0", phase=PodPhase.RUNNING)
    await model.step()
    assert (model.status.phase, model.status.attempt, model.status.publishedAttempt) == (Phase.RESTARTING, 2, 0)
    assert model.status.reason == "EnvironmentTaken"
    assert foreign in model.status.message and "delete" in model.status.message
    await model.settle()
    assert (model.status.phase, model.status.publishedAttempt) == (Phase.RUNNING, 2)
    assert (model.status.disruptions, model.status.restarts) == (1, 0)


async def test_workers_that_succeed_with_a_foreign_environment_have_not_succeeded():
    model = Model(job(workers=2))
    await model.step()
    model.tick()
    for index in range(2):
        model.change(f"mnist-worker-{index}", phase=PodPhase.SUCCEEDED, exit_code=0)
    await model.step()
    assert (model.status.phase, model.status.attempt) == (Phase.RESTARTING, 2)
    assert model.status.worker.finished == ""


async def test_a_job_whose_status_was_lost_continues_with_the_environment_that_it_has():
    model = Model(job(workers=2))
    await model.settle()
    before = dict(model.pods)
    model.job = model.job.model_copy(update={"status": job().status})
    await model.settle()
    assert (model.status.phase, model.status.attempt) == (Phase.RUNNING, 1)
    assert {name: pod.uid for name, pod in model.pods.items()} == {name: pod.uid for name, pod in before.items()}


async def test_an_environment_that_is_deleted_is_created_again_and_the_job_keeps_running():
    model = Model(job(workers=2))
    await model.settle()
    since = model.status.condition(Phase.RUNNING).lastTransitionTime
    model.now += 700
    model.environments.clear()
    seen = []
    for _ in range(3):
        await model.step()
        seen.append(model.status.phase)
        model.now += 10
    assert seen == [Phase.RUNNING] * 3
    assert list(model.environments) == [1]
    assert model.status.condition(Phase.RUNNING).lastTransitionTime == since, "the backoff is counted from here"
