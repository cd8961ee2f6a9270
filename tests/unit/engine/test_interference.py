"""Something else deletes the pods of a job, keeps them from being deleted, or writes to its status: the job says so."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.api.types import PaddleJob, Phase
from paddlejob.engine.backend import Rejected
from paddlejob.plan import Action, Create, Delete, Kind
from tests.support.builders import job
from tests.support.model import Model


def creates(model: Model) -> int:
    return sum(isinstance(one, Create) and one.kind is Kind.POD for one in model.done)


async def test_pods_that_something_deletes_before_they_start_are_created_ever_more_slowly_and_the_job_says_why():
    model = Model(job(workers=4))
    begun = model.now
    while model.now < begun + 30:
        await model.step()
        model.pods.clear()
        model.now += 0.1
    assert creates(model) <= 4 * 6, "at once, again, and after 2, 4, 8 and 16 seconds"
    assert (model.status.reason, model.status.attempt) == ("PodDeleted", 1)
    assert "is deleted by something else before it starts, 4 times so far; find out what deletes it" in (
        model.status.message
    )
    assert [one.reason for one in model.events if one.warning] == ["PodDeleted"]
    await model.settle()
    assert (model.status.phase, model.status.reason) == (Phase.RUNNING, "Running")


async def test_a_pod_that_was_deleted_once_and_exists_again_delays_no_other():
    model = Model(job(workers=2))
    for name in ("mnist-worker-0", "mnist-worker-1"):
        await model.step()
        del model.pods[name]
    await model.step()
    assert sorted(model.pods) == ["mnist-worker-0", "mnist-worker-1"]
    assert model.events == []


class Guarded(Model):
    """An API server with a policy that denies the deletion of pods."""

    denies = True

    async def perform(self, job: PaddleJob, action: Action) -> None:
        if self.denies and isinstance(action, Delete) and action.kind is Kind.POD:
            self.done.append(action)
            raise Rejected("Forbidden", "pods of team-a must not be deleted")
        await super().perform(job, action)


async def test_a_policy_that_denies_the_deletion_of_pods_is_the_reason_why_a_job_does_not_restart():
    model = Guarded(job())
    await model.settle()
    model.end("mnist-worker-0", 1)
    before = len(model.done)
    for _ in range(100):
        await model.step()
        model.now += 0.1
    assert (model.status.phase, model.status.reason) == (Phase.RESTARTING, "AdmissionRejected")
    assert "rejected deleting mnist-worker-" in model.status.message
    assert model.status.message.endswith("pods of team-a must not be deleted")
    assert sum(isinstance(one, Delete) for one in model.done[before:]) < 12, "it is tried less and less often"
    model.denies = False
    await model.settle()
    assert (model.status.phase, model.status.attempt, model.status.restarts) == (Phase.RUNNING, 2, 1)


async def test_a_suspended_job_whose_pods_may_not_be_deleted_does_not_claim_to_have_none():
    model = Guarded(job())
    await model.settle()
    model.edit(suspend=True)
    for _ in range(3):
        await model.step()
    assert (model.status.phase, model.status.reason) == (Phase.SUSPENDED, "AdmissionRejected")
    model.denies = False
    await model.settle()
    assert (model.status.reason, len(model.pods)) == ("Suspended", 0)


async def test_a_finished_job_whose_pods_may_not_be_deleted_says_so_by_an_event():
    model = Guarded(job(workers=1))
    await model.settle()
    model.end("mnist-worker-0", 0)
    for _ in range(3):
        await model.step()
    assert (model.status.phase, model.status.reason) == (Phase.COMPLETED, "Completed")
    (event,) = [one for one in model.events if one.warning]
    assert "rejected deleting mnist-worker-0" in event.message
    assert event.message.endswith("pods of team-a must not be deleted")


@pytest.mark.parametrize(
    "status",
    [
        {"replacements": "worker-x:1"},
        {"replacements": "gpu-0:1"},
        {"startTime": "yesterday", "phase": "Pending"},
        {"nextRestartTime": "soon", "phase": "Restarting", "attempt": 2},
        {"worker": {"finished": "first"}},
        {"worker": {"finished": "0-99999999999"}},
    ],
)
async def test_a_status_that_cannot_be_read_is_an_event_once(status: dict[str, Any]):
    written = {"phase": "Running", "attempt": 1, "publishedAttempt": 1, **status}
    model = Model(job(status=written, activeDeadlineSeconds=60))
    for _ in range(3):
        with pytest.raises(ValueError, match=r"invalid|Invalid|is not a valid|names more than"):
            await model.step()
    (event,) = model.events
    assert (event.reason, event.warning) == ("UnreadableJob", True)
    assert event.message.startswith("the status of the job cannot be read, so nothing is done for it")
