"""The address of an API server, and the credentials for it."""

from __future__ import annotations

import asyncio
import math
import os
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from pathlib import Path

from paddlejob.errors import NoCredentials

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
REREAD_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Credential:
    """An Authorization header, empty if none is needed, and the time.monotonic() at which it expires."""

    header: str
    expires_at: float = math.inf


class Access:
    """Access to one API server. `authorization()` is called before every request, because tokens change.

    `fetch` returns a new credential; it may read files or run a program, so it is called in a thread.
    """

    def __init__(
        self,
        server: str,
        *,
        namespace: str = "default",
        tls: ssl.SSLContext | None = None,
        fetch: Callable[[], Credential] = lambda: Credential(""),
        credential: Credential | None = None,
        server_name: str | None = None,
        proxy: str | None = None,
        context: str = "",
        impersonation: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.server = server.rstrip("/")
        self.namespace = namespace
        self.tls = tls
        self.server_name = server_name
        self.proxy = proxy
        self.context = context
        """Of the kubeconfig, also if it was its current one; empty for a service account."""
        self.impersonation = impersonation
        """Headers that make requests on behalf of another user."""
        self._fetch = fetch
        self._credential = credential
        self._fetching = asyncio.Lock()

    def for_another_loop(self) -> Access:
        """The same access, with a lock of its own: a lock belongs to one event loop."""
        other = copy(self)
        other._fetching = asyncio.Lock()
        return other

    async def authorization(self) -> str:
        """The value of the Authorization header, empty if none is needed."""
        credential = self._credential
        if credential is None or time.monotonic() >= credential.expires_at:
            credential = await self._renewed(credential)
        return credential.header

    async def renew(self, rejected: str) -> bool:
        """After a 401, returns whether there is now another header than the rejected one."""
        credential = self._credential
        if credential is None or credential.header == rejected:
            credential = await self._renewed(credential)
        return credential.header != rejected

    async def _renewed(self, stale: Credential | None) -> Credential:
        async with self._fetching:
            if self._credential is None or self._credential is stale:
                self._credential = await asyncio.to_thread(self._fetch)
            return self._credential


def find_access(kubeconfig: str | None = None, context: str | None = None) -> Access:
    """The access that kubectl would use: a kubeconfig if there is one, else the pod's service account.

    This reads files and may run a credential plugin, so call it before the event loop starts or in a thread.
    """
    paths = kubeconfig or os.environ.get("KUBECONFIG") or ""
    default = os.path.expanduser("~/.kube/config")  # noqa: PTH111 (Path fails where no home directory is known)
    if not paths and Path(default).exists():
        paths = default
    if paths or context:
        from paddlejob.kube.kubeconfig import from_kubeconfig

        return from_kubeconfig(paths or default, context)
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster()
    raise NoCredentials(
        "no Kubernetes cluster is configured; set KUBECONFIG to a kubeconfig file, or put one at ~/.kube/config"
    )


def in_cluster(account: Path = SERVICE_ACCOUNT) -> Access:
    """Access by the service account of this pod; its token and CA certificates rotate and are read again every minute.

    The three files are read without the library for kubeconfig files, which would cost the operator 21 MiB.
    """
    host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise NoCredentials("not running in a cluster (KUBERNETES_SERVICE_HOST is not set); use a kubeconfig")

    authority = account / "ca.crt"
    tls = client_tls(ca_file=str(authority))

    def fetch() -> Credential:
        token = _read(account / "token")
        # Certificates are added and never removed: during a rotation both are in use.
        with suppress(OSError):
            tls.load_verify_locations(authority)
        return Credential(f"Bearer {token}", time.monotonic() + REREAD_SECONDS)

    credential = fetch()
    namespace = account / "namespace"
    return Access(
        f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        namespace=_read(namespace) if namespace.exists() else "default",
        tls=tls,
        fetch=fetch,
        credential=credential,
    )


def client_tls(
    *,
    ca_file: str | None = None,
    cert_file: str | None = None,
    key_file: str | None = None,
    verify: bool = True,
) -> ssl.SSLContext:
    """A TLS context from certificate files; without `ca_file`, the system's CA certificates are used."""
    try:
        tls = ssl.create_default_context(cafile=ca_file)
        # The default since Python 3.13; the CA certificates of many clusters lack the key identifier that it requires.
        tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not verify:
            tls.check_hostname = False
            tls.verify_mode = ssl.CERT_NONE
        if cert_file:
            tls.load_cert_chain(cert_file, key_file)
    except OSError as error:
        files = ", ".join(name for name in (ca_file, cert_file, key_file) if name)
        raise NoCredentials(f"the certificates cannot be loaded: {error}; check {files}") from error
    return tls


def _read(file: Path) -> str:
    try:
        text = file.read_text().strip()
    except OSError as error:
        raise NoCredentials(
            f"{file} cannot be read ({error.strerror}); mount the pod's service account token "
            "(automountServiceAccountToken: true)"
        ) from error
    if not text:
        raise NoCredentials(f"{file} is empty; mount the pod's service account token")
    return text
