"""Rules of spec.failurePolicy: exit statuses and reasons that fail the job at once, or are not counted."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.api.types import Phase, Status
from paddlejob.plan import PodPhase, plan
from paddlejob.plan.world import LogReading
from tests.support.builders import NOON, all_pods, job, pod, running, world
from tests.support.model import Model


def exits(action: str, *values: int, operator: str = "In", **more: Any) -> dict[str, Any]:
    return {"action": action, "onExitCodes": {"operator": operator, "values": list(values), **more}}


def reasons(action: str, *found: str) -> dict[str, Any]:
    return {"action": action, "onReasons": list(found)}


async def trains(*rules: dict[str, Any], **options: Any) -> Model:
    model = Model(job(failurePolicy={"rules": list(rules)}, **options))
    await model.settle()
    assert model.status.phase is Phase.RUNNING, model.status
    return model


async def after_exit(code: int, *rules: dict[str, Any], name: str = "mnist-worker-1", **options: Any) -> Status:
    model = await trains(*rules, **options)
    model.end(name, code, message="some output")
    await model.settle()
    return model.status


def counts(status: Status) -> tuple[int, int, int]:
    return status.restarts, status.ignoredFailures, status.disruptions


async def test_an_exit_status_that_means_bad_data_fails_the_job_at_once_and_names_the_rule():
    status = await after_exit(42, exits("Fail", 42))
    assert (status.phase, status.reason, status.attempt) == (Phase.FAILED, "FailurePolicy", 1)
    assert status.headline == (
        "mnist-worker-1 failed with exit status 42; see its log; failurePolicy.rules[0] ends the job instead of "
        "restarting it"
    )
    assert status.message.endswith("\nsome output")


async def test_another_exit_status_is_counted_as_without_a_policy():
    status = await after_exit(1, exits("Fail", 42))
    assert (status.phase, counts(status)) == (Phase.RUNNING, (1, 0, 0))


async def test_an_ignored_failure_restarts_the_job_and_never_exhausts_the_limit():
    model = await trains(exits("Ignore", 75), backoffLimit=0)
    for _ in range(5):
        model.end("mnist-worker-0", 75)
        await model.settle()
    assert (model.status.phase, counts(model.status), model.status.attempt) == (Phase.RUNNING, (0, 5, 0), 6)
    event = next(one for one in model.events if one.reason == "ProgramFailed")
    assert "failurePolicy.rules[0] ignores it (ignored failure 1, not counted)" in event.message


async def test_an_ignored_failure_does_not_blame_its_node():
    model = await trains(exits("Ignore", 75))
    for _ in range(3):
        model.end("mnist-worker-0", 75)
        await model.settle()
    assert (model.status.suspectNodes, model.status.avoidedNodes) == ((), ())


async def test_the_first_rule_that_applies_decides():
    both = (exits("Ignore", 7), exits("Fail", 7))
    assert (await after_exit(7, *both)).phase is Phase.RUNNING
    assert (await after_exit(7, *reversed(both))).phase is Phase.FAILED


async def test_a_rule_for_one_role_leaves_the_others_alone():
    servers = exits("Fail", 3, role="ps")
    assert (await after_exit(3, servers, ps=1)).phase is Phase.RUNNING
    assert (await after_exit(3, servers, ps=1, name="mnist-ps-0")).phase is Phase.FAILED


@pytest.mark.parametrize(("code", "phase"), [(1, Phase.FAILED), (75, Phase.RUNNING)])
async def test_not_in_applies_to_every_other_exit_status(code: int, phase: Phase):
    assert (await after_exit(code, exits("Fail", 75, 76, operator="NotIn"))).phase is phase


def test_peers_that_failed_with_it_do_not_make_not_in_apply():
    made = running(job(failurePolicy={"rules": [exits("Fail", 75, operator="NotIn")]}))
    pods = (
        pod(made, "worker", 0, PodPhase.FAILED, exit_code=250),
        pod(made, "worker", 1, PodPhase.FAILED, exit_code=75),
    )
    assert plan(made, world(*pods), NOON).status.phase is Phase.RESTARTING


@pytest.mark.parametrize("action", ["Fail", "Ignore"])
def test_the_message_names_the_pod_whose_exit_status_the_rule_is_about(action: str):
    made = running(job(failurePolicy={"rules": [exits(action, 42)]}))
    pods = (
        pod(made, "worker", 0, PodPhase.FAILED, exit_code=1, message="connection reset by peer"),
        pod(made, "worker", 1, PodPhase.FAILED, exit_code=42),
    )
    status = plan(made, world(*pods), NOON).status
    assert status.message.startswith("mnist-worker-1 failed with exit status 42; see its log; ")


async def test_running_out_of_memory_can_fail_the_job_at_once():
    model = await trains(reasons("Fail", "UsageExceeded", "OutOfMemory"))
    model.end("mnist-worker-1", 137, reason="OOMKilled")
    await model.settle()
    assert (model.status.phase, model.status.reason) == (Phase.FAILED, "FailurePolicy")
    assert "ran out of memory" in model.status.message


async def test_a_command_that_does_not_exist_yet_can_be_restarted():
    missing = {"message": "sh: 1: /mnt/train.py: not found"}
    model = await trains(exits("Restart", 127))
    model.end("mnist-worker-1", 127, **missing)
    await model.settle()
    assert (model.status.phase, counts(model.status)) == (Phase.RUNNING, (1, 0, 0))


@pytest.mark.parametrize(
    ("action", "phase", "counted"),
    [("Fail", Phase.FAILED, (0, 0, 0)), ("Restart", Phase.RUNNING, (1, 0, 0)), ("Ignore", Phase.RUNNING, (0, 0, 1))],
)
async def test_an_eviction_can_be_counted_or_fail_the_job(action: str, phase: Phase, counted: tuple[int, int, int]):
    model = await trains(reasons(action, "Evicted"))
    model.change("mnist-worker-1", phase=PodPhase.FAILED, disrupted=True, reason="Evicted", exit_code=143)
    await model.settle()
    assert (model.status.phase, counts(model.status)) == (phase, counted)


async def test_the_exit_status_of_an_evicted_program_is_not_its_own():
    model = await trains(exits("Fail", 143))
    model.change("mnist-worker-1", phase=PodPhase.FAILED, disrupted=True, reason="Evicted", exit_code=143)
    await model.settle()
    assert (model.status.phase, counts(model.status)) == (Phase.RUNNING, (0, 0, 1))


def test_a_job_that_hangs_can_fail_at_once():
    made = running(job(stallSeconds=60, failurePolicy={"rules": [reasons("Fail", "Stalled")]}))
    silent = world(*all_pods(made), environments={1: "uid"}, logs=LogReading(attempt=1, silent_seconds=61))
    status = plan(made, silent, NOON).status
    assert (status.phase, status.reason) == (Phase.FAILED, "FailurePolicy")


INIT_FAILED = {"phase": PodPhase.FAILED, "init_failed": True, "exit_code": 42, "message": "bad checksum"}


async def after_init_exit(*rules: dict[str, Any]) -> Status:
    model = Model(job(failurePolicy={"rules": list(rules)}))
    await model.settle_until_created()
    model.tick()
    model.change("mnist-worker-1", node="node-1", **INIT_FAILED)
    await model.step()
    return model.status


async def test_an_init_container_that_finds_bad_data_fails_the_job_at_once_too():
    status = await after_init_exit(exits("Fail", 42))
    assert (status.phase, status.reason, status.replacements) == (Phase.FAILED, "FailurePolicy", "")
    assert status.headline == (
        "an init container of mnist-worker-1 failed with exit status 42; see its log; failurePolicy.rules[0] ends the "
        "job instead of restarting it"
    )
    assert status.message.endswith("\nbad checksum")


@pytest.mark.parametrize(
    "rule", [exits("Ignore", 42), exits("Restart", 42), exits("Fail", 7), reasons("Fail", "ProgramFailed")]
)
async def test_an_init_container_is_tried_again_alone_unless_a_rule_on_its_status_ends_the_job(rule: dict[str, Any]):
    status = await after_init_exit(rule)
    assert (status.reason, status.replacements) == ("InitContainerFailed", "worker-1:1")


LIVE = {"ps": 1, "workers": 3, "elastic": 1, "withGloo": 0}


async def live(*rules: dict[str, Any], **options: Any) -> Model:
    model = await trains(*rules, **LIVE, **options)
    model.logs = LogReading(attempt=1, step=10)
    return model
