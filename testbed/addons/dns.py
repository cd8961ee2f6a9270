"""CoreDNS beside the control plane, behind the Service address that kubelets give to pods."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from testbed.process import Process

SERVICE_ADDRESS = "10.96.0.10"
DOMAIN = "cluster.local"


def server(coredns: Path, enter: Sequence[str], address: str, kubeconfig: Path, directory: Path) -> Process:
    """Return CoreDNS for the cluster's own names only; it forwards no queries."""
    corefile = directory / "Corefile"
    corefile.write_text(
        ".:53 {\n"
        f"  bind {address}\n"
        "  errors\n"
        f"  kubernetes {DOMAIN} in-addr.arpa ip6.arpa {{\n"
        f"    kubeconfig {kubeconfig}\n"
        "    pods insecure\n"
        "  }\n"
        "  loadbalance\n"
        "}\n"
    )
    return Process([*enter, coredns, "-conf", corefile], directory / "coredns.log", name="coredns")


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
