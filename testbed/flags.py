"""Command lines of the control plane's programs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from testbed.credentials.certificates import Pair

SERVICE_RANGE = "10.96.0.0/16"


@dataclass(frozen=True)
class Place:
    """Where a control plane runs: behind the command prefix `enter`, and at which port of 127.0.0.1 we reach it."""

    enter: tuple[str, ...] = ()
    address: str = "127.0.0.1"
    port: int | None = None
    reached_at: int | None = None


@dataclass(frozen=True)
class Layout:
    """Where the parts of one control plane are found."""

    directory: Path
    place: Place
    port: int
    etcd_port: int
    authority: Pair
    server: Pair
    admin: Pair
    accounts: Pair

    @property
    def url(self) -> str:
        """Where its own parts and its nodes find the API server."""
        return f"https://{self.place.address}:{self.port}"

    @property
    def outside_port(self) -> int:
        """The port of 127.0.0.1 at which we find it."""
        return self.place.reached_at or self.port

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
    # An Endpoints object must not hold a loopback address.
    loopback = layout.place.address.startswith("127.")
    return [
        "--endpoint-reconciler-type=none" if loopback else f"--advertise-address={layout.place.address}",
        f"--etcd-servers={layout.etcd_url}",
        f"--bind-address={layout.place.address}",
        f"--secure-port={layout.port}",
        f"--cert-dir={layout.directory}",
        f"--tls-cert-file={layout.server.certificate}",
        f"--tls-private-key-file={layout.server.key}",
        f"--client-ca-file={layout.authority.certificate}",
        f"--kubelet-certificate-authority={layout.authority.certificate}",
        f"--kubelet-client-certificate={layout.admin.certificate}",
        f"--kubelet-client-key={layout.admin.key}",
        # Else `logs` and `exec` look up the node's name in DNS.
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
