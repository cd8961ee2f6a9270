"""CoreDNS beside the control plane, behind the Service address that kubelets give to pods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from testbed.process import Process

SERVICE_ADDRESS = "10.96.0.10"
DOMAIN = "cluster.local"


class Names(Process):
    """CoreDNS for the cluster's own names only; it forwards no queries."""

    def __init__(self, coredns: Path, enter: Sequence[str], address: str, kubeconfig: Path, directory: Path) -> None:
        self._corefile = directory / "Corefile"
        self._address, self._kubeconfig = address, kubeconfig
        super().__init__([*enter, coredns, "-conf", self._corefile], directory / "coredns.log", name="coredns")
        self._configure(0)

    def wait_ready(self) -> None:
        self.wait_until(lambda: "CoreDNS-" in self.log.read_text())

    @contextmanager
    def cached(self, seconds: int = 30) -> Iterator[None]:
        """Keep answers, as kubeadm configures it: addresses of pods that are gone stay known for a while."""
        self._restart(seconds)
        try:
            yield
        finally:
            self._restart(0)

    def _restart(self, seconds: int) -> None:
        self.kill()
        self.log.write_text("")
        self._configure(seconds)
        self.start()
        self.wait_ready()

    def _configure(self, seconds: int) -> None:
        self._corefile.write_text(
            ".:53 {\n"
            f"  bind {self._address}\n"
            "  errors\n"
            f"  kubernetes {DOMAIN} in-addr.arpa ip6.arpa {{\n"
            f"    kubeconfig {self._kubeconfig}\n"
            "    pods insecure\n"
            f"    ttl {seconds or 5}\n"
            "  }\n"
            f"{f'  cache {seconds}' if seconds else ''}\n"
            "  loadbalance\n"
            "}\n"
        )


def manifests(address: str) -> list[dict[str, Any]]:
    """Return a Service without selector, and the EndpointSlice that points it to CoreDNS."""
    metadata = {"name": "kube-dns", "namespace": "kube-system"}
    ports = [{"name": f"dns-{kind.lower()}", "port": 53, "protocol": kind} for kind in ("UDP", "TCP")]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"clusterIP": SERVICE_ADDRESS, "ports": ports},
    }
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": metadata | {"labels": {"kubernetes.io/service-name": "kube-dns"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address]}],
        "ports": ports,
    }
    return [service, endpoints]
