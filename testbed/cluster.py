"""A whole cluster on this machine: a control plane and nodes that run real containers.

Everything runs in its own network, process and mount namespaces and ends with the process that started it. Only the
cache remains: binaries, the registry's images, and the images that the nodes have pulled.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from paddlejob.errors import NotPossible
from testbed.access import Access
from testbed.addons import dns
from testbed.build import packages
from testbed.build.binaries import Say, binaries
from testbed.controlplane import ControlPlane
from testbed.flags import Endpoint
from testbed.images import registry
from testbed.images.baseimages import push_base_images
from testbed.images.registry import Registry
from testbed.network.gateway import Gateway
from testbed.network.namespaces import BRIDGE, NetworkNamespace, make_bridge
from testbed.nodes import cgroups
from testbed.nodes.node import PROXY_FLAGS, SWITCH_ADDRESS, ClusterContext, Node, address, pod_subnet
from testbed.process import Process
from testbed.slot import Slot, running

LABEL = "paddlejob"
API_PORT = 6443
REGISTRY = f"{SWITCH_ADDRESS}:5000"
# A test of a lost node takes seconds instead of minutes.
QUICK_FAILURES = {
    "kube-apiserver": ["--default-not-ready-toleration-seconds=5", "--default-unreachable-toleration-seconds=5"],
    "kube-controller-manager": ["--node-monitor-grace-period=8s", "--node-monitor-period=1s"],
}


class Cluster(Access):
    """`with Cluster() as cluster: cluster.kubectl("get", "nodes")`. Needs root and Debian packages."""

    def __init__(self, nodes: int = 3, say: Say | None = None) -> None:
        say = say or _to_stderr
        if os.geteuid() != 0:
            raise NotPossible("the test cluster needs root to create namespaces and mounts; run it as root")
        packages.require(packages.NODE, say)
        self._binaries = binaries("kubelet", "kube-proxy", "coredns", say=say)
        with ExitStack() as undo:
            self._slot = Slot()
            undo.callback(self._slot.release)
            self.kept = self._slot.directory
            self.switch = self._make_switch(nodes)
            undo.callback(self.switch.close)
            targets = [f"{SWITCH_ADDRESS}:{API_PORT}", REGISTRY]
            self._gateway = Gateway(self.switch.enter, targets, self.kept / "gateway.log")
            undo.callback(self._gateway.close)
            api_port, registry_port = self._gateway.ports
            endpoint = Endpoint(self.switch.enter, SWITCH_ADDRESS, API_PORT, api_port)
            self.plane = ControlPlane(scheduler=True, endpoint=endpoint, extra=QUICK_FAILURES, say=say)
            undo.callback(self.plane.stop)
            self.directory = self.plane.directory
            self.kubeconfig, self.kubectl_path = self.plane.kubeconfig, self.plane.kubectl_path
            self.registry = Registry(registry_port)
            self.services = self._services()
            self.nodes = self._make_nodes(nodes)
            self._undo = undo.pop_all()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.plane.keep_logs = True
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.plane.keep_logs = self.plane.keep_logs or error is not None
        self.stop()

    def start(self) -> None:
        """Start everything and wait until all nodes are Ready."""
        self._gateway.start()
        self.plane.start()
        for service in self.services:
            service.start()
        for node in self.nodes:
            node.start()
        self.kubectl("create", "-f", "-", input=json.dumps(_as_list(dns.manifests(SWITCH_ADDRESS))))
        image_server, _, _ = self.services
        image_server.wait_until(self.registry.answers)
        push_base_images(self.registry)
        self.names.wait_ready()
        self.wait_ready()

    def stop(self) -> None:
        """Stop all processes. Only the cache remains."""
        for node in self.nodes:
            node.remove()
        for service in self.services:
            service.kill()
        self._undo.close()
        _sweep()

    def drop_stale_images(self) -> None:
        """Let the nodes, which keep images between runs, pull again what was pushed with other content since."""
        for node in self.nodes:
            node.drop_stale_images(self.registry.pushed)

    def wait_ready(self, *nodes: Node, patience: float = 120) -> None:
        """Wait until the given nodes are Ready, or all nodes if none is given."""
        deadline = time.monotonic() + patience
        wanted = {node.name for node in nodes or self.nodes}
        while not wanted <= (ready := self.ready_nodes()):
            if time.monotonic() > deadline:
                missing = ", ".join(sorted(wanted - ready))
                raise NotPossible(f"{missing} not Ready after {patience:.0f} s; see the logs in {self.directory}")
            time.sleep(0.2)

    def step_clock(self, node: Node, offset: int) -> None:
        """Set the clock of a node, which is so many seconds ahead then.

        The node controller takes a node for lost until its lease is newer than before, so one that has just started
        follows a step back.
        """
        back = offset < node.clock.offset
        node.clock.set(offset)
        if back:
            self.plane.restart_controllers()

    def ready_nodes(self) -> set[str]:
        """Return the names of the nodes that are Ready."""
        listed = json.loads(self.kubectl("get", "nodes", "-o", "json").stdout)["items"]
        return {node["metadata"]["name"] for node in listed if _is_ready(node)}

    def _make_switch(self, nodes: int) -> NetworkNamespace:
        switch = NetworkNamespace(self.kept / "switch.log")
        make_bridge(switch, f"{SWITCH_ADDRESS}/24")
        # Service addresses have no route; kube-proxy rewrites them on the way out.
        switch.ip("route", "add", "default", "dev", BRIDGE)
        for number in range(1, nodes + 1):
            switch.ip("route", "add", pod_subnet(number), "via", address(number))
        return switch

    def _make_nodes(self, count: int) -> list[Node]:
        context = ClusterContext(
            plane=self.plane,
            switch=self.switch,
            binaries=self._binaries,
            registry=REGISTRY,
            kept=self.kept,
            label=f"{LABEL}-{self._slot.number}",
            count=count,
        )
        return [Node(number, context) for number in range(1, count + 1)]

    def _services(self) -> list[Process]:
        """Return what runs beside the control plane: the registry, CoreDNS, and kube-proxy for Service addresses."""
        here, enter = self.directory, self.switch.enter
        self.names = dns.Names(self._binaries["coredns"], enter, SWITCH_ADDRESS, self._admin_inside(), here)
        proxy_config = self.plane.kubeconfig_inside("system:kube-proxy")
        # kube-proxy waits for a Node of its own name. The switch has none, so use any.
        arguments = [f"--kubeconfig={proxy_config}", "--hostname-override=node-1", *PROXY_FLAGS]
        return [
            registry.server(enter, REGISTRY, here),
            self.names,
            Process([*enter, self._binaries["kube-proxy"], *arguments], here / "kube-proxy.log", name="kube-proxy"),
        ]

    def _admin_inside(self) -> Path:
        return self.plane.kubeconfig_inside("cluster-admin", "system:masters")


def _sweep() -> None:
    """Remove the cgroups of clusters whose owner was killed."""
    taken = tuple(f"{LABEL}-{directory.name}-" for directory in running())
    for name in cgroups.with_prefix(f"{LABEL}-"):
        if not name.startswith(taken):
            cgroups.remove(name, patience=1)


def _is_ready(node: dict[str, Any]) -> bool:
    conditions = node["status"].get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _as_list(items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
