"""Command-line flags of the control plane's programs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from testbed.credentials.certificates import Pair

SERVICE_RANGE = "10.96.0.0/16"


@dataclass(frozen=True)
class Endpoint:
    """Where the API server listens, and how it is reached.

    enter: command prefix that runs a program in its network namespace.  address, port: where it listens inside.
    local_port: the port on 127.0.0.1 that leads to it from outside the namespace.
    """

    enter: tuple[str, ...] = ()
    address: str = "127.0.0.1"
    port: int | None = None
    local_port: int | None = None


@dataclass(frozen=True)
class Layout:
    """Directories, ports and certificates of one control plane."""

    directory: Path
    endpoint: Endpoint
    port: int
    etcd_port: int
    authority: Pair
    server: Pair
    admin: Pair
    accounts: Pair

    @property
    def url(self) -> str:
        """The URL of the API server for the other components and the nodes."""
        return f"https://{self.endpoint.address}:{self.port}"

    @property
    def outside_port(self) -> int:
        """The port of the API server on 127.0.0.1, as the tests reach it."""
        return self.endpoint.local_port or self.port

    @property
    def etcd_url(self) -> str:
        return f"http://127.0.0.1:{self.etcd_port}"


def etcd(layout: Layout, peer_port: int) -> list[str]:
    peer = f"http://127.0.0.1:{peer_port}"
    return [
        f"--data-dir={layout.directory / 'etcd'}",
        f"--listen-client-urls={layout.etcd_url}",
        f"--advertise-client-urls={layout.etcd_url}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def apiserver(layout: Layout) -> list[str]:
    # An Endpoints object must not contain a loopback address.
    loopback = layout.endpoint.address.startswith("127.")
    return [
        "--endpoint-reconciler-type=none" if loopback else f"--advertise-address={layout.endpoint.address}",
        f"--etcd-servers={layout.etcd_url}",
        f"--bind-address={layout.endpoint.address}",
        f"--secure-port={layout.port}",
        f"--cert-dir={layout.directory}",
        f"--tls-cert-file={layout.server.certificate}",
        f"--tls-private-key-file={layout.server.key}",
        f"--client-ca-file={layout.authority.certificate}",
        f"--kubelet-certificate-authority={layout.authority.certificate}",
        f"--kubelet-client-certificate={layout.admin.certificate}",
        f"--kubelet-client-key={layout.admin.key}",
        # Otherwise `logs` and `exec` look up the node's name in DNS.
        "--kubelet-preferred-address-types=InternalIP",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={layout.accounts.key}",
        f"--service-account-signing-key-file={layout.accounts.key}",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged",
        "--profiling=false",
    ]


def controller_manager(layout: Layout, kubeconfig: Path) -> list[str]:
    return [
        f"--kubeconfig={kubeconfig}",
        f"--service-account-private-key-file={layout.accounts.key}",
        f"--root-ca-file={layout.authority.certificate}",
        "--use-service-account-credentials",
        "--leader-elect=false",
        "--secure-port=0",
        # With the default of 20 a new namespace waits seconds for its service account.
        "--kube-api-qps=300",
        "--kube-api-burst=600",
    ]


def scheduler(kubeconfig: Path, directory: Path) -> list[str]:
    configuration = directory / "scheduler.yaml"
    configuration.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        "leaderElection: {leaderElect: false}\n"
        f"clientConnection: {{kubeconfig: {kubeconfig}, qps: 1000, burst: 2000}}\n"
    )
    return [f"--config={configuration}", "--secure-port=0"]
