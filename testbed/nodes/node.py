"""One node: containerd, kubelet and kube-proxy in their own namespaces."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.controlplane import ControlPlane
from testbed.network.namespaces import NetworkNamespace, connect
from testbed.nodes import cgroups, files, init
from testbed.nodes.clock import NodeClock, write_zone
from testbed.process import Process

SWITCH_ADDRESS = "10.89.0.1"
POD_RANGE = "10.88.0.0/16"
PROXY_FLAGS = (
    "--proxy-mode=iptables",
    f"--cluster-cidr={POD_RANGE}",
    # Connection limits are a setting of the whole machine: leave them alone.
    "--conntrack-max-per-core=0",
    "--conntrack-tcp-timeout-established=0",
    "--conntrack-tcp-timeout-close-wait=0",
)
ZONES = (0, -8, 5)
"""Hours between UTC and the winter time of nodes, in turn; containerd writes local time into logs."""


@dataclass(frozen=True)
class ClusterContext:
    """What all nodes of a cluster share. `kept` is for pulled images and outlives the cluster."""

    plane: ControlPlane
    switch: NetworkNamespace
    binaries: Mapping[str, Path]
    registry: str
    kept: Path
    label: str
    count: int


def address(number: int) -> str:
    return f"10.89.0.{10 + number}"


def pod_subnet(number: int) -> str:
    return f"10.88.{number}.0/24"


class Node:
    """A node that can be killed, disconnected and restarted."""

    def __init__(self, number: int, context: ClusterContext) -> None:
        self.number = number
        self.name = f"node-{number}"
        self.address = address(number)
        self._context = context
        self._directory = context.plane.directory / self.name
        self._directory.mkdir()
        self._cgroup = f"{context.label}-{self.name}"
        self._port = f"veth{number}"
        self._network: NetworkNamespace | None = None
        self._process: Process | None = None
        self._zone = ZONES[number % len(ZONES)]
        self._plan = self._write_files()
        self.clock = NodeClock(self._children)

    @property
    def kubelet_directory(self) -> Path:
        """What the node sees as /var/lib/kubelet."""
        return self._directory / "kubelet"

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.alive

    def start(self) -> None:
        """Start the node. `Cluster.wait_ready` waits until Kubernetes reports it Ready."""
        # cAdvisor spends seconds on each cgroup left by a killed node.
        cgroups.remove(self._cgroup)
        cgroups.make(self._cgroup)
        self._network = self._connect()
        command = [
            *self._network.enter,
            *("unshare", "--pid", "--mount", "--uts", "--ipc", "--fork", "--kill-child=KILL"),
            *(sys.executable, "-I", init.__file__, str(self._plan)),
        ]
        self._process = Process(command, self._directory / "init.log", name=self.name)
        self._process.start()

    def kill(self) -> None:
        """Kill all processes of the node and remove its network, as in a power failure."""
        if self._process is not None:
            self._process.kill()
        if self._network is not None:
            self._network.close()
        self._process = self._network = None

    def remove(self) -> None:
        """Kill the node and remove its cgroups."""
        self.clock.close()
        self.kill()
        cgroups.remove(self._cgroup)

    def cut(self) -> None:
        """Disconnect the node from the network. Its containers keep running."""
        self._context.switch.ip("link", "set", self._port, "down")

    def mend(self) -> None:
        """Undo `cut`."""
        self._context.switch.ip("link", "set", self._port, "up")

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command on the node, such as run("ctr", "-n", "k8s.io", "task", "ls")."""
        inside = ["nsenter", "-t", str(self._init()), "-n", "-p", "-m", "-u", "-i", "--", *command]
        return subprocess.run(inside, capture_output=True, text=True, check=check, stdin=subprocess.DEVNULL)

    def restart(self, service: str) -> None:
        """Kill a service, which is a child of the node's process 1; that starts it again."""
        for pid in self.run("pgrep", "-P", "1", "-x", service, check=False).stdout.split():
            self.run("kill", "-KILL", pid, check=False)

    def end_daylight_saving(self, seconds: float) -> None:
        """Let daylight saving time end in so many seconds. containerd starts again to learn of it; containers go on."""
        ends = time.time() + self.clock.offset + seconds
        write_zone(self._directory / "localtime", self._zone, ends)
        self.restart("containerd")

    def load(self, archive: Path) -> None:
        """Import an image from a file written by `image.archive`, bypassing the registry."""
        self.run("ctr", "-n", "k8s.io", "image", "import", str(archive))

    def drop_stale_images(self, current: Mapping[str, str]) -> None:
        """Remove images whose digest differs from the one in `current`, so that pods pull the new image."""
        for line in self.run("ctr", "-n", "k8s.io", "image", "ls").stdout.splitlines()[1:]:
            name, _, digest = line.split()[:3]
            if current.get(name, digest) != digest:
                self.run("ctr", "-n", "k8s.io", "image", "rm", "--sync", name)

    def _init(self) -> int:
        """Return the pid of the node's process 1, the only child of unshare."""
        if self._process is None:
            raise AssertionError(f"{self.name} is not running")
        return _children(self._process.pid)[0]

    def _children(self) -> list[int]:
        """Return the services of the node and the shims of its containers."""
        process = self._process
        first = _children(process.pid)[:1] if process is not None else []
        return _children(first[0]) if first else []

    def _connect(self) -> NetworkNamespace:
        network = NetworkNamespace(self._directory / "network.log")
        connect(self._context.switch, network, self._port, f"{self.address}/24", SWITCH_ADDRESS)
        network.set("net/ipv4/ip_forward", "1")
        for other in range(1, self._context.count + 1):
            if other != self.number:
                network.ip("route", "add", pod_subnet(other), "via", address(other))
        return network

    def _write_files(self) -> Path:
        here, context = self._directory, self._context
        images = context.kept / self.name / "containerd"
        images.mkdir(parents=True, exist_ok=True)
        files.cni(here, pod_subnet(self.number))
        plan = {
            "hostname": self.name,
            "tmpfs": ["/run", "/var/lib/cni"],
            "binds": {"/var/log": str(here / "log"), "/var/lib/kubelet": str(self.kubelet_directory)},
            "files": {"/etc/hosts": str(files.hosts(here, context.count, address))},
            "environment": {"TZ": str(write_zone(here / "localtime", self._zone))},
            "socket": files.RUNTIME_SOCKET,
            "services": {
                "containerd": ["containerd", "--config", str(files.containerd(here, images, context.registry))],
                "kubelet": self._kubelet(),
                "kube-proxy": self._kube_proxy(),
            },
        }
        path = here / "node.json"
        path.write_text(json.dumps(plan))
        return path

    def _kubelet(self) -> list[str]:
        plane = self._context.plane
        serving = plane.authority.issue(f"{self.name}-serving", self.name, hosts=[self.address, self.name])
        authority = plane.authority.pair.certificate
        reserved = _memory() * (self._context.count - 1) // self._context.count
        return [
            str(self._context.binaries["kubelet"]),
            f"--config={files.kubelet(self._directory, self._cgroup, authority, serving, reserved)}",
            f"--kubeconfig={plane.kubeconfig_inside(f'system:node:{self.name}', 'system:nodes')}",
            f"--hostname-override={self.name}",
            f"--node-ip={self.address}",
            f"--cert-dir={self._directory}",
        ]

    def _kube_proxy(self) -> list[str]:
        return [
            str(self._context.binaries["kube-proxy"]),
            f"--kubeconfig={self._context.plane.kubeconfig_inside('system:kube-proxy')}",
            f"--hostname-override={self.name}",
            *PROXY_FLAGS,
        ]


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
