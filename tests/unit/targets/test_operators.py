"""Which operators a cluster has, and who handles a job."""

from __future__ import annotations

from typing import Any

from paddlejob.kube.client import Client
from paddlejob.targets.cluster.cluster_target import ClusterTarget
from paddlejob.targets.cluster.operators import Operator, find_operators, unavailable_message, unwatched_message
from tests.support.scripted_cluster import ScriptedCluster, failure, operator

RUNNING = {"phase": "Running", "attempt": 1, "observedGeneration": 1}


ENDED = {"phase": "Completed", "attempt": 1, "completionTime": "2027-01-15T09:00:00Z"}


async def test_a_note_says_why_no_operator_handles_a_job(api: ScriptedCluster, target: ClusterTarget):
    async def note(status: dict[str, Any], *operators: dict[str, Any], generation: int = 1) -> str:
        api.add_job(status)["metadata"]["generation"] = generation
        api.deployments = list(operators)
        return (await target.job("default", "mnist")).note

    assert "no operator is installed in this cluster" in await note(RUNNING)
    assert await note(ENDED) == ""
    assert await note(RUNNING, operator()) == await note(RUNNING, operator("default")) == ""
    assert "no operator watches namespace default" in await note(RUNNING, operator("team"))
    assert await note(RUNNING, operator(available=0)) == "", "the status is up to date"
    assert "is not running (0 of 2 ready)" in await note(RUNNING, operator(available=0), generation=2)
    assert await note(RUNNING, operator(), generation=2) == ""
    assert "is not running" in await note({}, operator(available=0))


async def test_the_operators_of_a_cluster_are_found_with_what_they_watch(api: ScriptedCluster, client: Client):
    api.deployments = [operator("team"), operator(arguments=["operator", "--namespace", "own", "--leader"]), operator()]
    api.deployments[2]["metadata"]["annotations"] = {"meta.helm.sh/release-name": "ours"}
    api.deployments[2]["spec"]["template"]["spec"]["containers"] = [{"command": ["pdj", "--namespace"]}]
    del api.deployments[2]["spec"]["replicas"], api.deployments[2]["status"]
    found = await find_operators(client)
    assert found and [one.watch for one in found] == ["team", "own", ""]
    assert (found[0].image, found[0].replicas, found[0].available, found[0].release) == ("operator:1", 2, 1, "")
    assert (found[2].image, found[2].replicas, found[2].available, found[2].release) == ("", 1, 0, "ours")
    assert "app.kubernetes.io/name=" in dict(api.queries)["deployments"]["labelSelector"]


async def test_who_may_not_list_operators_may_see_the_usual_one(api: ScriptedCluster, client: Client):
    api.answers["GET", "deployments"] = failure(403, "Forbidden")
    api.deployments = None
    assert await find_operators(client) is None
    path = f"{operator()['metadata']['namespace']}/deployments/{operator()['metadata']['name']}"
    api.answers["GET", path] = (200, operator("team"))
    found = await find_operators(client)
    assert found and [one.watch for one in found] == ["team"]
    api.answers["GET", path] = failure(403, "Forbidden")
    assert await find_operators(client) is None


def test_messages_about_operators_name_them_and_the_remedy():
    one = Operator("a", "op", "team", "", replicas=2, available=0)
    two = Operator("b", "op", "", "", replicas=1, available=1)
    assert unwatched_message(None, "x") == unwatched_message([one, two], "x") == unwatched_message([one], "team") == ""
    message = unwatched_message([one], "x", " --context c")
    assert "no operator watches namespace x (a/op watches namespace team)" in message
    assert message.endswith("`pdj install --context c -n x --watch x`")
    assert (one.scope, two.scope) == ("namespace team", "all namespaces")
    assert unavailable_message(None, "team") == unavailable_message([one], "x") == ""
    assert unavailable_message([one, two], "team") == ""
    assert unavailable_message([one], "team") == (
        "the operator a/op is not running (0 of 2 ready); check `kubectl describe deployment op -n a`"
    )
