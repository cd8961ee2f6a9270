"""The end of an attempt on a cluster: its log is read to the end before it is judged and its pods are deleted."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from paddlejob.engine.reconcile import Reconciler
from paddlejob.kube.resource import PODS
from paddlejob.operator import last_reads
from paddlejob.operator.backend import KubeBackend
from paddlejob.operator.last_reads import LastReads
from tests.support.scripted_cluster import JOB, Object, Serve
from tests.support.waiting import until
from tests.unit.operator.test_log_reader import KEY, RUNNING, Stage, staged, status_of, stored

POD = "default/pods/mnist-worker-0"
FURTHER = {"step": 30, "highestStep": 30, "stepAtStart": 30, "countedSince": "2027-01-15T08:00:00Z"}


class Life:
    """A job of one worker with a reader of logs and the loop, whose turns a test lets pass."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.api = stage.api
        self._backend = KubeBackend(stage.client, stage.informers, stage.recorder, stage.reader)
        self._loop = Reconciler(self._backend)

    def end(self, code: int) -> None:
        state = {"terminated": {"exitCode": code}}
        phase = "Failed" if code else "Succeeded"
        status = {"phase": phase, "containerStatuses": [{"name": "paddle", "state": state}]}
        self.stage.informers.record_write(PODS, self.api.put(POD, {**self.api.objects[POD], "status": status}))

    async def until_judged(self, seconds: float = 30.0) -> Object:
        async with asyncio.timeout(seconds):
            while (status := self.api.objects[JOB]["status"])["phase"] in ("Starting", "Running"):
                await self._loop.step(KEY)
                await asyncio.sleep(0.05)
        return dict(status)


@contextlib.asynccontextmanager
async def living(serve: Serve, status: Object | None = None, **spec: Any) -> AsyncIterator[Life]:
    """Its log was read up to step 11; the next regular read is far away."""
    objects = stored(1, **spec)
    objects[0][1]["status"] = RUNNING | {"startTime": "2027-01-15T08:00:00Z"} | (status or {})
    async with staged(serve, *objects) as stage:
        stage.api.write("mnist-worker-0", "step: 11/15 loss: 0.5")
        await until(lambda: stage.reader.readings or stage.api.objects[JOB]["status"]["phase"] == "Starting")
        yield Life(stage)


async def test_a_completed_job_shows_its_last_step_and_loss(serve: Serve):
    async with living(serve) as life:
        life.api.write("mnist-worker-0", "step: 15/15 loss: 0.25")
        life.end(0)
        status = await life.until_judged()
        assert status["phase"] == "Completed"
        assert (status["progress"]["step"], status["progress"]["metrics"]) == (15, {"loss": 0.25})


async def test_an_attempt_that_came_further_in_its_last_seconds_does_not_exhaust_the_limit(serve: Serve):
    before = {"restarts": 3, "failuresWithoutProgress": 3, "progress": FURTHER}
    async with living(serve, before, backoffLimit=3) as life:
        life.api.write("mnist-worker-0", "step: 32/50 loss: 0.5")
        for number in range(100):
            life.api.write("mnist-worker-0", f"Traceback, line {number}")
        life.end(1)
        status = await life.until_judged()
        assert (status["phase"], status["progress"]["highestStep"]) == ("Restarting", 32)


async def test_the_last_line_is_found_however_long_those_before_it_are(serve: Serve):
    async with living(serve) as life:
        for _ in range(150):
            life.api.write("mnist-worker-0", "x" * 5000)
        life.api.write("mnist-worker-0", "step: 15/15 loss: 0.25")
        life.end(0)
        assert (await life.until_judged())["progress"]["step"] == 15


async def test_no_pod_is_deleted_before_its_log_was_read(serve: Serve):
    async with living(serve, cleanPodPolicy="Always") as life:
        read_then: list[int] = []
        delete = ("DELETE", "default/pods/mnist-worker-0")
        life.api.answers[delete] = lambda body: (read_then.append(len(life.api.asked_logs)), (200, {}))[1]
        read_before = len(life.api.asked_logs)
        life.end(0)
        await life.until_judged()
        assert read_then[0] > read_before


async def test_a_program_that_ends_before_the_job_is_said_to_run_is_read_too(serve: Serve):
    async with living(serve, {"phase": "Starting"}) as life:
        life.end(0)
        assert (await life.until_judged())["progress"]["step"] == 11


@pytest.mark.parametrize(
    "refuse",
    [lambda name: status_of(500, "InternalError"), lambda name: status_of(403, "Forbidden")],
    ids=["its node does not answer", "it is not permitted"],
)
async def test_a_log_that_cannot_be_read_does_not_hold_the_job_up(
    serve: Serve, refuse: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(last_reads, "TRIED_FOR", 0.5)
    async with living(serve) as life:
        life.api.refuse = refuse
        life.end(0)
        status = await life.until_judged(last_reads.LONGEST_WAIT / 2)
        assert (status["phase"], status["progress"]["step"]) == ("Completed", 11), "it is judged by what is known"


async def test_where_no_log_could_ever_be_read_the_verdict_does_not_wait_for_a_second_try(serve: Serve):
    async with living(serve, {"phase": "Starting"}) as life:
        life.api.refuse = lambda name: status_of(500, "InternalError")
        life.end(0)
        await life.until_judged()
        assert len(life.api.asked_logs) == 1


async def test_a_log_that_cannot_be_read_for_a_moment_is_read_in_the_end(serve: Serve):
    async with living(serve) as life:
        errors = [status_of(500, "InternalError")]
        life.api.refuse = lambda name: errors.pop() if errors else None
        life.api.write("mnist-worker-0", "step: 15/15 loss: 0.25")
        life.end(0)
        assert (await life.until_judged())["progress"]["step"] == 15


def test_the_end_of_an_attempt_waits_for_one_read_that_began_after_it_was_asked_for():
    clock = [100.0]
    reads = LastReads(lambda: clock[0])
    assert not reads.was_made("uid", 1) and not reads.is_asked_for("uid", 1)
    reads.ask("uid", 1)
    assert reads.is_asked_for("uid", 1)
    assert not reads.finish("uid", 1, 99.0), "it was under way already"
    assert not reads.finish("uid", 2, 100.0), "another attempt"
    assert reads.finish("uid", 1, 100.0)
    assert reads.was_made("uid", 1) and not reads.is_asked_for("uid", 1)
    assert not reads.was_made("uid", 2)
    clock[0] += last_reads.VALID_FOR
    assert not reads.was_made("uid", 1), "the attempt did not end then: it has printed more"


@pytest.mark.parametrize(("after", "over"), [(0.0, False), (2.9, False), (3.0, True)])
def test_a_last_read_that_fails_is_tried_again_for_three_seconds(after: float, over: bool):
    clock = [100.0]
    reads = LastReads(lambda: clock[0])
    reads.ask("uid", 1)
    clock[0] += after
    assert reads.finish("uid", 1, clock[0], again=True) is over
    assert reads.was_made("uid", 1) is over


def test_a_last_read_that_never_has_its_turn_is_given_up_after_ten_seconds():
    clock = [100.0]
    reads = LastReads(lambda: clock[0])
    reads.ask("uid", 1)
    clock[0] += 9.9
    reads.ask("uid", 1)
    assert not reads.was_made("uid", 1)
    clock[0] += 0.1
    assert reads.was_made("uid", 1)
