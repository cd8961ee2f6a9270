"""Discovers the other pods: from the environment, by their DNS names, or through the API server."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from paddlejob.launch.api_discovery import ApiDiscovery
from paddlejob.launch.group import Group, build_group
from paddlejob.launch.output import LaunchError, comma_separated, log
from paddlejob.launch.pods_api import ApiServer, Forbidden, api_server
from paddlejob.launch.settings import Settings

DNS_RETRY_SECONDS = 1.0


class Discovery(Protocol):
    def discover(self, deadline: float) -> Group:
        """The current group; waits for all pods and raises LaunchError at the deadline."""


class StaticDiscovery:
    """The peers are listed in the environment, by the embedded engine or the operator."""

    def __init__(self, environ: Mapping[str, str], trainers: int) -> None:
        addresses = [peer for peer in static_peers(environ).split(",") if peer]
        if len(addresses) != trainers:
            raise LaunchError(
                f"CONF_PADDLE_GRADIENT_NUM: {trainers} differs from the job's {len(addresses)} pods; "
                f"set it to {len(addresses)}"
            )
        own = environ.get("PADDLEJOB_POD_IP") or environ.get("POD_IP", "")
        if environ.get("PADDLEJOB_PEERS"):
            self._group = _group_of_peers(addresses, own)
        else:
            self._group = Group(tuple(addresses), int(environ.get("PADDLE_TRAINER_ID") or 0))

    def discover(self, deadline: float) -> Group:
        return self._group


def _group_of_peers(addresses: list[str], own: str) -> Group:
    try:
        return build_group(addresses, {own})
    except ValueError as error:
        raise LaunchError(f"PADDLEJOB_PEERS: {error}; set it to a comma-separated list of addresses") from None


def static_peers(environ: Mapping[str, str]) -> str:
    """Set by the embedded engine for the pods of a Job, or by the operator for the workers of a PaddleJob."""
    return environ.get("PADDLEJOB_PEERS") or environ.get("PADDLE_TRAINERS", "")


class DnsDiscovery:
    """Pods of an Indexed Job with a headless Service: `<job>-<index>.<service>`. The index is the trainer id."""

    def __init__(self, environ: Mapping[str, str], settings: Settings, resolve: Callable[[str], str] | None = None):
        self._index = int(environ["JOB_COMPLETION_INDEX"])
        suffix = f"-{self._index}"
        hostname = environ.get("HOSTNAME", "")
        job = hostname[: -len(suffix)] if hostname.endswith(suffix) else settings.job
        service = environ.get("JOB_SERVICE") or job
        self._names = [f"{job}-{index}.{service}" for index in range(settings.trainers)]
        self._resolve = resolve or look_up
        if self._index >= settings.trainers:
            raise LaunchError(
                f"this pod has index {self._index}, but CONF_PADDLE_GRADIENT_NUM is {settings.trainers}; "
                "set it to the Job's parallelism"
            )

    def discover(self, deadline: float) -> Group:
        while True:
            found = {name: self._resolve(name) for name in self._names}
            missing = [name for name, address in found.items() if not address]
            if not missing:
                return Group(tuple(found.values()), self._index)
            if time.monotonic() >= deadline:
                raise LaunchError(
                    f"cannot resolve {comma_separated(missing)}; create a headless Service of that name that selects "
                    "the Job's pods, and set `subdomain` in the pod template to its name"
                )
            time.sleep(DNS_RETRY_SECONDS)


class ApiOrDnsDiscovery:
    """Asks the API server; if that is forbidden, the pods of an Indexed Job are discovered by DNS."""

    def __init__(self, server: ApiServer, environ: Mapping[str, str], settings: Settings) -> None:
        self._discovery: Discovery = ApiDiscovery(server, environ, settings)
        self._environ = environ
        self._settings = settings

    def discover(self, deadline: float) -> Group:
        try:
            return self._discovery.discover(deadline)
        except Forbidden as error:
            if not self._environ.get("JOB_COMPLETION_INDEX"):
                raise LaunchError(forbidden_message(self._settings.namespace, str(error))) from None
            log("this pod is not allowed to list pods; discovering its peers by DNS")
            self._discovery = DnsDiscovery(self._environ, self._settings)
            return self._discovery.discover(deadline)


def choose_discovery(environ: Mapping[str, str], settings: Settings) -> Discovery:
    if static_peers(environ):
        return StaticDiscovery(environ, settings.trainers)
    indexed = environ.get("JOB_COMPLETION_INDEX")
    if indexed and environ.get("JOB_SERVICE"):
        return DnsDiscovery(environ, settings)
    server = api_server(environ)
    if server:
        return ApiOrDnsDiscovery(server, environ, settings)
    if indexed:
        return DnsDiscovery(environ, settings)
    raise LaunchError(
        "this is not a pod of a Job (no service account, no JOB_COMPLETION_INDEX, no PADDLEJOB_PEERS); submit the Job "
        "with kubectl, or run its file with `pdj run`"
    )


def forbidden_message(namespace: str, message: str) -> str:
    found = re.search(r"system:serviceaccount:([^:\"]+):([^:\"]+)", message)
    account = f"{found[1]}:{found[2]}" if found else f"{namespace}:default"
    return (
        f"the API server does not allow this pod to list the job's pods: {message}. Allow it with\n"
        f"  kubectl -n {namespace} create role paddle-job-pods --verb=list,watch --resource=pods\n"
        f"  kubectl -n {namespace} create rolebinding paddle-job-pods --role=paddle-job-pods "
        f"--serviceaccount={account}\n"
        "or use `completionMode: Indexed` with a headless Service, which needs no permission"
    )


def look_up(name: str) -> str:
    try:
        return str(socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError:
        return ""
