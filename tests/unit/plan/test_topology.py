"""A job with a topology keeps its pods within one domain, and neighbours in rank are neighbours in the network."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob import contract
from paddlejob.api.types import PaddleJob, Phase, Role
from paddlejob.plan import Create, Kind, PodPhase
from paddlejob.plan.manifests.affinity import PREFERRED, REQUIRED
from paddlejob.plan.manifests.pod import PodSource
from paddlejob.plan.manifests.pod_group import is_gang
from paddlejob.plan.ranks import nodes_to_look_up
from tests.support.builders import job, pod, template
from tests.support.kueue_model import KueueModel
from tests.support.model import Crash, Model

ZONE = "topology.kubernetes.io/zone"


def topology(kind: str = "required", **more: Any) -> dict[str, Any]:
    return {"schedulingPolicy": {"topology": {kind: ZONE}, **more}}


def affinity(made: PaddleJob, role: Role = Role.WORKER) -> dict[str, Any]:
    found: dict[str, Any] = PodSource(made, role, 0, 1, "build")()["spec"]["affinity"]
    return found


def ranks(model: Model) -> dict[int, str]:
    """The rank of each worker, as its pod reads it."""
    data, found = model.environments[model.status.attempt], {}
    for name, one in model.pods.items():
        env = {variable["name"]: variable for variable in model.manifests[name]["spec"]["containers"][0]["env"]}
        keys = (env[variable]["valueFrom"]["configMapKeyRef"]["key"] for variable in ("PADDLE_TRAINER_ID", "RANK"))
        (found[one.index],) = {data[key] for key in keys}
    return found


async def spread(*nodes: str, kind: str = "preferred", domains: dict[str, str] | None = None, **more: Any) -> Model:
    """A job whose workers run on these nodes."""
    model = Model(job(workers=len(nodes), **topology(kind), **more))
    model.nodes = {f"mnist-worker-{index}": node for index, node in enumerate(nodes)}
    model.domains = domains or {}
    await model.settle()
    assert model.status.phase is Phase.RUNNING, model.status
    return model


def test_pods_of_all_roles_must_be_in_the_domain_of_the_others():
    made = job(ps=1, workers=2, **topology())
    expected = [{"topologyKey": ZONE, "labelSelector": {"matchLabels": {contract.LABEL_JOB: "mnist"}}}]
    for role in (Role.PS, Role.WORKER):
        assert affinity(made, role) == {"podAffinity": {REQUIRED: expected}}
        labels = PodSource(made, role, 0, 1, "build")()["metadata"]["labels"]
        assert labels[contract.LABEL_JOB] == "mnist", "a pod matches its own term, so the first can be scheduled"


def test_or_should_be_there():
    (term,) = affinity(job(**topology("preferred")))["podAffinity"][PREFERRED]
    assert (term["weight"], term["podAffinityTerm"]["topologyKey"]) == (100, ZONE)


def test_the_affinity_of_the_template_and_of_the_host_network_stays():
    given = template()
    given["spec"]["affinity"] = {"podAffinity": {REQUIRED: [{"topologyKey": "disk"}]}}
    terms = affinity(job(worker_={"template": given}, **topology()))["podAffinity"][REQUIRED]
    assert [one["topologyKey"] for one in terms] == ["disk", ZONE]
    on_hosts = affinity(job(intranet="Host", **topology()))
    assert on_hosts["podAntiAffinity"][REQUIRED][0]["topologyKey"] == "kubernetes.io/hostname"
    assert on_hosts["podAffinity"][REQUIRED][0]["topologyKey"] == ZONE


def test_without_a_topology_there_is_no_affinity():
    assert "affinity" not in PodSource(job(), Role.WORKER, 0, 1, "build")()["spec"]


@pytest.mark.parametrize(
    ("policy", "gang"),
    [({}, True), (topology()["schedulingPolicy"], False), (topology(minAvailable=2)["schedulingPolicy"], True)],
)
def test_a_topology_alone_does_not_ask_for_volcano(policy: dict[str, Any], gang: bool):
    assert is_gang(job(schedulingPolicy=policy)) is gang


async def test_a_job_with_only_a_topology_runs_where_volcano_is_not_installed():
    model = Model(job(**topology()))
    model.gang_scheduler = False
    await model.settle()
    assert model.status.phase is Phase.RUNNING
    assert model.status.condition("GangAdmitted") is None


async def test_workers_on_the_same_node_are_neighbours_in_rank():
    model = await spread("a", "b", "a", "b", kind="required")
    assert ranks(model) == {0: "0", 2: "1", 1: "2", 3: "3"}
    assert model.status.worker.ranks == "0,2,1,3"


async def test_nodes_of_the_same_domain_are_neighbours_in_rank():
    model = await spread("a", "b", "c", "a", domains={"a": "east", "b": "west", "c": "east"})
    assert ranks(model) == {0: "0", 3: "1", 2: "2", 1: "3"}
    assert model.status.worker.ranks == "0,3,2,1"


async def test_all_lists_of_the_environment_are_in_the_order_of_the_ranks():
    model = await spread("a", "b", "a", intranet="Service")
    data = model.environments[1]
    hosts = [f"worker-{index}-uid-o-1.mnist-peers.default.svc" for index in (0, 2, 1)]
    assert data["PADDLE_TRAINERS"] == data["TRAINER_INSTANCES"] == ",".join(hosts)
    assert data["PADDLE_TRAINER_ENDPOINTS"] == ",".join(f"{host}:2379" for host in hosts)
    assert data["MASTER_ADDR"] == hosts[0], "the first worker is the master"


async def test_ranks_are_indexes_if_the_pods_are_in_order_or_nothing_is_known_about_their_nodes():
    model = await spread("a", "a", "b", domains={"a": "east"})
    assert ranks(model) == {0: "0", 1: "1", 2: "2"}
    assert model.status.worker.ranks == ""


async def test_without_a_topology_the_rank_is_the_index_wherever_pods_run():
    model = Model(job(workers=3))
    model.nodes = {f"mnist-worker-{index}": node for index, node in enumerate("aba")}
    await model.settle()
    env = model.manifests["mnist-worker-1"]["spec"]["containers"][0]["env"]
    assert {"name": "PADDLE_TRAINER_ID", "value": "1"} in env


async def test_workers_of_parameter_servers_keep_their_index():
    model = Model(job(ps=1, workers=2, **topology("preferred")))
    await model.settle()
    env = model.manifests["mnist-worker-1"]["spec"]["containers"][0]["env"]
    assert {"name": "PADDLE_TRAINER_ID", "value": "1"} in env


async def test_an_environment_that_is_created_again_has_the_same_ranks_although_labels_changed():
    model = await spread("a", "b", "c", domains={"a": "east", "b": "west", "c": "east"})
    before = model.environments.pop(1)
    model.domains = {}
    await model.settle()
    assert model.environments[1] == before


async def test_a_crash_between_the_status_and_the_environment_does_not_change_the_ranks():
    model = Model(job(workers=3, **topology("preferred")))
    model.nodes = {f"mnist-worker-{index}": node for index, node in enumerate("aba")}
    await model.settle_until_created()
    model.tick()
    model.crash_after = 1
    with pytest.raises(Crash):
        await model.step()
    assert model.status.publishedAttempt == 1 and not model.environments
    model.crash()
    for name in model.pods:
        model.change(name, node="elsewhere")
    await model.settle()
    assert ranks(model) == {0: "0", 2: "1", 1: "2"}


async def test_the_next_attempt_gets_ranks_by_its_own_nodes():
    model = await spread("a", "b", "a")
    model.end("mnist-worker-1", 1)
    await model.step()
    assert model.status.worker.ranks == "", "they belong to the attempt that ended"
    model.nodes = {"mnist-worker-0": "a", "mnist-worker-1": "a", "mnist-worker-2": "b"}
    await model.settle()
    assert (model.status.attempt, model.status.worker.ranks) == (2, "")
    assert ranks(model) == {0: "0", 1: "1", 2: "2"}


async def test_an_elastic_job_that_lacks_workers_has_contiguous_ranks_by_node():
    elastic = {"elastic": 1, "worker_": {"requests": 2, "limits": 4}, "growthIntervalSeconds": 1000}
    model = Model(job(workers=4, **elastic, **topology("preferred")))
    model.capacity = 3
    model.nodes = {"mnist-worker-0": "a", "mnist-worker-1": "b", "mnist-worker-2": "a"}
    await model.settle()
    assert ranks(model).items() >= {0: "0", 2: "1", 1: "2"}.items()
    assert (model.status.worker.members, model.status.worker.ranks) == ("0-2", "0,2,1")


async def test_workers_by_which_an_elastic_job_grows_are_attracted_to_those_that_train():
    elastic = {"elastic": 1, "worker_": {"requests": 2, "limits": 3}, "growthIntervalSeconds": 100}
    model = Model(job(workers=3, **elastic, **topology()))
    model.capacity = 2
    await model.settle()
    assert model.status.worker.ready == "2/3"
    model.now += 200
    await model.step()
    created = [one for one in model.done if isinstance(one, Create) and one.kind is Kind.POD][-1]
    spare = created.manifest
    (term,) = spare["spec"]["affinity"]["podAffinity"][REQUIRED]
    trains = model.manifests["mnist-worker-0"]["metadata"]["labels"]
    assert spare["metadata"]["labels"][contract.LABEL_ATTEMPT] != trains[contract.LABEL_ATTEMPT]
    assert term["labelSelector"]["matchLabels"].items() <= trains.items()


async def half_placed() -> Model:
    """The first pod chose a zone in which the other does not fit."""
    model = Model(job(**topology()))
    model.nodes, model.domains = {"mnist-worker-0": "a"}, {"a": "east", "b": "west"}
    await model.settle_until_created()
    await leave_half(model)
    return model


async def leave_half(model: Model) -> None:
    model.schedule("mnist-worker-0")
    model.change("mnist-worker-0", phase=PodPhase.WAITING, address="10.0.0.1")
    model.fits_nowhere("mnist-worker-1", "0/2 nodes are available: 1 node(s) didn't match pod affinity rules")
    await model.step()


async def test_a_job_that_fits_in_no_domain_waits_with_the_reason():
    model = await half_placed()
    assert model.status.reason == "Unschedulable"
    assert f"on any node with the same {ZONE}, which schedulingPolicy.topology requires" in model.status.message
    assert "didn't match pod affinity rules" in model.status.message


async def test_a_domain_that_is_too_small_is_avoided_by_the_next_attempts_until_one_starts():
    model = await half_placed()
    model.now += 90
    await model.step()
    assert (model.status.reason, model.status.avoidedDomains) == ("PartiallyScheduled", ("east",))
    assert f"{ZONE} (east)" in model.status.message
    model.pods.clear()
    model.now += 60
    await model.settle_until_created()
    (term,) = model.manifests["mnist-worker-0"]["spec"]["affinity"]["nodeAffinity"][PREFERRED]
    (expression,) = term["preference"]["matchExpressions"]
    assert expression == {"key": ZONE, "operator": "NotIn", "values": ["east"]}
    model.nodes["mnist-worker-0"] = "b"
    await leave_half(model)
    model.now += 90
    await model.step()
    assert model.status.avoidedDomains == ("east", "west"), "the next attempt prefers neither"
    await model.settle(limit=200)
    assert (model.status.phase, model.status.avoidedDomains) == (Phase.RUNNING, ())


def test_nodes_are_looked_up_only_where_their_domains_decide():
    def looked_up(made: PaddleJob, *changes: dict[str, Any]) -> list[str]:
        pods = [pod(made, "worker", index, **{"node": "a", **one}) for index, one in enumerate(changes)]
        return nodes_to_look_up(made, pods)

    preferred, required = job(**topology("preferred")), job(**topology())
    status = {"status": {"attempt": 1, "publishedAttempt": 1}}
    assert looked_up(job(), {}, {}) == []
    assert looked_up(preferred, {}, {"node": "b"}) == ["a", "b"]
    assert looked_up(preferred, {}, {"node": ""}) == [], "not before all pods have a node"
    assert looked_up(required, {}, {"node": "b"}) == [], "all are in the same domain"
    assert looked_up(required, {}, {"node": "", "reason": "Unschedulable"}) == ["a"]
    assert looked_up(job(**topology("preferred"), **status), {}, {}) == [], "not while a job trains"
    assert looked_up(job(ps=1, **topology("preferred")), {}, {}) == [], "ranks do not depend on it"


QUEUED = {"labels": {contract.LABEL_QUEUE: "research"}}


@pytest.mark.parametrize("kind", ["required", "preferred"])
async def test_in_a_queue_of_kueue_the_topology_is_requested_of_it_and_replaces_the_affinity(kind: str):
    model = KueueModel(job(**QUEUED, **topology(kind)))
    await model.step()
    (pod_set,) = model.raw["spec"]["podSets"]
    assert pod_set["topologyRequest"] == {kind: ZONE, "podIndexLabel": contract.LABEL_INDEX}
    model.tick()
    for one in model.raw["status"]["admission"]["podSetAssignments"]:
        one["topologyAssignment"] = {"levels": [ZONE], "slices": []}
    await model.step()
    made = model.manifests["mnist-worker-1"]
    assert made["metadata"]["annotations"][contract.TOPOLOGY_REQUESTS[kind]] == ZONE
    assert contract.TOPOLOGY_UNCONSTRAINED not in made["metadata"]["annotations"]
    assert "affinity" not in made["spec"]


async def test_a_queue_that_assigns_no_topology_leaves_it_to_the_affinity():
    model = KueueModel(job(**QUEUED, **topology()))
    await model.settle()
    assert REQUIRED in model.manifests["mnist-worker-1"]["spec"]["affinity"]["podAffinity"]


async def test_the_annotation_of_a_template_takes_precedence_over_the_topology_of_the_job():
    given = template() | {"metadata": {"annotations": {contract.TOPOLOGY_REQUESTS["preferred"]: "rack"}}}
    model = KueueModel(job(**QUEUED, **topology(), worker_={"template": given}))
    await model.step()
    (pod_set,) = model.raw["spec"]["podSets"]
    assert pod_set["topologyRequest"] == {"preferred": "rack", "podIndexLabel": contract.LABEL_INDEX}
