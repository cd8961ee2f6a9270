"""Kubeconfig files, read by the official client library, which also runs credential plugins."""

from __future__ import annotations

import logging
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlsplit
from urllib.request import getproxies, proxy_bypass

from paddlejob.errors import NoCredentials
from paddlejob.kube.access import REREAD_SECONDS, Access, Credential, client_tls

RENEW_BEFORE_SECONDS = 60.0
TOKEN = "!#$&'*+-.^_`|~"
"""What the name of a header may contain besides letters and digits."""


def from_kubeconfig(paths: str, context: str | None = None) -> Access:
    """Access by kubeconfig: one path, or a list as in KUBECONFIG, where the first file to set a value wins."""
    chosen = _Context(paths, context)
    settings, credential = chosen.load()
    tls = None
    if settings.host.startswith("https:"):
        tls = client_tls(
            ca_file=settings.ssl_ca_cert,
            cert_file=settings.cert_file,
            key_file=settings.key_file,
            verify=settings.verify_ssl,
        )

    def fetch() -> Credential:
        # By name: the current context may be another by now, and its token is not for this server.
        settings, credential = _Context(paths, chosen.name).load()
        if tls and settings.cert_file:
            _replace_certificate(tls, settings.cert_file, settings.key_file)
        return credential

    return Access(
        settings.host,
        namespace=chosen.namespace,
        tls=tls,
        fetch=fetch,
        credential=credential,
        server_name=settings.tls_server_name,
        proxy=chosen.proxy(settings.host),
        context=chosen.name,
        impersonation=chosen.impersonation(),
    )


class _Context:
    """One context of the merged files."""

    def __init__(self, paths: str, context: str | None) -> None:
        from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger

        self.paths = paths
        try:
            merger: Any = KubeConfigMerger(paths)  # type: ignore[no-untyped-call]
            if merger.config is None:
                raise NoCredentials(f"{paths}: no such file; set KUBECONFIG to one that exists")
            name = context or _first_current_context(merger.config_files)
            if not name:
                raise NoCredentials(f"{paths}: no current-context is set; choose one with --context")
            self.name = name
            self._loader: Any = KubeConfigLoader(  # type: ignore[no-untyped-call]
                merger.config, active_context=name, config_base_path=None
            )
            self._context: dict[str, Any] = self._loader.current_context["context"]
            self._user = _named(merger.config.value["users"], self._context.get("user"), "user")
            self._cluster = _named(merger.config.value["clusters"], self._context["cluster"], "cluster")
        except NoCredentials:
            raise
        except Exception as error:
            # The library raises many kinds of errors on a malformed file.
            raise _unusable(paths, error) from error

    @property
    def namespace(self) -> str:
        return str(self._context.get("namespace") or "default")

    def impersonation(self) -> tuple[tuple[str, str], ...]:
        """The headers of `as` and its companions, as kubectl sends them."""
        user, extra = self._user.get("as"), self._user.get("as-user-extra") or {}
        headers = [
            *(("Impersonate-Group", str(group)) for group in self._user.get("as-groups") or ()),
            *([("Impersonate-Uid", str(self._user["as-uid"]))] if self._user.get("as-uid") else ()),
            *(
                (f"Impersonate-Extra-{quote(key, TOKEN)}", str(value))
                for key, values in extra.items()
                for value in values
            ),
        ]
        if headers and not user:
            raise NoCredentials(f"{self.paths}: as-groups, as-uid and as-user-extra need `as`; name a user there")
        return (("Impersonate-User", str(user)), *headers) if user else ()

    def proxy(self, server: str) -> str | None:
        """The proxy of the file, else that of the environment, as kubectl does; none for loopback."""
        proxy: str | None = self._cluster.get("proxy-url")
        host = urlsplit(server).hostname or ""
        if proxy is None and not _is_loopback(host) and not proxy_bypass(host):
            proxy = getproxies().get(urlsplit(server).scheme)
        if proxy and urlsplit(proxy).scheme not in ("http", "https"):
            raise NoCredentials(f"{self.paths}: the proxy {proxy} is not supported; use an http or https proxy")
        return proxy or None

    def load(self) -> tuple[Any, Credential]:
        """The library's settings and a credential; runs the credential plugin if there is one."""
        from kubernetes.client import Configuration

        settings: Any = Configuration()
        with _library_errors() as errors:
            try:
                self._loader.load_and_set(settings)
            except Exception as error:
                raise _unusable(self.paths, error) from error
        header = str(settings.api_key.get("BearerToken", "")).strip()
        plugin = self._user.get("exec")
        if plugin and not header and not settings.cert_file:
            raise NoCredentials(_plugin_failure(self.paths, plugin, errors))
        return settings, Credential(header, self._expires_at())

    def _expires_at(self) -> float:
        expiry: datetime | None = getattr(self._loader, "expiry", None)
        if expiry is not None:
            left = (expiry - datetime.now(UTC)).total_seconds()
            return time.monotonic() + max(1.0, left - min(RENEW_BEFORE_SECONDS, left / 4))
        if self._user.get("tokenFile"):
            return time.monotonic() + REREAD_SECONDS
        return Credential("").expires_at


def _first_current_context(files: dict[str, Any]) -> str:
    """Of the first file that has one, as kubectl does; the library takes the last."""
    return next((str(file["current-context"]) for file in files.values() if file.get("current-context")), "")


def _is_loopback(host: str) -> bool:
    return host == "localhost" or host == "::1" or host.startswith("127.")


def _named(nodes: list[Any], name: str | None, field: str) -> dict[str, Any]:
    found = (node.value[field] for node in nodes if node.value["name"] == name)
    return next(found, None) or {}


def _replace_certificate(tls: ssl.SSLContext, cert_file: str, key_file: str) -> None:
    """Use the new certificate for new connections."""
    try:
        tls.load_cert_chain(cert_file, key_file)
    except OSError as error:
        raise NoCredentials(f"the new client certificate cannot be loaded: {error}") from error


@contextmanager
def _library_errors() -> Iterator[list[str]]:
    """Collect what the library logs about a plugin that fails; it does not raise."""
    errors: list[str] = []
    thread = threading.get_ident()

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.thread == thread:
                errors.append(record.getMessage())

    collect = Collect(logging.ERROR)
    logging.getLogger().addHandler(collect)
    try:
        yield errors
    finally:
        logging.getLogger().removeHandler(collect)


def _plugin_failure(paths: str, plugin: dict[str, Any], errors: list[str]) -> str:
    command = " ".join([str(plugin.get("command")), *(plugin.get("args") or [])])
    output = "; ".join(errors) or "no error output"
    hint = f" {plugin['installHint'].strip()}" if plugin.get("installHint") else ""
    return f"{paths}: the credential plugin `{command}` returned no credentials: {output}; run it by hand.{hint}"


def _unusable(paths: str, error: Exception) -> NoCredentials:
    return NoCredentials(f"{paths}: not a usable kubeconfig: {error}; check it with `kubectl config view`")
