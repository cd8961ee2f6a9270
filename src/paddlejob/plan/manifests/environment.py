"""The environment variables from which Paddle learns its role and its peers.

Variables that are known when a pod is created are part of the pod. Those that are known only once all pods have
addresses are in one ConfigMap per attempt, which every pod of the attempt needs to start. A pod's own variables may
refer to those of the ConfigMap, as $(NAME).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlejob import contract as c
from paddlejob.api.pod_devices import PodDevices, devices_of_pod
from paddlejob.api.types import DeviceKind, Intranet, Mode, PaddleJob, Role, Slot
from paddlejob.plan import names, ranks
from paddlejob.plan.manifests import network
from paddlejob.plan.manifests.metadata import labels, metadata

ROLE_NAMES = {Role.PS: "PSERVER", Role.WORKER: "TRAINER", Role.HETER: "HETER_TRAINER"}
GLOO_OVER_HTTP = "3"
REFERRED_TO = (c.ENV_POD_IP, c.ENV_PORT)
"""Variables of a pod that its other variables refer to."""
COLLECTIVE = (Mode.COLLECTIVE, Mode.SINGLE)
UNKNOWN = "0.0.0.0"
"""For a worker whose pod has no address yet. Only servers are connected to."""
Hosts = Mapping[Slot, str]
"""Names or addresses under which pods reach each other."""


def of_pod(job: PaddleJob, role: Role, index: int, attempt: int) -> list[dict[str, Any]]:
    """Variables of one pod, in the order in which the kubelet expands them."""
    if job.spec.intranet is Intranet.SERVICE:
        own_host: dict[str, Any] = {"value": network.host(job, role, index, attempt, "")}
    else:
        own_host = {"valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    found = [
        {"name": c.ENV_POD_IP, **own_host},
        _variable(c.ENV_PORT, network.port(job, role, index, attempt)),
        _rank(job, role, index, attempt, c.ENV_TRAINER_ID),
        _variable(c.ENV_ROLE, ROLE_NAMES[role]),
        _variable(c.ENV_ROLE_COLLECTIVE, ROLE_NAMES[role]),
        _variable(
            c.ENV_CURRENT_ENDPOINT,
            f"$({c.ENV_HOST_OPEN})$({c.ENV_POD_IP})$({c.ENV_HOST_CLOSE}):$({c.ENV_PORT})",
        ),
    ]
    if job.mode is Mode.HETER:
        found += _heter_stage(role, devices_of_pod(job.spec.roles[role].template, job.spec.device))
    if job.mode in COLLECTIVE:
        found += [_rank(job, role, index, attempt, name) for name in (c.ENV_RANK, c.ENV_POD_INDEX)]
    return found


def _backend(devices: PodDevices) -> dict[str, str]:
    """What a plain program needs to train on its one device, or on CPUs; a launcher selects devices by itself.

    The launcher of Paddle 2.6 finds devices of a plugin only if PADDLE_XCCL_BACKEND names it. Where a device may be
    that the template does not name, gloo would silently train on the CPU beside it, so nothing is chosen.
    """
    device = devices.device
    if not device:
        return {c.ENV_BACKEND: "gloo"} if devices.none_possible else {}
    found = {c.ENV_XCCL: device.xccl} if device.xccl else {}
    if devices.count == 1:
        found |= {c.ENV_BACKEND: "xccl"} if device.xccl else {}
        found[device.selected] = "0"
    return found


def of_joining(job: PaddleJob, index: int, attempt: int, hosts: Hosts) -> list[dict[str, Any]]:
    """Variables of a worker that joins others which train; they take precedence over those of the attempt.

    Paddle fails if the list of workers is shorter than the worker's own index. Its first worker pushes its initial
    parameters to the servers, which undoes the training, unless TEST_MODE is set (docs/decisions/0008).
    """
    workers = job.spec.roles[Role.WORKER].replicas
    known = {**hosts, (Role.WORKER, index): f"$({c.ENV_POD_IP})"}
    listed = [
        known.get((Role.WORKER, one)) or network.host(job, Role.WORKER, one, attempt, UNKNOWN) for one in range(workers)
    ]
    ports = [network.port(job, Role.WORKER, one, attempt) for one in range(workers)]
    found = [
        _variable(c.ENV_JOINS, 1),
        _variable(c.ENV_TRAINERS_NUM, workers),
        _variable(c.ENV_TRAINERS, ",".join(listed)),
        _variable(c.ENV_ENDPOINTS, ",".join(map(network.endpoint, listed, ports))),
    ]
    return [*found, _variable(c.KEEP_PARAMETERS, 1)] if index == 0 else found


def _rank(job: PaddleJob, role: Role, index: int, attempt: int, name: str) -> dict[str, Any]:
    """The index, or the rank that a worker of an elastic job, or of one with a topology, gets at the start barrier."""
    if role is not Role.WORKER or not ranks.are_published(job):
        return _variable(name, index)
    reference = {"name": names.environment(job, attempt), "key": f"{c.ENV_RANK_OF}{index}"}
    return {"name": name, "valueFrom": {"configMapKeyRef": reference}}


def _heter_stage(role: Role, devices: PodDevices) -> list[dict[str, Any]]:
    if role is Role.WORKER:
        return [
            _variable(c.ENV_STAGE_ID, 1),
            _variable(c.ENV_HETER_NEXT, f"$({c.ENV_HETER_ALL})"),
        ]
    if role is Role.HETER:
        return [
            _variable(c.ENV_STAGE_ID, 2),
            *([] if devices.hidden_in else [_variable(c.ENV_HETER_DEVICE, _heter_device(devices))]),
            _variable(c.ENV_HETER_PREVIOUS, f"$({c.ENV_ENDPOINTS})"),
        ]
    return []


def _heter_device(devices: PodDevices) -> str:
    """Paddle knows no others here."""
    if devices.device is None:
        return "cpu"
    return "xpu" if devices.device.kind is DeviceKind.XPU else "gpu"


def of_attempt(
    job: PaddleJob, attempt: int, known: Hosts, workers: Sequence[int] = (), built: int = 0
) -> dict[str, str]:
    """Variables that all pods of an attempt share.

    `known` has the hosts of all its replicas; `workers` are the workers in the order of their ranks, if that is not
    the order of their indexes; `built` is the attempt in which the pods were built and given ports, if not this one.
    """
    job_id, attempt = f"{job.metadata.uid}-{attempt}", built or attempt
    replicas = {role: sorted(index for other, index in known if other is role) for role in job.spec.roles}
    replicas |= {Role.WORKER: list(workers)} if workers else {}
    hosts = {role: [known[role, index] for index in replicas[role]] for role in replicas}
    endpoints = {
        role: [
            network.endpoint(host, network.port(job, role, index, attempt))
            for index, host in zip(replicas[role], hosts[role], strict=True)
        ]
        for role in hosts
    }
    ipv6 = any(":" in host for role in hosts for host in hosts[role])
    found = {
        c.ENV_PORTS_NUM: str(c.PORTS_PER_POD),
        c.ENV_ENDPOINTS: ",".join(endpoints[Role.WORKER]),
        c.ENV_TRAINERS: ",".join(hosts[Role.WORKER]),
        c.ENV_TRAINERS_NUM: str(len(hosts[Role.WORKER])),
        c.ENV_JOB_ID: job_id,
        c.ENV_HOST_OPEN: "[" if ipv6 else "",
        c.ENV_HOST_CLOSE: "]" if ipv6 else "",
        c.ENV_UNBUFFERED: "1",
    }
    if ranks.are_published(job):
        found |= {f"{c.ENV_RANK_OF}{index}": str(rank) for rank, index in enumerate(replicas[Role.WORKER])}
    if job.mode in COLLECTIVE:
        # Shared by all pods, because what the template takes from elsewhere by envFrom wins only over these.
        found |= _backend(devices_of_pod(job.spec.roles[Role.WORKER].template, job.spec.device))
        found |= _master(hosts[Role.WORKER], network.port(job, Role.WORKER, replicas[Role.WORKER][0], attempt))
    if Role.PS in hosts:
        found[c.ENV_SERVERS] = ",".join(endpoints[Role.PS])
        if job.spec.withGloo:
            gloo_port = network.port(job, Role.PS, 0, attempt) + c.GLOO_PORT_OFFSET
            found[c.ENV_GLOO] = str(job.spec.withGloo)
            found[c.ENV_GLOO_RENDEZVOUS] = GLOO_OVER_HTTP
            found[c.ENV_GLOO_ENDPOINT] = network.endpoint(hosts[Role.PS][0], gloo_port)
    if Role.HETER in hosts:
        found[c.ENV_HETER_ALL] = ",".join(endpoints[Role.HETER])
        found[c.ENV_STAGE_NUM] = "2"
        found[c.ENV_STAGE_TRAINERS] = f"{len(hosts[Role.WORKER])},{len(hosts[Role.HETER])}"
    return found


def _master(workers: list[str], first_port: int) -> dict[str, str]:
    """Where workers meet whose toolkit does not read Paddle's own variables."""
    return {
        c.ENV_NNODES: str(len(workers)),
        c.ENV_MASTER_ADDR: workers[0],
        c.ENV_MASTER_PORT: str(first_port + c.MASTER_PORT_OFFSET),
        c.ENV_INSTANCES: ",".join(workers),
    }


def too_large(job: PaddleJob, attempt: int = 1, hosts: Hosts | None = None) -> str:
    """Why no process could start with the environment of this job; empty if one can.

    Before the addresses are known they are taken for IPv4; IPv6 addresses may be almost three times as long.
    """
    known = hosts or {slot: network.host(job, *slot, attempt, "255.255.255.255") for slot in job.spec.slots}
    for name, value in of_attempt(job, attempt, known).items():
        if len(name) + 1 + len(value) > c.ENV_VALUE_LIMIT:
            shorter = " or intranet: PodIP" if job.spec.intranet is Intranet.SERVICE else ""
            return f"{name} would exceed the 128 KiB limit of an environment variable; use fewer workers{shorter}"
    return ""


def config_map(job: PaddleJob, attempt: int, variables: Mapping[str, str]) -> dict[str, Any]:
    marked = labels(job) | {c.LABEL_ATTEMPT: str(attempt)}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(job, names.environment(job, attempt), marked),
        "immutable": True,
        "data": dict(variables),
    }


def _variable(name: str, value: object) -> dict[str, Any]:
    return {"name": name, "value": str(value)}
