"""Restarts in place: the program starts again in the pods that live; whatever that lacks, the job gets new pods."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from paddlejob.api.types import Phase, Role
from paddlejob.plan import Delete, Kind, Order, OrderAgents, PodPhase, Wake, plan, times
from paddlejob.plan.manifests.pod import PodSource
from paddlejob.plan.world import AgentReport, AgentState
from tests.support.agent_model import CHANNEL, COMMAND, AgentModel, in_place_job
from tests.support.builders import NOON, job, pod, running, template, world

SPEC = {"worker_": {"template": template(command=COMMAND)}, "restartStrategy": "InPlace"}


async def trained(**options: object) -> AgentModel:
    """A job that has trained for a minute."""
    model = AgentModel(in_place_job(**options))
    await model.settle()
    assert model.status.phase is Phase.RUNNING
    model.now += 60
    return model


def uids(model: AgentModel) -> dict[str, str]:
    return {name: pod.uid for name, pod in model.pods.items()}


async def test_a_program_that_fails_starts_again_in_the_pods_that_live():
    model = await trained()
    before, writes = uids(model), len(model.done)

    model.fail_program("mnist-worker-1")
    await model.settle()

    assert (model.status.phase, model.status.attempt, model.status.builtAttempt) == (Phase.RUNNING, 2, 1)
    assert uids(model) == before
    assert [model.agent(name).attempt for name in before] == [2, 2]
    assert not [one for one in model.done[writes:] if isinstance(one, Wake)]
    assert not [one for one in model.done[writes:] if isinstance(one, Delete) and one.kind is Kind.POD]
    assert model.environments.keys() == {2}


async def test_all_programs_end_before_any_starts_again():
    """The model itself refuses a start while an earlier attempt runs; here a program takes its time to end."""
    model = await trained(workers=3)
    model.agent("mnist-worker-2").obedient = False
    model.fail_program("mnist-worker-0")
    for _ in range(3):
        await model.step()
        model.now += 1
    assert (model.status.phase, model.status.attempt) == (Phase.RESTARTING, 2)
    assert model.agent("mnist-worker-1").state is AgentState.STOPPED

    model.agent("mnist-worker-2").obedient = True
    await model.settle()
    assert model.status.phase is Phase.RUNNING
    assert {model.agent(name).attempt for name in model.pods} == {2}


async def test_a_program_that_does_not_end_costs_seconds_and_then_the_pods():
    model = await trained()
    before = uids(model)
    model.agent("mnist-worker-0").obedient = False
    model.fail_program("mnist-worker-1")
    await model.settle()
    assert (model.status.phase, model.status.attempt, model.status.restarts) == (Phase.RUNNING, 2, 1)
    assert model.status.builtAttempt == 0
    assert not uids(model).items() & before.items()
    assert any("begins with new pods, because not all agents" in one.message for one in model.events)


@pytest.mark.parametrize(
    ("happens", "why"),
    [
        (lambda model: model.agent("mnist-worker-0").__setattr__("connected", False), "is not connected"),
        (lambda model: model.change("mnist-worker-0", disrupted=True, reason="Evicted"), "was evicted"),
        (lambda model: model.pods.pop("mnist-worker-0"), "was deleted by someone else"),
        (lambda model: model.end("mnist-worker-0", 0), "has ended or is about to"),
        (lambda model: model.operator.__setattr__("channel", None), "has no connection to agents"),
    ],
)
async def test_whatever_is_missing_the_job_gets_new_pods_and_says_why(happens, why: str):
    model = await trained()
    before = uids(model)
    happens(model)
    model.now += 20
    model.fail_program("mnist-worker-1")
    await model.settle()
    assert (model.status.phase, model.status.attempt, model.status.builtAttempt) == (Phase.RUNNING, 2, 0)
    assert not uids(model).items() & before.items()
    assert any(why in one.message for one in model.events)


async def test_after_two_attempts_in_place_without_progress_the_job_gets_new_pods():
    model = AgentModel(in_place_job(backoffLimit=10))
    model.nodes = {"mnist-worker-0": "node-0", "mnist-worker-1": "node-1"}
    await model.settle()
    model.now += 60
    built = []
    for _ in range(4):
        model.fail_program("mnist-worker-1")
        model.fail_program("mnist-worker-0")
        await model.settle()
        built.append(model.status.builtAttempt)
        model.now += 5
    assert built == [1, 1, 1, 0]


async def test_a_job_that_fails_for_good_releases_its_agents_and_keeps_the_exit_status():
    model = await trained(backoffLimit=0)
    model.fail_program("mnist-worker-1", 3)
    await model.settle()
    assert (model.status.phase, model.status.reason) == (Phase.FAILED, "BackoffLimitExceeded")
    assert (model.pods["mnist-worker-1"].phase, model.pods["mnist-worker-1"].exit_code) == (PodPhase.FAILED, 3)
    assert model.pods["mnist-worker-0"].stopping


async def test_a_suspended_and_a_changed_job_have_new_pods():
    model = await trained()
    model.fail_program("mnist-worker-1")
    await model.settle()
    model.edit(workers=3, **SPEC)
    await model.settle()
    assert (model.status.phase, model.status.builtAttempt, len(model.pods)) == (Phase.RUNNING, 0, 3)
    model.edit(workers=3, suspend=True, **SPEC)
    await model.settle()
    assert (model.status.phase, model.pods) == (Phase.SUSPENDED, {})


@pytest.mark.parametrize(
    ("mode", "pod"),
    [
        ({"ps": 1, "workers": 2}, "mnist-ps-0"),
        ({"ps": 1, "workers": 1, "heter": 1}, "mnist-heter-0"),
        ({"workers": 1}, "mnist-worker-0"),
    ],
)
async def test_all_modes_restart_in_place(mode: dict[str, int], pod: str):
    model = await trained(**mode)
    before = uids(model)
    model.fail_program(pod)
    await model.settle()
    assert (model.status.phase, model.status.attempt, uids(model)) == (Phase.RUNNING, 2, before)


async def test_workers_keep_their_ports_hosts_and_ranks():
    model = await trained(intranet="Host")
    before = model.environments[1]
    model.fail_program("mnist-worker-1")
    await model.settle()
    changed = {name for name, value in model.environments[2].items() if before[name] != value}
    assert changed == {"SYS_JOB_ID"}


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"containers": [{"name": "paddle", "image": "i"}]}, "has no command"),
        ({"containers": [{"name": "paddle", "image": "i", "command": ["/train"]}]}, "starts with /train"),
        (
            {"containers": [{"name": "paddle", "image": "i", "command": ["python"]}, {"name": "b", "image": "i"}]},
            "several containers",
        ),
        (
            {
                "containers": [
                    {"name": "paddle", "image": "i", "command": ["sh"], "lifecycle": {"preStop": {"sleep": {}}}}
                ]
            },
            "lifecycle hooks",
        ),
    ],
)
async def test_a_template_that_cannot_have_an_agent_restarts_with_new_pods_and_the_job_says_so(spec, why: str):
    model = AgentModel(job(restartStrategy="InPlace", worker_={"template": {"spec": spec}}))
    await model.settle()
    container = model.manifests["mnist-worker-0"]["spec"]["containers"][0]
    assert container.get("command") == spec["containers"][0].get("command")
    assert not model.agent_configs
    [condition] = [one for one in model.status.conditions if one.type == "RestartsInPlace"]
    assert (condition.status, why in condition.message) == ("False", True)
    assert [one.reason for one in model.events if why in one.message] == ["RestartsWithNewPods"]

    model.end("mnist-worker-1", 1)
    await model.settle()
    assert (model.status.phase, model.status.attempt, model.status.builtAttempt) == (Phase.RUNNING, 2, 0)


async def test_a_job_without_the_field_is_built_as_before():
    model = AgentModel(job(worker_={"template": SPEC["worker_"]["template"]}))
    await model.settle()
    made = model.manifests["mnist-worker-0"]["spec"]
    assert made["containers"][0]["command"] == ["python", "train.py"]
    assert "volumes" not in made
    assert not [one for one in model.status.conditions if one.type == "RestartsInPlace"]
    assert not model.agent_configs
    assert "builtAttempt" not in model.status.model_dump(exclude_defaults=True)


@pytest.mark.parametrize(
    ("command", "starts_with"),
    [
        (["python", "-u", "train.py"], ["python", "-IS", "/paddlejob/agent/agent.py", "--", "python", "-u"]),
        (["/opt/venv/bin/python3.10", "t.py"], ["/opt/venv/bin/python3.10", "-IS", "/paddlejob/agent/agent.py"]),
        (["/bin/bash", "-c", "cd /work && python train.py"], ["/bin/bash", "-c"]),
        (["paddleformers-cli", "train"], ["sh", "-c"]),
    ],
)
async def test_the_agent_starts_the_program(command: list[str], starts_with: list[str]):
    model = AgentModel(in_place_job(worker_={"template": template(command=command, args=["--lr", "1"])}))
    await model.settle()
    container = model.manifests["mnist-worker-0"]["spec"]["containers"][0]
    assert container["command"][: len(starts_with)] == starts_with
    assert container["command"][-len(command) :] == command
    assert container["args"] == ["--lr", "1"]


@pytest.mark.parametrize("interpreter", [True, False])
def test_an_image_without_a_suitable_python_still_starts_the_program(interpreter: bool, tmp_path: Path):
    """By the very command of a pod, with a PATH that has a Python or not."""
    made = in_place_job(worker_={"template": template(command=["sh", "-c", "echo trained $0 $1", "a b"], args=["c"])})
    container = PodSource(made, Role.WORKER, 0, 1, "", channel=CHANNEL)()["spec"]["containers"][0]
    agent = tmp_path / "agent.py"
    agent.write_text("import sys, os; print('agent', flush=True); os.execvp(sys.argv[2], sys.argv[2:])")
    for name in ("sh", *(["python3"] if interpreter else [])):
        (tmp_path / name).symlink_to(sys.executable if name == "python3" else "/bin/sh")
    command = [part.replace("/paddlejob/agent/agent.py", str(agent)) for part in container["command"]]
    done = subprocess.run(
        [*command, *container["args"]], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n") == [*(["agent"] if interpreter else []), "trained a b c", ""]


async def test_the_job_says_when_its_agents_do_not_connect():
    model = AgentModel(in_place_job())
    await model.settle()
    for name in model.pods:
        model.agent(name).connected = False
    model.now += 61
    await model.settle()
    [condition] = [one for one in model.status.conditions if one.type == "RestartsInPlace"]
    assert (condition.status, condition.reason) == ("False", "AgentsNotConnected")
    for name in model.pods:
        model.agent(name).connected = True
    await model.settle()
    model.now += 3
    await model.settle()
    assert [one.status for one in model.status.conditions if one.type == "RestartsInPlace"] == ["True"]


async def test_a_program_that_failed_restarts_although_the_job_no_longer_asks_for_it_in_place():
    """Its agent holds the pod as long as the operator answers, so nothing else would show the failure."""
    model = await trained()
    before = uids(model)
    model.edit(**{**SPEC, "restartStrategy": "Recreate"})
    model.fail_program("mnist-worker-1")
    await model.settle()
    assert (model.status.phase, model.status.attempt, model.status.builtAttempt) == (Phase.RUNNING, 2, 0)
    assert not uids(model).items() & before.items()


async def test_a_worker_that_had_finished_trains_again_with_the_others():
    model = await trained()
    model.end("mnist-worker-0", 0)
    await model.settle()
    model.pods.pop("mnist-worker-0")
    model.fail_program("mnist-worker-1")
    await model.settle()
    assert (model.status.phase, model.status.builtAttempt, len(model.pods)) == (Phase.RUNNING, 0, 2)


def test_programs_do_not_wait_for_a_time_that_a_clock_wrote_which_was_set_back():
    began = {
        "phase": "Restarting",
        "attempt": 2,
        "builtAttempt": 1,
        "publishedAttempt": 1,
        "startTime": times.format(NOON),
    }
    made = in_place_job(status={**began, "nextRestartTime": times.format(NOON + 86_400)})
    pods = [pod(made, "worker", index, attempt=1) for index in range(2)]
    ended = {one.uid: AgentReport(1, AgentState.STOPPED, 143) for one in pods}
    decided = plan(made, world(*pods, channel=CHANNEL, agents=ended), NOON)
    assert [one.order for one in decided.actions if isinstance(one, OrderAgents)] == [Order.START]


def test_on_one_machine_nothing_is_said_about_agents():
    made = running(in_place_job())
    pods = (pod(made, "worker", 0), pod(made, "worker", 1, PodPhase.FAILED, exit_code=1))
    decided = plan(made, world(*pods, one_machine=True), NOON)
    assert decided.status.attempt == 2
    assert "new pods" not in decided.status.message
    assert not [one for one in decided.status.conditions if one.type == "RestartsInPlace"]


def test_a_program_still_starts_although_another_has_finished_and_its_pod_is_gone():
    began = {"phase": "Starting", "attempt": 2, "builtAttempt": 1, "publishedAttempt": 2, "worker": {"finished": "0"}}
    made = in_place_job(status=began)
    waiting = pod(made, "worker", 1, attempt=1)
    stopped = {waiting.uid: AgentReport(1, AgentState.STOPPED, 143)}
    decided = plan(made, world(waiting, channel=CHANNEL, agents=stopped), NOON)
    [order] = [one for one in decided.actions if isinstance(one, OrderAgents)]
    assert (order.order, order.uids, order.attempt) == (Order.START, (waiting.uid,), 2)
