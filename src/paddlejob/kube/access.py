"""How to reach an API server and who we are there."""

from __future__ import annotations

import asyncio
import math
import os
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from paddlejob.errors import NoCredentials

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
REREAD_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Grant:
    """An Authorization header (empty: none is needed) and the time.monotonic() until which it is good."""

    header: str
    good_until: float = math.inf


class Access:
    """The way to one API server. `authorization()` is asked before every request, so that tokens may change.

    `fetch` brings a new grant; it may read files or run a program, so it is called in a thread.
    """

    def __init__(
        self,
        server: str,
        *,
        namespace: str = "default",
        tls: ssl.SSLContext | None = None,
        fetch: Callable[[], Grant] = lambda: Grant(""),
        grant: Grant | None = None,
        server_name: str | None = None,
        proxy: str | None = None,
    ) -> None:
        self.server = server.rstrip("/")
        self.namespace = namespace
        self.tls = tls
        self.server_name = server_name
        self.proxy = proxy
        self._fetch = fetch
        self._grant = grant
        self._fetching = asyncio.Lock()

    async def authorization(self) -> str:
        """The value of the Authorization header, empty where none is needed."""
        grant = self._grant
        if grant is None or time.monotonic() >= grant.good_until:
            grant = await self._renewed(grant)
        return grant.header

    async def renew(self, refused: str) -> bool:
        """After a 401: whether there is another header than the one that was refused."""
        grant = self._grant
        if grant is None or grant.header == refused:
            grant = await self._renewed(grant)
        return grant.header != refused

    async def _renewed(self, stale: Grant | None) -> Grant:
        async with self._fetching:
            if self._grant is None or self._grant is stale:
                self._grant = await asyncio.to_thread(self._fetch)
            return self._grant


def find_access(kubeconfig: str | None = None, context: str | None = None) -> Access:
    """The access that kubectl would use: a kubeconfig where there is one, else the pod's service account.

    This reads files and may run a credential plugin; call it before the event loop starts or in a thread.
    """
    paths = kubeconfig or os.environ.get("KUBECONFIG") or ""
    if not paths and (Path.home() / ".kube/config").exists():
        paths = str(Path.home() / ".kube/config")
    if paths or context:
        from paddlejob.kube.kubeconfig import from_kubeconfig

        return from_kubeconfig(paths or str(Path.home() / ".kube/config"), context)
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster()
    raise NoCredentials(
        "no Kubernetes cluster is configured: set KUBECONFIG to a kubeconfig file, or write one to ~/.kube/config"
    )


def in_cluster(account: Path = SERVICE_ACCOUNT) -> Access:
    """The service account of the pod we run in. Token and authorities rotate, so they are read again every minute.

    Three small files need no library: the one for kubeconfig files would cost an operator 21 MiB.
    """
    host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise NoCredentials("not inside a cluster: KUBERNETES_SERVICE_HOST is not set; use a kubeconfig")

    authority = account / "ca.crt"
    tls = client_tls(ca_file=str(authority))

    def fetch() -> Grant:
        token = _read(account / "token")
        # Authorities are added, none is taken away: while they rotate, both are in use.
        with suppress(OSError):
            tls.load_verify_locations(authority)
        return Grant(f"Bearer {token}", time.monotonic() + REREAD_SECONDS)

    grant = fetch()
    namespace = account / "namespace"
    return Access(
        f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        namespace=_read(namespace) if namespace.exists() else "default",
        tls=tls,
        fetch=fetch,
        grant=grant,
    )


def client_tls(
    *,
    ca_file: str | None = None,
    cert_file: str | None = None,
    key_file: str | None = None,
    verify: bool = True,
) -> ssl.SSLContext:
    """A TLS context from certificate files; the system's authorities where `ca_file` is absent."""
    try:
        tls = ssl.create_default_context(cafile=ca_file)
        # Python 3.13 made this the default; authorities of many clusters lack the key identifier it wants.
        tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not verify:
            tls.check_hostname = False
            tls.verify_mode = ssl.CERT_NONE
        if cert_file:
            tls.load_cert_chain(cert_file, key_file)
    except (OSError, ssl.SSLError) as fault:
        named = ", ".join(name for name in (ca_file, cert_file, key_file) if name)
        raise NoCredentials(f"certificates cannot be used: {fault}; check {named}") from fault
    return tls


def _read(file: Path) -> str:
    try:
        text = file.read_text().strip()
    except OSError as fault:
        raise NoCredentials(
            f"{file} cannot be read ({fault.strerror}); mount the pod's service account token "
            "(automountServiceAccountToken: true)"
        ) from fault
    if not text:
        raise NoCredentials(f"{file} is empty; mount the pod's service account token")
    return text
