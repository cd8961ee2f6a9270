"""The pod template of a Job as that of a role, without what its pods needed to find each other."""

from __future__ import annotations

import json
import re
from typing import Any

from paddlejob import contract
from paddlejob.api.convert.parts import Obj, drop_empty_metadata

MARKS = ("CONF_PADDLE_GRADIENT_NUM", "CONF_PADDLE_PORT")
"""Variables that distinguish a Job that trains with Paddle from any other."""
NETWORK_VARIABLES = {
    "CONF_PADDLE_NIC": "pods reach each other by address, on any network device",
    "CONF_PADDLE_PORT": f"PADDLE_PORT is set to {contract.PORT} for each pod",
    "CONF_PADDLE_PORTS_NUM": "each server uses one port",
    "CONF_PADDLE_PORTS_NUM_SPARSE": "each server uses one port",
    "CONF_PADDLE_GRADIENT_NUM": "worker.replicas replaces it",
    "JOB_NAMESPACE": "pods no longer look each other up",
    "JOB_SERVICE": "pods no longer look each other up",
    "JOB_WAIT_SECONDS": "the operator starts processes once all of them can start",
}
JOB_LABELS = ("job-name", "controller-uid", "batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid")
PROBES = ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle")


def without_finding(template: Obj, result: Obj, notes: list[str]) -> Obj:
    """Remove what the pods needed to find each other."""
    pod: Obj = template["spec"]
    drop_restart_policy(pod, notes)
    for field in ("hostname", "subdomain"):
        if pod.pop(field, None):
            notes.append(f"spec.template.spec.{field} is left out; pods know their peers from the environment")
    if pod.pop("hostNetwork", False):
        result["intranet"] = "Host"
        notes.append("spec.template.spec.hostNetwork is now spec.intranet: Host, with ports chosen by the operator")
    metadata = template.get("metadata") or {}
    metadata.pop("name", None)
    for label in JOB_LABELS:
        (metadata.get("labels") or {}).pop(label, None)
    drop_empty_metadata(template)
    _lead_with_the_trainer(pod, notes)
    for container in pod["containers"]:
        _drop_variables(container, notes)
        _drop_host_ports(container, notes)
    return template


def drop_restart_policy(pod: Obj, notes: list[str]) -> None:
    policy = pod.pop("restartPolicy", None) or "Never"
    if policy != "Never":
        notes.append(
            f"spec.template.spec.restartPolicy was {policy}; it is now always Never, and the job restarts as a whole"
        )


def _drop_variables(container: Obj, notes: list[str]) -> None:
    where, kept = f"container {container['name']}", []
    for pair in container.get("env") or []:
        name = pair["name"]
        if name in NETWORK_VARIABLES and not _mentioned(name, container, but=pair):
            notes.append(f"{where}: env {name} is left out; {NETWORK_VARIABLES[name]}")
            continue
        if name in NETWORK_VARIABLES:
            notes.append(f"{where}: env {name} is kept because its command or another variable refers to it")
        kept.append(pair)
    if container.get("env"):
        container["env"] = kept


def _mentioned(name: str, container: Obj, but: Obj) -> bool:
    """As $NAME, ${NAME} or $(NAME)."""
    others = [pair for pair in container["env"] if pair is not but]
    text = json.dumps([container.get("command"), container.get("args"), others], default=str)
    return re.search(rf"\$[({{]?{name}\b", text) is not None


def _drop_host_ports(container: Obj, notes: list[str]) -> None:
    ports: list[Any] = container.get("ports") or []
    host_ports = [port for port in ports if isinstance(port, dict) and port.get("hostPort")]
    if not host_ports:
        return
    probes = json.dumps([container.get(name) for name in PROBES], default=str)
    needed_ports = [port for port in host_ports if port.get("name") and f'"{port["name"]}"' in probes]
    for port in needed_ports:
        port.pop("hostPort")
        port.pop("hostIP", None)
    container["ports"] = [port for port in ports if port not in host_ports or port in needed_ports]
    if not container["ports"]:
        del container["ports"]
    notes.append(
        f"container {container['name']}: its hostPorts are left out; pods reach each other by address and can share a "
        "node"
    )


def _lead_with_the_trainer(pod: Obj, notes: list[str]) -> None:
    """The training container decides how a pod ended: the one named `paddle`, else the first."""
    containers: list[Obj] = pod["containers"]
    if len(containers) == 1:
        return
    trainer = next(one for one in containers if trains(one))
    others = [one["name"] for one in containers if one is not trainer]
    pod["containers"] = [trainer, *(one for one in containers if one is not trainer)]
    notes.append(
        f"container {trainer['name']}: determines the pod's result, so it is now first; {', '.join(others)} may keep "
        "running"
    )
    if contract.TRAINING_CONTAINER in others:
        name = contract.TRAINING_CONTAINER
        notes.append(f"container {name}: rename it; the container of that name would determine the pod's result")


def trains(container: Obj) -> bool:
    return any(pair["name"] in MARKS for pair in container.get("env") or [])
