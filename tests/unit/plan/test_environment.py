"""The environment of every pod, compared with a table per mode. Each expectation names its reason."""

from __future__ import annotations

import re

import pytest

from paddlejob.api.types import PaddleJob, Role
from paddlejob.plan.manifests import environment, network
from paddlejob.plan.manifests.pod import overridden, pod_manifest
from tests.support.builders import job, template

LAUNCH = "paddle.distributed.launch reads it"
ROLE_MAKER = "fleet's role_maker reads it"
PLAIN = "a script without the launcher needs it"
SEED = "the seeds' system sets it"
TOOLKIT = "paddleformers-cli and erniekit read it"
SELECTIVE = "ERNIE's selective_launch.py reads it"


def addresses(made: PaddleJob, six: bool = False) -> dict[tuple[Role, int], str]:
    base = {Role.PS: "1", Role.WORKER: "2", Role.HETER: "3"}
    pattern = "fd00::{}:{}" if six else "10.0.{}.{}"
    return {
        (role, index): pattern.format(base[role], index + 1)
        for role, spec in made.spec.roles.items()
        for index in range(spec.replicas)
    }


def seen_by(made: PaddleJob, role: Role, index: int, *, six: bool = False) -> dict[str, str]:
    """What a process in the pod sees: the ConfigMap, then the pod's own variables, expanded as the kubelet does."""
    known = addresses(made, six)
    hosts = {slot: network.host(made, *slot, 1, address) for slot, address in known.items()}
    found = dict(environment.of_attempt(made, 1, hosts))
    container = pod_manifest(made, role, index, 1, "build")["spec"]["containers"][0]
    for one in container["env"]:
        value = known[role, index] if "valueFrom" in one else one["value"]
        found[one["name"]] = re.sub(r"\$\((\w+)\)", lambda name: found[name[1]], value)
    return found


TABLE = {
    "PS server 1 of 2": (
        {"ps": 2},
        (Role.PS, 1),
        {
            "POD_IP": ("10.0.1.2", ROLE_MAKER),
            "PADDLE_PORT": ("2379", ROLE_MAKER),
            "TRAINING_ROLE": ("PSERVER", ROLE_MAKER),
            "PADDLE_TRAINING_ROLE": ("PSERVER", SEED),
            "PADDLE_TRAINER_ID": ("1", SEED),
            "PADDLE_PSERVERS_IP_PORT_LIST": ("10.0.1.1:2379,10.0.1.2:2379", "absent, training is silently alone"),
            "PADDLE_TRAINER_ENDPOINTS": ("10.0.2.1:2379,10.0.2.2:2379", ROLE_MAKER),
            "PADDLE_TRAINERS": ("10.0.2.1,10.0.2.2", SEED),
            "PADDLE_TRAINERS_NUM": ("2", ROLE_MAKER),
            "TRAINER_PORTS_NUM": ("20", SEED),
            "PADDLE_WITH_GLOO": ("1", "barriers silently do nothing without it"),
            "PADDLE_GLOO_RENDEZVOUS": ("3", "3 is HTTP"),
            "PADDLE_GLOO_HTTP_ENDPOINT": ("10.0.1.1:2397", "a port of its own on ps-0, else trainers die"),
            "PADDLE_DISTRI_BACKEND": (None, "only collective training chooses a backend"),
        },
    ),
    "PS worker 0": (
        {"ps": 2},
        (Role.WORKER, 0),
        {
            "TRAINING_ROLE": ("TRAINER", ROLE_MAKER),
            "PADDLE_TRAINER_ID": ("0", ROLE_MAKER),
            "PADDLE_CURRENT_ENDPOINT": ("10.0.2.1:2379", PLAIN),
            "SYS_JOB_ID": ("uid-of-mnist-1", "gloo's prefix; differs between attempts"),
            "PYTHONUNBUFFERED": ("1", "output appears in the log when it is printed"),
            "RANK": (None, "a rank among workers; servers have none"),
            "MASTER_ADDR": (None, "parameter-server jobs have no master"),
        },
    ),
    "PS without gloo": (
        {"ps": 1, "withGloo": 0},
        (Role.WORKER, 0),
        {"PADDLE_WITH_GLOO": (None, "0 is off"), "PADDLE_GLOO_HTTP_ENDPOINT": (None, "0 is off")},
    ),
    "PS with gloo for all": ({"ps": 1, "withGloo": 2}, (Role.PS, 0), {"PADDLE_WITH_GLOO": ("2", ROLE_MAKER)}),
    "Collective worker 1": (
        {},
        (Role.WORKER, 1),
        {
            "PADDLE_TRAINER_ENDPOINTS": ("10.0.2.1:2379,10.0.2.2:2379", LAUNCH),
            "PADDLE_TRAINERS_NUM": ("2", PLAIN),
            "PADDLE_TRAINER_ID": ("1", LAUNCH),
            "POD_IP": ("10.0.2.2", LAUNCH),
            "PADDLE_PORT": ("2379", LAUNCH),
            "PADDLE_CURRENT_ENDPOINT": ("10.0.2.2:2379", PLAIN),
            "PADDLE_DISTRI_BACKEND": ("gloo", "on a CPU, and no launcher chooses it"),
            "PADDLE_TRAINING_ROLE": ("TRAINER", "role_maker asserts it"),
            "PADDLE_PSERVERS_IP_PORT_LIST": (None, "would make the job a parameter-server one"),
            "PADDLE_WITH_GLOO": (None, "withGloo has no effect where there is no ps"),
            "PADDLE_RANK": (None, "makes Paddle's elastic launcher fail"),
            "NNODES": ("2", TOOLKIT),
            "RANK": ("1", TOOLKIT),
            "MASTER_ADDR": ("10.0.2.1", TOOLKIT),
            "MASTER_PORT": ("2398", "a port of the block that Paddle itself does not bind"),
            "TRAINER_INSTANCES": ("10.0.2.1,10.0.2.2", SELECTIVE),
            "POD_INDEX": ("1", SELECTIVE),
        },
    ),
    "Collective on GPUs": (
        {"worker_": {"template": template(resources={"limits": {"nvidia.com/gpu": 1}})}},
        (Role.WORKER, 0),
        {"PADDLE_DISTRI_BACKEND": (None, "Paddle takes nccl by itself")},
    ),
    "Collective by Service": (
        {"intranet": "Service"},
        (Role.WORKER, 1),
        {
            "POD_IP": ("worker-1-uid-o-1.mnist-peers.default.svc", "a name without a dot is ignored"),
            "PADDLE_TRAINER_ENDPOINTS": (
                "worker-0-uid-o-1.mnist-peers.default.svc:2379,worker-1-uid-o-1.mnist-peers.default.svc:2379",
                LAUNCH,
            ),
            "PADDLE_CURRENT_ENDPOINT": ("worker-1-uid-o-1.mnist-peers.default.svc:2379", PLAIN),
            "MASTER_ADDR": ("worker-0-uid-o-1.mnist-peers.default.svc", "Paddle takes only names with a dot"),
            "TRAINER_INSTANCES": (
                "worker-0-uid-o-1.mnist-peers.default.svc,worker-1-uid-o-1.mnist-peers.default.svc",
                SELECTIVE,
            ),
        },
    ),
    "Single": (
        {"workers": 1},
        (Role.WORKER, 0),
        {
            "PADDLE_TRAINERS_NUM": ("1", PLAIN),
            "PADDLE_TRAINER_ENDPOINTS": ("10.0.2.1:2379", LAUNCH),
            "PADDLE_TRAINER_ID": ("0", PLAIN),
            "NNODES": ("1", TOOLKIT),
            "RANK": ("0", TOOLKIT),
            "MASTER_ADDR": ("10.0.2.1", TOOLKIT),
            "MASTER_PORT": ("2398", TOOLKIT),
        },
    ),
    "Heter trainer": (
        {"ps": 1, "heter": 2},
        (Role.WORKER, 1),
        {
            "TRAINING_ROLE": ("TRAINER", ROLE_MAKER),
            "PADDLE_ALL_HETER_TRAINER_IP_PORT_LIST": ("10.0.3.1:2379,10.0.3.2:2379", ROLE_MAKER),
            "PADDLE_NEXT_HETER_TRAINER_IP_PORT_LIST": ("10.0.3.1:2379,10.0.3.2:2379", "stage 2 follows stage 1"),
            "PADDLE_PREVIOUS_HETER_TRAINER_IP_PORT_LIST": (None, "nothing comes before stage 1"),
            "STAGE_ID": ("1", ROLE_MAKER),
            "STAGE_NUM": ("2", ROLE_MAKER),
            "PADDLE_STAGE_TRAINERS_NUM": ("2,2", ROLE_MAKER),
        },
    ),
    "Heter pod": (
        {"ps": 1, "heter": 2},
        (Role.HETER, 0),
        {
            "TRAINING_ROLE": ("HETER_TRAINER", "HETER raises ValueError"),
            "PADDLE_PREVIOUS_HETER_TRAINER_IP_PORT_LIST": ("10.0.2.1:2379,10.0.2.2:2379", ROLE_MAKER),
            "PADDLE_NEXT_HETER_TRAINER_IP_PORT_LIST": (None, "the last stage"),
            "STAGE_ID": ("2", ROLE_MAKER),
            "HETER_DEVICE_TYPE": ("cpu", ROLE_MAKER),
            "PADDLE_HETER_ENDPOINTS": (None, "nothing reads it"),
        },
    ),
    "Heter server": (
        {"ps": 1, "heter": 2},
        (Role.PS, 0),
        {
            "TRAINING_ROLE": ("PSERVER", ROLE_MAKER),
            "PADDLE_ALL_HETER_TRAINER_IP_PORT_LIST": ("10.0.3.1:2379,10.0.3.2:2379", ROLE_MAKER),
            "STAGE_ID": (None, "servers are in no stage"),
        },
    ),
}


@pytest.mark.parametrize("case", TABLE)
def test_every_variable_of(case: str):
    options, (role, index), expected = TABLE[case]
    seen = seen_by(job(**options), role, index)
    for name, (value, reason) in expected.items():
        assert seen.get(name) == value, f"{name}: {reason}"


def test_on_the_host_network_every_pod_has_a_block_of_ports_of_its_own():
    made = job(ps=2, intranet="Host")
    blocks = [
        range(first, first + 20)
        for role, index in addresses(made)
        for first in [network.port(made, role, index, attempt=1)]
    ]
    ports = [port for block in blocks for port in block]
    assert len(set(ports)) == 80
    assert all(20000 <= port <= 29999 for port in ports)
    servers = seen_by(made, Role.WORKER, 0)["PADDLE_PSERVERS_IP_PORT_LIST"].split(",")
    assert [int(one.rsplit(":", 1)[1]) for one in servers] == [blocks[0][0], blocks[1][0]]
    declared = pod_manifest(made, Role.PS, 0, 1, "")["spec"]["containers"][0]["ports"]
    assert [one["hostPort"] for one in declared] == list(blocks[0]), "so that the scheduler keeps jobs apart"
    assert network.port(made, Role.PS, 0, 1) != network.port(made, Role.PS, 0, 2), "another attempt, other ports"


def test_a_job_may_be_given_another_port_which_services_follow():
    """Paddle binds some ports on every address, so two jobs on one machine cannot share them."""
    made = job(ps=1, intranet="Service")
    other = made.metadata.model_copy(update={"annotations": {"batch.paddlepaddle.org/port": "2399"}})
    made = made.model_copy(update={"metadata": other})
    seen = seen_by(made, Role.WORKER, 0)
    assert seen["PADDLE_PORT"] == "2399"
    assert seen["PADDLE_GLOO_HTTP_ENDPOINT"] == "ps-0-uid-o-1.mnist-peers.default.svc:2417"
    assert network.service(made)["spec"]["ports"][0]["port"] == 2399


def test_ipv6_is_bracketed_where_a_port_follows_and_only_there():
    seen = seen_by(job(), Role.WORKER, 0, six=True)
    assert seen["PADDLE_TRAINER_ENDPOINTS"] == "[fd00::2:1]:2379,[fd00::2:2]:2379"
    assert seen["PADDLE_TRAINERS"] == "fd00::2:1,fd00::2:2"
    assert seen["PADDLE_CURRENT_ENDPOINT"] == "[fd00::2:1]:2379"
    assert seen["POD_IP"] == "fd00::2:1"
    assert seen["MASTER_ADDR"] == "fd00::2:1"


def test_on_the_host_network_the_master_port_is_of_the_block_of_worker_0():
    made = job(intranet="Host")
    seen = seen_by(made, Role.WORKER, 1)
    assert int(seen["MASTER_PORT"]) == network.port(made, Role.WORKER, 0, attempt=1) + 19
    declared = pod_manifest(made, Role.WORKER, 0, 1, "")["spec"]["containers"][0]["ports"]
    assert int(seen["MASTER_PORT"]) in [one["hostPort"] for one in declared]


def test_the_template_decides_on_buffering_and_nothing_warns_about_it():
    made = job(worker_={"template": template(env=[{"name": "PYTHONUNBUFFERED", "value": ""}])})
    assert seen_by(made, Role.WORKER, 0)["PYTHONUNBUFFERED"] == ""
    assert overridden(made, Role.WORKER) == []
    shared = job(worker_={"template": template(envFrom=[{"configMapRef": {"name": "own"}}])})
    container = pod_manifest(shared, Role.WORKER, 0, 1, "")["spec"]["containers"][0]
    assert "PYTHONUNBUFFERED" not in {one["name"] for one in container["env"]}, "env would win over envFrom"
    assert [one["configMapRef"]["name"] for one in container["envFrom"]][-1] == "own"


ELASTIC = {"elastic": 1, "worker_": {"requests": 2, "limits": 4}}


def test_workers_of_an_elastic_job_read_their_rank_from_the_environment_of_their_attempt():
    made = job(workers=4, **ELASTIC)
    env = pod_manifest(made, Role.WORKER, 2, 7, "")["spec"]["containers"][0]["env"]
    source = {"configMapKeyRef": {"name": "mnist-env-uid-o-7", "key": "PADDLEJOB_RANK_2"}}
    for name in ("PADDLE_TRAINER_ID", "RANK", "POD_INDEX"):
        assert {"name": name, "valueFrom": source} in env
    known = addresses(made)
    del known[Role.WORKER, 1]
    shared = environment.of_attempt(made, 7, known)
    assert {name: value for name, value in shared.items() if "JOB_RANK" in name} == {
        "PADDLEJOB_RANK_0": "0",
        "PADDLEJOB_RANK_2": "1",
        "PADDLEJOB_RANK_3": "2",
    }
    assert shared["PADDLE_TRAINERS"] == "10.0.2.1,10.0.2.3,10.0.2.4"


def test_without_worker_zero_the_first_worker_that_is_there_is_the_master():
    made = job(workers=4, intranet="Host", **ELASTIC)
    known = addresses(made)
    del known[Role.WORKER, 0]
    shared = environment.of_attempt(made, 1, known)
    first = network.port(made, Role.WORKER, 1, 1)
    assert (shared["MASTER_ADDR"], shared["MASTER_PORT"]) == ("10.0.2.2", str(first + 19))
    assert shared["PADDLE_TRAINER_ENDPOINTS"].split(",")[0] == f"10.0.2.2:{first}"


@pytest.mark.parametrize(
    "options", [{}, {"elastic": 1}, {"ps": 1, "withGloo": 0, **ELASTIC}, {"ps": 1, "heter": 1, **ELASTIC}]
)
def test_workers_of_other_jobs_have_their_index_as_rank(options: dict):
    made = job(workers=2, **options)
    manifest = pod_manifest(made, Role.WORKER, 1, 1, "")
    assert {"name": "PADDLE_TRAINER_ID", "value": "1"} in manifest["spec"]["containers"][0]["env"]
    assert not [name for name in environment.of_attempt(made, 1, addresses(made)) if "JOB_RANK" in name]


@pytest.mark.parametrize("given", [None, "Always", "OnFailure", "Never"])
def test_pods_are_never_restarted_in_place_whatever_the_template_says(given: str | None):
    asked = template()
    if given:
        asked["spec"]["restartPolicy"] = given
    assert pod_manifest(job(worker_={"template": asked}), Role.WORKER, 0, 1, "")["spec"]["restartPolicy"] == "Never"


def test_a_pod_gets_no_token_unless_its_template_asks_for_one():
    plain = pod_manifest(job(), Role.WORKER, 0, 1, "")["spec"]
    assert plain["automountServiceAccountToken"] is False
    asked = template()
    asked["spec"]["serviceAccountName"] = "reader"
    named = pod_manifest(job(worker_={"template": asked}), Role.WORKER, 0, 1, "")["spec"]
    assert "automountServiceAccountToken" not in named


def test_lost_nodes_are_given_up_after_seconds_unless_the_template_says_otherwise():
    plain = pod_manifest(job(), Role.WORKER, 0, 1, "")["spec"]["tolerations"]
    assert {one["tolerationSeconds"] for one in plain} == {3}
    asked = template()
    asked["spec"]["tolerations"] = [{"key": "node.kubernetes.io/unreachable", "operator": "Exists"}]
    own = pod_manifest(job(worker_={"template": asked}), Role.WORKER, 0, 1, "")["spec"]["tolerations"]
    assert [one["key"] for one in own] == ["node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"]


def test_a_template_reaches_no_other_namespace_whatever_it_says():
    asked = template() | {
        "metadata": {"namespace": "kube-system", "name": "evil", "ownerReferences": [], "labels": {"a": "b"}}
    }
    made = pod_manifest(job(worker_={"template": asked}), Role.WORKER, 0, 1, "")
    assert (made["metadata"]["namespace"], made["metadata"]["name"]) == ("default", "mnist-worker-0")
    assert made["metadata"]["ownerReferences"][0]["uid"] == "uid-of-mnist"
    assert made["metadata"]["labels"]["a"] == "b"
