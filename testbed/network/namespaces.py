"""Network namespaces that live as long as the process that holds them."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from paddlejob.errors import NotPossible
from testbed.process import Process

BRIDGE = "br0"
# Fixed, because a bridge otherwise takes the lowest address of its ports, which changes when a node dies.
BRIDGE_MAC = "02:00:0a:59:00:01"


class NetworkNamespace:
    """A new network namespace that contains only loopback."""

    def __init__(self, log: Path) -> None:
        self._holder = Process(["unshare", "--net", "--", "sleep", "infinity"], log, name="netns")
        self._holder.start()
        own = Path("/proc/self/ns/net").readlink()
        self._holder.wait_until(lambda: self._file.readlink() != own and self._is_sleep(), patience=20)
        self.ip("link", "set", "lo", "up")

    @property
    def enter(self) -> tuple[str, ...]:
        """The command prefix that runs a program in this namespace."""
        return ("nsenter", f"--net={self._file}", "--")

    @property
    def pid(self) -> int:
        return self._holder.pid

    def ip(self, *arguments: str) -> None:
        """Run `ip` in the namespace."""
        self.run("ip", *arguments)

    def set(self, sysctl: str, value: str) -> None:
        self.run("sh", "-c", f"echo {value} > /proc/sys/{sysctl}")

    def run(self, *command: str) -> None:
        done = subprocess.run([*self.enter, *command], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise NotPossible(f"{' '.join(command)}: {done.stderr.strip()}")

    def close(self) -> None:
        """Release it. The kernel removes its devices and rules when its last process has exited."""
        self._holder.kill()

    @property
    def _file(self) -> Path:
        return Path(f"/proc/{self._holder.pid}/ns/net")

    def _is_sleep(self) -> bool:
        return Path(f"/proc/{self._holder.pid}/comm").read_text().strip() == "sleep"


def make_bridge(namespace: NetworkNamespace, address: str) -> None:
    """Create the bridge to which all nodes are connected."""
    namespace.ip("link", "add", BRIDGE, "address", BRIDGE_MAC, "type", "bridge")
    namespace.ip("addr", "add", address, "dev", BRIDGE)
    namespace.ip("link", "set", BRIDGE, "up")


def connect(switch: NetworkNamespace, node: NetworkNamespace, port: str, address: str, gateway: str) -> None:
    """Connect a node's eth0 to the bridge."""
    # The kernel may still be removing the interface of a node that was killed.
    deadline = time.monotonic() + 10
    while True:
        try:
            switch.ip("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", str(node.pid))
            break
        except NotPossible:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
    switch.ip("link", "set", port, "master", BRIDGE, "up")
    node.ip("addr", "add", address, "dev", "eth0")
    node.ip("link", "set", "eth0", "up")
    node.ip("route", "add", "default", "via", gateway)
