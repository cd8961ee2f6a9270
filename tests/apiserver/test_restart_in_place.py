"""Restarts in place on a real API server: the real channel, with stub agents that have real tokens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from paddlejob.kube.client import Client
from paddlejob.kube.resource import CONFIGMAPS, PODS
from testbed.controlplane import ControlPlane
from tests.support import expecting
from tests.support.builders import template
from tests.support.operator_process import OperatorProcess
from tests.support.operator_stage import OperatorStage
from tests.support.stub_agent import StubAgent, token_of

Object = dict[str, Any]
IN_PLACE = {"restartStrategy": "InPlace", "worker_": {"template": template(command=["python", "train.py"])}}


def _variable(pod: Object, name: str) -> str:
    return next(one["value"] for one in pod["spec"]["containers"][0]["env"] if one["name"] == name)


async def _agent_of(client: Client, plane: ControlPlane, namespace: str, name: str) -> StubAgent:
    """With what the pod has: the address, and what its volume is made from."""
    pod = await client.get(PODS, name, namespace)
    volume = next(one for one in pod["spec"]["volumes"] if one["name"] == "paddlejob-agent")
    token, config = volume["projected"]["sources"]
    found = await client.get(CONFIGMAPS, config["configMap"]["name"], namespace)
    assert {"agent.py", "ca.crt"} <= found["data"].keys()
    made = token_of(plane, namespace, pod, token["serviceAccountToken"]["audience"])
    return StubAgent(_variable(pod, "PADDLEJOB_AGENT_URL"), made, found["data"]["ca.crt"])


@asynccontextmanager
async def agents(client: Client, plane: ControlPlane, stage: OperatorStage) -> AsyncIterator[dict[str, StubAgent]]:
    async with AsyncExitStack() as stack:
        made = {name: await _agent_of(client, plane, stage.namespace, name) for name in await stage.pods()}
        for agent in made.values():
            await stack.enter_async_context(agent)
        yield made


async def connected(stage: OperatorStage) -> None:
    await stage.until(phase="Running")

    async def condition() -> Object:
        found = [one for one in (await stage.status()).get("conditions", []) if one["type"] == "RestartsInPlace"]
        return {"status": found[0]["status"] if found else ""}

    await expecting.until(condition, {"status": "True"})


async def test_a_program_that_fails_starts_again_in_its_pods(
    stage: OperatorStage, admin: Client, installed: ControlPlane
):
    await stage.submit(workers=2, **IN_PLACE)
    await stage.until(phase="Running")
    before = await stage.pods()

    async with agents(admin, installed, stage) as made:
        await connected(stage)
        made["story-worker-1"].fail()
        status = await stage.until(phase="Running", attempt=2, restarts=1)

        assert await stage.pods() == before
        assert status["builtAttempt"] == 1
        assert [one["order"] for one in made["story-worker-0"].orders] == ["stop", "start"]
        assert [one["order"] for one in made["story-worker-1"].orders] == ["start"]
        assert made["story-worker-0"].orders[1]["environment"]["SYS_JOB_ID"].endswith("-2")


async def test_only_the_token_of_a_replica_for_this_audience_is_accepted(
    stage: OperatorStage, admin: Client, installed: ControlPlane
):
    await stage.submit(workers=1, **IN_PLACE)
    await stage.until(phase="Running")
    agent = await _agent_of(admin, installed, stage.namespace, "story-worker-0")
    replica = await admin.get(PODS, "story-worker-0", stage.namespace)
    stranger = {"metadata": {"name": "stranger"}, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}
    stranger = await admin.create(PODS, {"apiVersion": "v1", "kind": "Pod", **_in(stage.namespace, stranger)})
    elsewhere = f"{stage.namespace}-other"
    installed.create_namespace(elsewhere)
    namesake = {"metadata": {"name": "story-worker-0"}, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}
    namesake = await admin.create(PODS, {"apiVersion": "v1", "kind": "Pod", **_in(elsewhere, namesake)})
    own = token_of(installed, stage.namespace, replica)
    header, body, _ = own.split(".")
    forged = f"{header}.{body}.{'A' * 342}"
    of_another_pod = token_of(installed, stage.namespace, stranger)

    attempts = {
        "a pod that is no replica": of_another_pod,
        "a pod of the same name in another namespace": token_of(installed, elsewhere, namesake),
        "another audience": token_of(installed, stage.namespace, replica, "https://kubernetes.default.svc"),
        "a signature of somebody else": forged,
        "no token at all": "nonsense",
    }
    codes = {what: (await agent.post(token=token))[0] for what, token in attempts.items()}

    assert codes == {
        "a pod that is no replica": 404,
        "a pod of the same name in another namespace": 404,
        "another audience": 401,
        "a signature of somebody else": 401,
        "no token at all": 401,
    }
    code, text = await agent.post({**agent.report, "version": 0})
    assert (code, "version 0" in text) == (400, True)

    installed.kubectl("delete", "pdj", stage.name, "-n", stage.namespace)
    await stage.until_gone("story-worker-0")
    assert (await agent.post())[0] == 404, "a request is replayed after the pod is gone"


def _in(namespace: str, obj: Object) -> Object:
    return obj | {"metadata": {**obj["metadata"], "namespace": namespace}}


async def test_a_new_operator_goes_on_where_the_last_one_was_killed(
    stage: OperatorStage, operator: OperatorProcess, admin: Client, installed: ControlPlane
):
    await stage.submit(workers=2, **IN_PLACE)
    await stage.until(phase="Running")
    before = await stage.pods()

    async with agents(admin, installed, stage) as made:
        await connected(stage)
        made["story-worker-0"].fail()
        operator.kill()
        operator.start()
        await stage.until(phase="Running", attempt=2, restarts=1)
        assert await stage.pods() == before
        assert {one.attempt for one in made.values()} == {2}


async def test_without_agents_the_job_restarts_with_new_pods_and_says_why(stage: OperatorStage):
    await stage.submit(workers=1, **IN_PLACE)
    await stage.until(phase="Running")
    before = await stage.pods()
    await stage.exit("story-worker-0", 1)
    status = await stage.until(attempt=2, restarts=1)
    message = status["pastAttempts"][0]["message"]
    assert "with new pods, because pod story-worker-0 has ended" in message
    await stage.until(phase="Running")
    assert await stage.pods() != before
