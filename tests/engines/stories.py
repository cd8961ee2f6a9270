"""Stories of jobs that every engine must pass. A story uses its stage only: submit, watch, and make pods fail."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from paddlejob.plan import indexes

Object = dict[str, Any]


class Stage(Protocol):
    """An engine that runs a job, and control over its pods."""

    async def submit(self, **options: Any) -> None:
        """Create the job `story`, as the builders describe it."""

    async def until(self, **expected: Any) -> Object:
        """Wait until the status shows these fields; a role's count is written worker_running=2."""

    async def pods(self) -> dict[str, str]:
        """Pods that exist, and the uid of each."""

    async def exit(self, pod: str, code: int, message: str = "") -> None:
        """The program of a pod ends."""

    async def environment(self, pod: str) -> dict[str, str]:
        """What the pod's program sees."""

    async def change(self, **fields: Any) -> None:
        """Change fields of the spec."""

    async def room(self, pods: int) -> None:
        """From now on this many pods fit."""

    async def until_gone(self, *pods: str) -> None:
        """Wait until these pods no longer exist."""


Story = Callable[[Stage], Awaitable[None]]


async def a_parameter_server_job_completes_and_its_servers_are_removed(stage: Stage) -> None:
    await stage.submit(ps=2, workers=2)
    await stage.until(phase="Running", mode="PS", ps_ready="2/2", worker_ready="2/2")
    seen = await stage.environment("story-worker-1")
    assert seen["TRAINING_ROLE"] == "TRAINER"
    assert seen["PADDLE_TRAINER_ID"] == "1"
    assert len(seen["PADDLE_PSERVERS_IP_PORT_LIST"].split(",")) == 2
    await stage.exit("story-worker-0", 0)
    await stage.exit("story-worker-1", 0)
    await stage.until(phase="Completed", reason="Completed")
    await stage.until_gone("story-ps-0", "story-ps-1", "story-worker-0", "story-worker-1")


async def a_collective_job_completes(stage: Stage) -> None:
    await stage.submit(workers=2)
    await stage.until(phase="Running", mode="Collective")
    seen = [await stage.environment(f"story-worker-{index}") for index in range(2)]
    endpoints = seen[0]["PADDLE_TRAINER_ENDPOINTS"].split(",")
    assert len(set(endpoints)) == 2
    assert [one["PADDLE_CURRENT_ENDPOINT"] for one in seen] == endpoints
    assert [(one["RANK"], one["NNODES"], one["PYTHONUNBUFFERED"]) for one in seen] == [("0", "2", "1"), ("1", "2", "1")]
    assert {one["MASTER_ADDR"] for one in seen} == {seen[0]["POD_IP"]}
    assert {one["MASTER_PORT"] for one in seen}.isdisjoint(endpoint.rpartition(":")[2] for endpoint in endpoints)
    for index in range(2):
        await stage.exit(f"story-worker-{index}", 0)
    await stage.until(phase="Completed", worker_finished="0-1")


async def a_job_with_a_topology_has_its_ranks_in_order_if_its_nodes_are(stage: Stage) -> None:
    """All pods of the stage are on one node, or on none that is known."""
    await stage.submit(workers=3, schedulingPolicy={"topology": {"preferred": "topology.kubernetes.io/zone"}})
    await stage.until(phase="Running", worker_ready="3/3")
    seen = [await stage.environment(f"story-worker-{index}") for index in range(3)]
    assert [(one["PADDLE_TRAINER_ID"], one["RANK"]) for one in seen] == [("0", "0"), ("1", "1"), ("2", "2")]
    assert [one["PADDLE_CURRENT_ENDPOINT"] for one in seen] == seen[0]["PADDLE_TRAINER_ENDPOINTS"].split(",")
    for index in range(3):
        await stage.exit(f"story-worker-{index}", 0)
    await stage.until(phase="Completed", worker_finished="0-2")


async def a_single_job_completes(stage: Stage) -> None:
    await stage.submit(workers=1)
    await stage.until(phase="Running", mode="Single", worker_ready="1/1")
    await stage.exit("story-worker-0", 0)
    await stage.until(phase="Completed")


async def a_heter_job_gives_every_role_its_stage(stage: Stage) -> None:
    await stage.submit(ps=1, workers=1, heter=1)
    await stage.until(phase="Running", mode="Heter", heter_ready="1/1")
    heter = await stage.environment("story-heter-0")
    assert (heter["TRAINING_ROLE"], heter["STAGE_ID"]) == ("HETER_TRAINER", "2")
    worker = await stage.environment("story-worker-0")
    assert worker["PADDLE_NEXT_HETER_TRAINER_IP_PORT_LIST"] == heter["PADDLE_CURRENT_ENDPOINT"]
    await stage.exit("story-worker-0", 0)
    await stage.until(phase="Completed")


async def a_failed_worker_restarts_the_whole_job_once(stage: Stage) -> None:
    await stage.submit(ps=1, workers=2)
    await stage.until(phase="Running")
    before = await stage.pods()
    await stage.exit("story-worker-1", 3, message="ValueError: no such column")
    await stage.until(phase="Running", restarts=1, disruptions=0, attempt=2)
    after = await stage.pods()
    assert before.keys() == after.keys()
    assert not set(before.values()) & set(after.values()), "every pod is new"
    for index in range(2):
        await stage.exit(f"story-worker-{index}", 0)
    await stage.until(phase="Completed", restarts=1)


async def a_job_that_keeps_failing_fails_and_says_why(stage: Stage) -> None:
    await stage.submit(workers=1, backoffLimit=1)
    await stage.until(phase="Running")
    await stage.exit("story-worker-0", 7, message="first line\nValueError: no such column")
    await stage.until(phase="Running", restarts=1)
    await stage.exit("story-worker-0", 7, message="first line\nValueError: no such column")
    status = await stage.until(phase="Failed", reason="BackoffLimitExceeded")
    assert status["message"].startswith("ValueError: no such column (worker 0, exit status 7); ")


async def a_missing_module_fails_the_job_at_once_and_is_the_headline(stage: Stage) -> None:
    await stage.submit(workers=2)
    await stage.until(phase="Running")
    await stage.exit("story-worker-1", 1, message="Traceback\nModuleNotFoundError: No module named 'x'")
    status = await stage.until(phase="Failed", reason="ProgramFailed", attempt=1)
    assert status["message"].startswith("ModuleNotFoundError: No module named 'x' (worker 1, exit status 1); ")


async def the_same_error_twice_before_any_progress_fails_the_job(stage: Stage) -> None:
    await stage.submit(workers=1)
    await stage.until(phase="Running")
    await stage.exit("story-worker-0", 7, message="ValueError: no such column")
    await stage.until(phase="Running", restarts=1)
    await stage.exit("story-worker-0", 7, message="ValueError: no such column")
    status = await stage.until(phase="Failed", reason="ProgramFailed", restarts=1)
    assert "two attempts in a row ended so before any progress" in status["message"]


async def a_command_that_does_not_exist_fails_the_job_at_once(stage: Stage) -> None:
    await stage.submit(workers=2)
    await stage.until(phase="Running")
    await stage.exit("story-worker-1", 127, message="sh: 1: trian.py: not found")
    status = await stage.until(phase="Failed", reason="CommandNotFound", attempt=1)
    assert "story-worker-1 failed with exit status 127" in status["message"]
    assert "correct its command or image" in status["message"]


async def an_exit_status_that_the_failure_policy_names_fails_the_job_at_once(stage: Stage) -> None:
    rules = [
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [75]}},
        {"action": "Fail", "onExitCodes": {"role": "worker", "operator": "In", "values": [42]}},
    ]
    await stage.submit(workers=2, backoffLimit=0, failurePolicy={"rules": rules})
    await stage.until(phase="Running")
    await stage.exit("story-worker-0", 75)
    await stage.until(phase="Running", ignoredFailures=1, restarts=0, attempt=2)
    await stage.exit("story-worker-1", 42, message="no such column")
    status = await stage.until(phase="Failed", reason="FailurePolicy", restarts=0, attempt=2)
    assert "story-worker-1 failed with exit status 42" in status["message"]
    assert "failurePolicy.rules[1] ends the job" in status["message"]


async def a_server_that_exits_restarts_the_job(stage: Stage) -> None:
    await stage.submit(ps=1, workers=1)
    await stage.until(phase="Running")
    await stage.exit("story-ps-0", 0)
    await stage.until(phase="Running", restarts=1)


async def suspending_removes_the_pods_and_resuming_starts_them_again(stage: Stage) -> None:
    await stage.submit(workers=2)
    await stage.until(phase="Running")
    await stage.change(suspend=True)
    await stage.until(phase="Suspended")
    await stage.until_gone("story-worker-0", "story-worker-1")
    await stage.change(suspend=False)
    await stage.until(phase="Running", worker_ready="2/2", restarts=0, disruptions=0)


async def an_elastic_job_is_scaled_while_it_runs(stage: Stage) -> None:
    await stage.submit(workers=2, elastic=1)
    await stage.until(phase="Running", worker_ready="2/2")
    await stage.change(workers=3)
    await stage.until(phase="Running", worker_ready="3/3", restarts=0, disruptions=0)
    seen = await stage.environment("story-worker-2")
    assert seen["PADDLE_TRAINERS_NUM"] == "3"


ELASTIC: Object = {
    "elastic": 1,
    "worker_": {"requests": 2, "limits": 4},
    "scheduleTimeoutSeconds": 1,
    "growthIntervalSeconds": 1,
}


async def ranks(stage: Stage, status: Object) -> list[tuple[str, str]]:
    """Rank and size, as each worker of the attempt sees them."""
    names = [f"story-worker-{index}" for index in sorted(indexes.parse(status["worker"]["members"]))]
    seen = [await stage.environment(name) for name in names]
    assert [one["PADDLE_CURRENT_ENDPOINT"] for one in seen] == seen[0]["PADDLE_TRAINER_ENDPOINTS"].split(",")
    assert all(one["RANK"] == one["POD_INDEX"] == one["PADDLE_TRAINER_ID"] for one in seen)
    assert all(one["NNODES"] == one["PADDLE_TRAINERS_NUM"] for one in seen)
    return [(one["PADDLE_TRAINER_ID"], one["PADDLE_TRAINERS_NUM"]) for one in seen]


async def an_elastic_job_starts_with_the_workers_that_fit_and_grows_when_there_is_room(stage: Stage) -> None:
    await stage.room(3)
    await stage.submit(workers=4, **ELASTIC)
    status = await stage.until(phase="Running", worker_ready="3/4", worker_replicas=3, attempt=1)
    assert await ranks(stage, status) == [("0", "3"), ("1", "3"), ("2", "3")]
    await stage.room(4)
    status = await stage.until(phase="Running", worker_ready="4/4", restarts=0, disruptions=0)
    assert await ranks(stage, status) == [("0", "4"), ("1", "4"), ("2", "4"), ("3", "4")]
    for index in range(4):
        await stage.exit(f"story-worker-{index}", 0)
    await stage.until(phase="Completed")


async def an_elastic_job_trains_on_until_there_is_room_for_the_workers_it_was_scaled_to(stage: Stage) -> None:
    await stage.room(2)
    await stage.submit(workers=2, **ELASTIC)
    await stage.until(phase="Running", worker_ready="2/2")
    before = await stage.pods()
    await stage.change(workers=3)
    await stage.until(phase="Running", worker_ready="2/3", attempt=1)
    assert before.items() <= (await stage.pods()).items()
    await stage.room(4)
    status = await stage.until(phase="Running", worker_ready="3/3", restarts=0, disruptions=0)
    assert await ranks(stage, status) == [("0", "3"), ("1", "3"), ("2", "3")]
    await stage.change(workers=2)
    status = await stage.until(phase="Running", worker_ready="2/2", restarts=0, disruptions=0)
    assert await ranks(stage, status) == [("0", "2"), ("1", "2")]


async def a_failure_of_an_elastic_job_that_is_smaller_than_it_asks_for_restarts_it_at_that_size(stage: Stage) -> None:
    await stage.room(3)
    await stage.submit(workers=4, **ELASTIC | {"growthIntervalSeconds": 600})
    await stage.until(phase="Running", worker_ready="3/4")
    await stage.exit("story-worker-1", 1)
    status = await stage.until(phase="Running", worker_ready="3/4", restarts=1)
    assert await ranks(stage, status) == [("0", "3"), ("1", "3"), ("2", "3")]


async def scaling_down_to_a_worker_that_is_done_is_no_success_while_others_train(stage: Stage) -> None:
    await stage.submit(workers=3, elastic=1)
    await stage.until(phase="Running", worker_ready="3/3")
    await stage.exit("story-worker-0", 0)
    await stage.until(phase="Running", worker_finished="0")
    await stage.change(workers=1)
    await stage.until(phase="Running", attempt=2, worker_ready="1/1", restarts=0, disruptions=0)
    await stage.exit("story-worker-0", 0)
    await stage.until(phase="Completed", worker_finished="0")


async def a_live_worker_that_fails_is_replaced_alone(stage: Stage) -> None:
    await stage.submit(ps=1, workers=3, elastic=1, withGloo=0)
    await stage.until(phase="Running", worker_ready="3/3")
    before = await stage.pods()
    await stage.exit("story-worker-2", 3, message="ValueError: no such column")
    await stage.until(restarts=1, replacements="worker-2:1", worker_ready="3/3")
    await stage.until(phase="Running", reason="Running", attempt=1, disruptions=0)
    after = await stage.pods()
    assert {name for name in before if before[name] != after[name]} == {"story-worker-2"}
    seen = await stage.environment("story-worker-2")
    assert (seen["PADDLE_TRAINER_ID"], seen["PADDLEJOB_JOINS"]) == ("2", "1")
    assert seen["PADDLE_TRAINER_ENDPOINTS"].split(",")[2] == seen["PADDLE_CURRENT_ENDPOINT"]
    assert (
        seen["PADDLE_PSERVERS_IP_PORT_LIST"]
        == (await stage.environment("story-worker-1"))["PADDLE_PSERVERS_IP_PORT_LIST"]
    )
    for index in range(3):
        await stage.exit(f"story-worker-{index}", 0)
    await stage.until(phase="Completed", attempt=1)


async def a_dead_server_rebuilds_a_job_with_live_workers(stage: Stage) -> None:
    await stage.submit(ps=1, workers=2, elastic=1, withGloo=0)
    await stage.until(phase="Running")
    before = await stage.pods()
    await stage.exit("story-ps-0", 1)
    await stage.until(phase="Running", restarts=1, attempt=2, worker_ready="2/2")
    assert not set(before.values()) & set((await stage.pods()).values()), "every pod is new"


async def live_workers_are_added_and_removed_while_the_others_train(stage: Stage) -> None:
    await stage.submit(ps=1, workers=2, elastic=1, withGloo=0)
    await stage.until(phase="Running", worker_ready="2/2")
    before = await stage.pods()
    await stage.change(workers=3)
    await stage.until(phase="Running", worker_ready="3/3", attempt=1, restarts=0, disruptions=0)
    assert before.items() <= (await stage.pods()).items()
    seen = await stage.environment("story-worker-2")
    assert seen["PADDLE_TRAINERS_NUM"] == "3"
    await stage.change(workers=1)
    await stage.until_gone("story-worker-1", "story-worker-2")
    await stage.until(phase="Running", worker_ready="1/1", attempt=1, restarts=0, disruptions=0)
    after = await stage.pods()
    assert {name: before[name] for name in after} == after
    await stage.exit("story-worker-0", 0)
    await stage.until(phase="Completed", attempt=1)


async def a_job_past_its_deadline_fails_and_nothing_of_it_runs(stage: Stage) -> None:
    await stage.submit(workers=1, activeDeadlineSeconds=4)
    await stage.until(phase="Running")
    await stage.until(phase="Failed", reason="DeadlineExceeded", worker_running=0)


async def pods_stay_where_the_policy_is_never(stage: Stage) -> None:
    await stage.submit(workers=1, cleanPodPolicy="Never")
    await stage.until(phase="Running")
    await stage.exit("story-worker-0", 0)
    await stage.until(phase="Completed")
    assert "story-worker-0" in await stage.pods()


async def pods_of_a_failed_job_go_where_the_policy_is_on_failure(stage: Stage) -> None:
    await stage.submit(workers=2, cleanPodPolicy="OnFailure", backoffLimit=0)
    await stage.until(phase="Running")
    await stage.exit("story-worker-0", 1)
    await stage.until(phase="Failed")
    await stage.until_gone("story-worker-0", "story-worker-1")


async def by_service_pods_have_names(stage: Stage) -> None:
    await stage.submit(workers=2, intranet="Service")
    await stage.until(phase="Running")
    seen = await stage.environment("story-worker-1")
    assert re.fullmatch(r"worker-1-.{5}-1\.story-peers\..+\.svc", seen["POD_IP"])


async def on_the_host_network_pods_have_port_blocks_of_their_own(stage: Stage) -> None:
    await stage.submit(ps=1, workers=2, intranet="Host")
    await stage.until(phase="Running")
    ports = {(await stage.environment(pod))["PADDLE_PORT"] for pod in await stage.pods()}
    assert len(ports) == 3
    assert all(20000 <= int(port) <= 29999 for port in ports)


STORIES: tuple[Story, ...] = (
    a_parameter_server_job_completes_and_its_servers_are_removed,
    a_collective_job_completes,
    a_job_with_a_topology_has_its_ranks_in_order_if_its_nodes_are,
    a_single_job_completes,
    a_heter_job_gives_every_role_its_stage,
    a_failed_worker_restarts_the_whole_job_once,
    a_job_that_keeps_failing_fails_and_says_why,
    a_missing_module_fails_the_job_at_once_and_is_the_headline,
    the_same_error_twice_before_any_progress_fails_the_job,
    a_command_that_does_not_exist_fails_the_job_at_once,
    a_server_that_exits_restarts_the_job,
    suspending_removes_the_pods_and_resuming_starts_them_again,
    an_elastic_job_is_scaled_while_it_runs,
    an_elastic_job_starts_with_the_workers_that_fit_and_grows_when_there_is_room,
    an_elastic_job_trains_on_until_there_is_room_for_the_workers_it_was_scaled_to,
    a_failure_of_an_elastic_job_that_is_smaller_than_it_asks_for_restarts_it_at_that_size,
    scaling_down_to_a_worker_that_is_done_is_no_success_while_others_train,
    a_live_worker_that_fails_is_replaced_alone,
    a_dead_server_rebuilds_a_job_with_live_workers,
    live_workers_are_added_and_removed_while_the_others_train,
    a_job_past_its_deadline_fails_and_nothing_of_it_runs,
    pods_stay_where_the_policy_is_never,
    pods_of_a_failed_job_go_where_the_policy_is_on_failure,
    by_service_pods_have_names,
    on_the_host_network_pods_have_port_blocks_of_their_own,
)
