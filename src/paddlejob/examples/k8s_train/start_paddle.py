#!/usr/bin/env python3
"""Starts a parameter server and a trainer in a pod of a Kubernetes Job.

Generated from paddlejob.launch by `make generate`; do not edit. Requires only Python 3.8 or newer.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import http.client
import ipaddress
import json
import os
import re
import selectors
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from types import FrameType
from typing import IO, Any, NamedTuple, Protocol
from urllib.parse import quote, urlencode

# The launcher's output, its exit codes and the error that ends it.
EXIT_BAD_SETUP = 2
EXIT_PEER_LOST = 75
"""This pod is healthy and exits only because a peer did, so the Job may retry it."""


class LaunchError(Exception):
    """Ends the launcher with this message and exit code."""

    def __init__(self, message: str, exit_code: int = EXIT_BAD_SETUP) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def log(line: str) -> None:
    """Print a line; a closed standard output must not stop training."""
    with contextlib.suppress(OSError):
        print(f"start_paddle: {line}", flush=True)


def comma_separated(names: list[str]) -> str:
    return ", ".join(names) if names else "nothing"


# The settings from the Job's environment and the command line; all errors are reported at once.
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
WAIT_SECONDS = 600
FLEET_PORTS = 4
"""Current Paddle needs three ports starting at CONF_PADDLE_PORT: server, trainer and gloo. The documents open four."""


@dataclass(frozen=True)
class Settings:
    job: str
    root: Path
    """JOB_PATH/JOB_NAME on the shared volume."""
    namespace: str
    config_dir: str
    nic: str
    port: int
    ports: int
    sparse_ports: int
    trainers: int
    threads: int
    wait_seconds: int
    trainer_args: tuple[str, ...]
    """Arguments for the trainer, unchanged."""

    @property
    def config(self) -> Path:
        return self.root / self.config_dir

    @property
    def output(self) -> Path:
        return self.root / "output"

    @property
    def rendezvous_port(self) -> int:
        """The first port after those of the servers; the launchers of a group connect to each other on it."""
        return self.port + max(self.ports + self.sparse_ports, FLEET_PORTS)

    def data_dir(self, trainer: int) -> Path:
        return self.root / str(trainer) / "data"

    def log_dir(self, trainer: int) -> Path:
        return self.output / f"node_{trainer}"


def read_settings(environ: Mapping[str, str], arguments: Sequence[str]) -> Settings:
    errors: list[str] = []
    job, path, config_dir = (_text(environ, name, errors) for name in ("JOB_NAME", "JOB_PATH", "TRAIN_CONFIG_DIR"))
    found = Settings(
        job=job,
        root=Path(path) / job,
        namespace=environ.get("JOB_NAMESPACE") or _own_namespace(),
        config_dir=config_dir,
        nic=environ.get("CONF_PADDLE_NIC") or "eth0",
        port=_number(environ, "CONF_PADDLE_PORT", 7164, 1, errors),
        ports=_number(environ, "CONF_PADDLE_PORTS_NUM", 2, 1, errors),
        sparse_ports=_number(environ, "CONF_PADDLE_PORTS_NUM_SPARSE", 2, 0, errors),
        trainers=_number(environ, "CONF_PADDLE_GRADIENT_NUM", _known_trainers(environ), 1, errors),
        threads=_number(environ, "TRAINER_COUNT", 1, 1, errors),
        wait_seconds=_number(environ, "JOB_WAIT_SECONDS", WAIT_SECONDS, 1, errors),
        trainer_args=tuple(arguments),
    )
    if not errors and found.rendezvous_port > 65535:
        errors.append(f"CONF_PADDLE_PORT: {found.port} is too high; the ports after it exceed 65535; use a lower port")
    if errors:
        raise LaunchError("; ".join(errors))
    return found


def require_config(settings: Settings) -> None:
    """Raise if TRAIN_CONFIG_DIR or the whole volume is missing, and list what exists instead."""
    if settings.config.is_dir():
        return
    if not settings.root.is_dir():
        raise LaunchError(
            f"{settings.root}: no such directory; set JOB_PATH to the mount path of the shared volume and JOB_NAME to "
            "the directory on it that the data job created"
        )
    directories = sorted(path.name for path in settings.root.iterdir() if path.is_dir())
    programs = [name for name in directories if not name.isdigit() and name != "output"]
    raise LaunchError(
        f"TRAIN_CONFIG_DIR: no directory {settings.config_dir} in {settings.root}; found {comma_separated(programs)}"
    )


def _text(environ: Mapping[str, str], name: str, errors: list[str]) -> str:
    value = environ.get(name, "")
    if not value:
        errors.append(f"{name}: not set; set it in the Job's env")
    return value


def _number(environ: Mapping[str, str], name: str, default: int, minimum: int, errors: list[str]) -> int:
    text = environ.get(name) or str(default)
    if text.isdecimal() and int(text) >= minimum:
        return int(text)
    problem = f"{environ[name]} is not valid" if environ.get(name) else "not set"
    errors.append(f"{name}: {problem}; set it to a whole number, {minimum} or more")
    return minimum


def _known_trainers(environ: Mapping[str, str]) -> int:
    """The number of trainers from the embedded engine or the operator of a PaddleJob; otherwise 0."""
    peers = [peer for peer in environ.get("PADDLEJOB_PEERS", "").split(",") if peer]
    count = environ.get("PADDLE_TRAINERS_NUM", "")
    return len(peers) or (int(count) if count.isdecimal() else 0)


def _own_namespace() -> str:
    mounted = SERVICE_ACCOUNT / "namespace"
    return mounted.read_text().strip() if os.access(mounted, os.R_OK) else "default"


# The pods that train together, in the order of their trainer ids.


class Group(NamedTuple):
    addresses: tuple[str, ...]
    rank: int
    """This pod's index in the list: its trainer id."""

    @property
    def own(self) -> str:
        return self.addresses[self.rank]

    @property
    def digest(self) -> str:
        """Identifies the group: equal for all pods that see the same addresses."""
        return hashlib.sha256(",".join(self.addresses).encode()).hexdigest()[:16]

    def endpoints(self, port: int) -> list[str]:
        return [f"{format_host(address)}:{port}" for address in self.addresses]


def format_host(address: str) -> str:
    """The address as written in front of a port: IPv6 in brackets."""
    return f"[{address}]" if ":" in address else address


def sort_addresses(addresses: Iterable[str]) -> list[str]:
    """Sort numerically: 10.0.0.9 comes before 10.0.0.10, and IPv4 before IPv6."""
    return sorted(addresses, key=lambda text: (ipaddress.ip_address(text).version, int(ipaddress.ip_address(text))))


def build_group(addresses: Iterable[str], own: Collection[str]) -> Group:
    """The group of these addresses, exactly one of which must be in `own`."""
    ordered = sort_addresses(addresses)
    ranks = [rank for rank, address in enumerate(ordered) if address in own]
    if len(ranks) != 1:
        raise LaunchError(
            f"the job's addresses ({comma_separated(ordered)}) do not contain this pod's address "
            f"({comma_separated(sorted(own))}) exactly once; set POD_IP from status.podIP in the Job's env"
        )
    return Group(tuple(ordered), ranks[0])


# The fields of a Kubernetes pod that its peers need.


class Pod(NamedTuple):
    name: str
    addresses: tuple[str, ...]
    """The first one belongs to the cluster's primary IP family."""
    phase: str
    owner: str
    terminating: bool
    message: str = ""
    """Why the pod is not running, as reported by Kubernetes."""

    @property
    def is_running(self) -> bool:
        return self.phase == "Running" and bool(self.addresses) and not self.terminating

    @property
    def is_active(self) -> bool:
        return self.phase in ("Running", "Pending") and not self.terminating


def parse_pod(document: dict[str, Any]) -> Pod:
    metadata, status = document["metadata"], document.get("status") or {}
    addresses = [entry["ip"] for entry in status.get("podIPs") or [] if entry.get("ip")]
    if not addresses and status.get("podIP"):
        addresses = [status["podIP"]]
    owner = next((ref["uid"] for ref in metadata.get("ownerReferences") or [] if ref.get("controller")), "")
    return Pod(
        name=metadata["name"],
        addresses=tuple(addresses),
        phase=status.get("phase") or "Pending",
        owner=owner,
        terminating="deletionTimestamp" in metadata,
        message=_status_message(status),
    )


def _status_message(status: dict[str, Any]) -> str:
    """Kubernetes' own reason and message: unscheduled, a waiting or failed container, or an eviction."""
    for condition in status.get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return _reason_and_message(condition)
    for container in (status.get("initContainerStatuses") or []) + (status.get("containerStatuses") or []):
        state = container.get("state") or {}
        if state.get("waiting"):
            return _reason_and_message(state["waiting"])
        if (state.get("terminated") or {}).get("exitCode"):
            return f"exit code {state['terminated']['exitCode']}"
    return _reason_and_message(status)


def _reason_and_message(part: dict[str, Any]) -> str:
    return ": ".join(part[key] for key in ("reason", "message") if part.get(key))


# Lists and watches the pods of one Job through the API server, with the pod's own service account.
REQUEST_SECONDS = 30
WATCH_SECONDS = 60
RETRY_SECONDS = 1.0


class Forbidden(Exception):
    """The service account may not list or watch pods."""


class Unavailable(Exception):
    """No response, an invalid response, or a response that asks for a retry."""


class ResourceExpired(Exception):
    """The resource version of a watch is too old; list again."""


class ApiServer(NamedTuple):
    host: str
    port: int
    token: Path
    authority: Path

    def connect(self) -> http.client.HTTPConnection:
        context = ssl.create_default_context(cafile=str(self.authority))
        return http.client.HTTPSConnection(self.host, self.port, timeout=REQUEST_SECONDS, context=context)


def api_server(environ: Mapping[str, str], account: Path = SERVICE_ACCOUNT) -> ApiServer | None:
    """The API server named by the pod's environment; None in a pod without a service account."""
    address, token = environ.get("KUBERNETES_SERVICE_HOST"), account / "token"
    if not address or not token.exists():
        return None
    port = int(environ.get("KUBERNETES_SERVICE_PORT") or 443)
    return ApiServer(address, port, token, account / "ca.crt")


class JobPods:
    """The pods with the Job's job-name label."""

    def __init__(self, server: ApiServer, namespace: str, job: str) -> None:
        self._server = server
        self._path = f"/api/v1/namespaces/{quote(namespace)}/pods"
        self._selector = {"labelSelector": f"job-name={job}"}
        self.last_error = ""
        """Why the last request failed; empty if it succeeded."""

    def snapshots(self, deadline: float) -> Iterator[list[Pod]]:
        """Yield all pods now and after each change, until the deadline."""
        while time.monotonic() < deadline:
            try:
                found, version = self._list()
                self.last_error = ""
                yield list(found.values())
                with contextlib.suppress(ResourceExpired):
                    yield from self._watch(found, version, deadline)
            except Unavailable as error:
                if not self.last_error:
                    log(f"the API server at {self._server.host} is not responding ({error}); retrying")
                self.last_error = str(error)
            # Also after a watch: a proxy may close every watch at once.
            time.sleep(min(RETRY_SECONDS, max(0.0, deadline - time.monotonic())))

    def _list(self) -> tuple[dict[str, Pod], str]:
        connection, response = self._request(self._selector, REQUEST_SECONDS)
        try:
            answer = json.loads(response.read())
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise Unavailable(str(error)) from None
        finally:
            connection.close()
        found = {pod["metadata"]["name"]: parse_pod(pod) for pod in answer.get("items") or []}
        return found, answer["metadata"]["resourceVersion"]

    def _watch(self, found: dict[str, Pod], version: str, deadline: float) -> Iterator[list[Pod]]:
        seconds = max(1, min(WATCH_SECONDS, int(deadline - time.monotonic())))
        query = dict(self._selector, watch="1", resourceVersion=version, timeoutSeconds=str(seconds))
        connection, response = self._request(query, seconds + REQUEST_SECONDS)
        try:
            for line in iter(response.readline, b""):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                _apply_event(found, event)
                yield list(found.values())
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise Unavailable(str(error)) from None
        finally:
            connection.close()

    def _request(self, query: Mapping[str, str], seconds: float) -> tuple[http.client.HTTPConnection, Any]:
        try:
            # Both files are read each time: the kubelet replaces a token before it expires.
            token, connection = self._server.token.read_text().strip(), self._server.connect()
        except OSError as error:
            raise Unavailable(f"cannot read the files of the service account: {error}") from None
        connection.timeout = seconds
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        try:
            connection.request("GET", f"{self._path}?{urlencode(query)}", headers=headers)
            response = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Unavailable(str(error) or type(error).__name__) from None
        if response.status != 200:
            message = _error_message(response)
            connection.close()
            _raise_for_status(response.status, message)
        return connection, response


def _raise_for_status(status: int, message: str) -> None:
    if status == 403:
        raise Forbidden(message)
    if status == 401:
        raise LaunchError(f"the API server does not accept this pod's token: {message}")
    if status == 410:
        raise ResourceExpired
    raise Unavailable(f"{status} {message}")


def _error_message(response: Any) -> str:
    try:
        return str(json.loads(response.read())["message"])
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
        return str(response.reason)


def _apply_event(found: dict[str, Pod], event: dict[str, Any]) -> None:
    pod = parse_pod(event["object"])
    if event["type"] == "DELETED":
        found.pop(pod.name, None)
    else:
        found[pod.name] = pod


# Discovers the other pods of the Job through the API server.


class AlreadySucceeded(Exception):
    """Another pod of the job has succeeded, which happens only after all trainers have."""


class ApiDiscovery:
    """Waits until the API server lists as many running pods of the Job as there are trainers."""

    def __init__(self, server: ApiServer, environ: Mapping[str, str], settings: Settings) -> None:
        self._pods = JobPods(server, settings.namespace, settings.job)
        self._settings = settings
        self._hostname = environ.get("HOSTNAME") or socket.gethostname()
        self._own = {environ.get("POD_IP") or _local_address(server)}
        self._last_logged = ""

    def discover(self, deadline: float) -> Group:
        pods: list[Pod] = []
        for snapshot in self._pods.snapshots(deadline):
            self._require_pods(snapshot)
            pods = self._of_this_job(snapshot)
            running = [pod for pod in pods if pod.is_running]
            if len(running) == self._settings.trainers:
                return self._group(running)
            if any(pod.phase == "Succeeded" for pod in pods):
                raise AlreadySucceeded
            self._log_once(f"{len(running)} of {self._settings.trainers} pods are running; waiting for the others")
        raise LaunchError(self._timeout_message(pods))

    def _require_pods(self, pods: list[Pod]) -> None:
        if not pods:
            raise LaunchError(
                f"no pod in namespace {self._settings.namespace} has the label job-name={self._settings.job}, not even "
                "this one; set JOB_NAME to the Job's metadata.name and JOB_NAMESPACE to its namespace"
            )

    def _of_this_job(self, pods: list[Pod]) -> list[Pod]:
        """Leave out the pods of an earlier Job of the same name."""
        owners = {pod.owner for pod in pods if self._is_own(pod) and not pod.terminating}
        return [pod for pod in pods if pod.owner in owners] if owners else pods

    def _is_own(self, pod: Pod) -> bool:
        """Compare the name too: in a dual-stack cluster the API server may be reached over the other IP family."""
        return pod.name == self._hostname or bool(self._own & set(pod.addresses))

    def _group(self, pods: list[Pod]) -> Group:
        addresses = _same_family_addresses(pods)
        own = {addresses[index] for index, pod in enumerate(pods) if self._is_own(pod)}
        return build_group(addresses, own or self._own)

    def _log_once(self, line: str) -> None:
        if line != self._last_logged:
            log(line)
        self._last_logged = line

    def _timeout_message(self, pods: list[Pod]) -> str:
        if self._pods.last_error:
            return f"the API server is not responding: {self._pods.last_error}"
        wanted, active = self._settings.trainers, sum(pod.is_active for pod in pods)
        running = sum(pod.is_running for pod in pods)
        message = f"{running} of {wanted} pods of the job are running after {self._settings.wait_seconds} s"
        others = [_describe(pod) for pod in pods if not pod.is_running]
        if others:
            message += f"; not running: {comma_separated(others)}"
        if active != wanted:
            message += f". The Job has {active} pods; set CONF_PADDLE_GRADIENT_NUM to its parallelism"
        return f"{message}. Raise JOB_WAIT_SECONDS to wait longer"


def _same_family_addresses(pods: list[Pod]) -> list[str]:
    """IPv4 if every pod has such an address: Paddle splits an endpoint at its first colon."""
    ipv4 = [next((address for address in pod.addresses if ":" not in address), "") for pod in pods]
    return ipv4 if all(ipv4) else [pod.addresses[0] for pod in pods]


def _describe(pod: Pod) -> str:
    phase = "Terminating" if pod.terminating else pod.phase
    return f"{pod.name} ({phase}: {pod.message})" if pod.message else f"{pod.name} ({phase})"


def _local_address(server: ApiServer) -> str:
    """This pod's address on the route to the API server; sends nothing."""
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((server.host, server.port))
        except OSError:
            return ""
        return str(probe.getsockname()[0])


# Discovers the other pods: from the environment, by their DNS names, or through the API server.
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


# The events of a running group; all of them arrive in one queue.


class TrainerExited(NamedTuple):
    exit_code: int


class ServerExited(NamedTuple):
    exit_code: int


class PeerLost(NamedTuple):
    message: str


class AllSucceeded(NamedTuple):
    """Every trainer of the group has exited with code 0."""


class SignalReceived(NamedTuple):
    number: int


# The rendezvous: the pods of a group connect before they start, so that all of them agree on its members.
#
# The pod of rank 0 listens. Each peer sends `hello DIGEST RANK` and waits for `start`. A pod whose list still contains
# a terminating peer fails the rendezvous, discovers again and finds the replacement.
RENDEZVOUS_SECONDS = 10.0
CONNECT_SECONDS = 5.0
HELLO_SECONDS = 1.0
MAX_LINE_LENGTH = 4096


class RendezvousFailed(Exception):
    """The group is not complete; discover its pods again."""


class Connection:
    """A TCP connection that carries lines of text."""

    def __init__(self, sock: socket.socket) -> None:
        sock.settimeout(CONNECT_SECONDS)
        self.socket = sock
        self._reader = sock.makefile("r", encoding="utf-8", errors="replace", newline="\n")

    def send(self, text: str) -> None:
        with suppress(OSError):
            self.socket.sendall(f"{text[:MAX_LINE_LENGTH]}\n".encode())

    def read(self, seconds: float | None) -> str:
        """The next line; empty after a disconnect or a timeout."""
        try:
            self.socket.settimeout(seconds)
            return self._reader.readline(2 * MAX_LINE_LENGTH).rstrip("\n")
        except (OSError, ValueError):
            return ""

    def close(self) -> None:
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


class Listener:
    """Rank 0's side of the rendezvous: accepts connections and keeps those of the group's peers, by rank."""

    def __init__(self, group: Group, sock: socket.socket) -> None:
        self.peers: dict[int, Connection] = {}
        self._group = group
        self._socket = sock
        sock.listen(128)
        sock.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(sock, selectors.EVENT_READ)

    @property
    def missing(self) -> list[str]:
        ranks = range(1, len(self._group.addresses))
        return [self._group.addresses[rank] for rank in ranks if rank not in self.peers]

    def wait(self, until: float) -> bool:
        """True once all peers are connected and none has disconnected in the meantime."""
        while True:
            complete = not self.missing
            ready = self._selector.select(0 if complete else max(0.0, until - time.monotonic()))
            if not ready and (complete or time.monotonic() >= until):
                return complete
            for key, _ in ready:
                if key.data:
                    self._receive(key.data)
                else:
                    self._accept()

    def close(self) -> None:
        """Close the connections that do not belong to the group."""
        for key in list(self._selector.get_map().values()):
            if key.data and key.data not in self.peers.values():
                key.data.close()
        self._selector.close()

    def _accept(self) -> None:
        with suppress(OSError):
            connection = Connection(self._socket.accept()[0])
            self._selector.register(connection.socket, selectors.EVENT_READ, connection)

    def _receive(self, connection: Connection) -> None:
        """A new connection sends a hello message. A known peer sends nothing more: readable means disconnected."""
        known = [rank for rank, peer in self.peers.items() if peer is connection]
        rank = 0 if known else self._parse_hello(connection.read(HELLO_SECONDS))
        for stale in known or [rank]:
            if stale in self.peers:
                self._drop(self.peers.pop(stale))
        if rank:
            self.peers[rank] = connection
        elif not known:
            self._drop(connection)

    def _parse_hello(self, hello: str) -> int:
        """The rank of a peer that sees the same group; 0, this pod's own rank, for any other message."""
        fields = hello.split()
        if len(fields) != 3 or fields[:2] != ["hello", self._group.digest] or not fields[2].isdecimal():
            return 0
        return int(fields[2]) if int(fields[2]) < len(self._group.addresses) else 0

    def _drop(self, connection: Connection) -> None:
        self._selector.unregister(connection.socket)
        connection.close()


def rendezvous(group: Group, port: int, deadline: float) -> dict[int, Connection]:
    """Connections by rank: rank 0 has one to each peer, every other pod has one to rank 0."""
    if len(group.addresses) == 1:
        return {}
    until = min(deadline, time.monotonic() + RENDEZVOUS_SECONDS)
    return _accept_peers(group, port, until) if group.rank == 0 else _connect(group, port, until)


def require_free_ports(address: str, ports: Iterable[int]) -> None:
    """Raise if a server could not bind its port, which would end the whole group."""
    used = [str(port) for port in ports if _is_in_use(address, port)]
    if used:
        raise RendezvousFailed(
            f"port {', '.join(used)} of this pod ({address}) is in use by another process; stop that process or set "
            "CONF_PADDLE_PORT to another port"
        )


def _accept_peers(group: Group, port: int, until: float) -> dict[int, Connection]:
    try:
        sock = _bind(group.own, port)
    except OSError as error:
        raise RendezvousFailed(f"cannot listen on {group.own}, port {port} ({error.strerror or error})") from None
    with sock:
        listener = Listener(group, sock)
        try:
            complete = listener.wait(until)
        finally:
            listener.close()
    for connection in listener.peers.values():
        if complete:
            connection.send("start")
        else:
            connection.close()
    if not complete:
        missing = ", ".join(listener.missing)
        raise RendezvousFailed(f"no connection from {missing} on port {port}, which must be open between the pods")
    return listener.peers


def _connect(group: Group, port: int, until: float) -> dict[int, Connection]:
    first = group.addresses[0]
    try:
        sock = socket.create_connection((first, port), timeout=CONNECT_SECONDS)
    except OSError as error:
        raise RendezvousFailed(
            f"cannot connect to {first} on port {port}, which must be open between the pods ({error.strerror or error})"
        ) from None
    connection = Connection(sock)
    connection.send(f"hello {group.digest} {group.rank}")
    # Longer than rank 0 waits: this pod must not give up just before rank 0 sends `start`.
    if connection.read(max(0.0, until - time.monotonic()) + CONNECT_SECONDS) != "start":
        connection.close()
        raise RendezvousFailed(f"{first} sees a different group, or is still waiting for other pods")
    return {0: connection}


def _bind(address: str, port: int) -> socket.socket:
    family, _, _, _, sockaddr = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(sockaddr)
    except OSError:
        sock.close()
        raise
    return sock


def _is_in_use(address: str, port: int) -> bool:
    try:
        _bind(address, port).close()
    except OSError as error:
        return error.errno == errno.EADDRINUSE
    return False


# Heartbeats between the launchers of a group, and the messages that one has succeeded or failed.
#
# Rank 0 receives from all peers and forwards to them. A connection that breaks or stays silent for too long means that
# the pod is lost, and its server with it: no trainer can continue.
HEARTBEAT_SECONDS = 5.0
TIMEOUT_SECONDS = 60.0
CLOSE_SECONDS = 5.0


class Heartbeat:
    """Sends and receives on the connections of the rendezvous, and puts what it learns into the event queue."""

    def __init__(self, group: Group, connections: dict[int, Connection], emit: Callable[[Any], None]) -> None:
        self._group = group
        self._connections = connections
        self._emit = emit
        self._lock = threading.Lock()
        self._succeeded: set[int] = set()
        self._closed = threading.Event()
        self._receivers = [
            threading.Thread(target=self._receive, args=each, daemon=True) for each in connections.items()
        ]
        for thread in self._receivers:
            thread.start()
        threading.Thread(target=self._send_heartbeats, daemon=True).start()

    def report_success(self) -> None:
        """This pod's trainer has exited with code 0."""
        if self._group.rank == 0:
            self._record_success(0)
        else:
            self._broadcast("succeeded")

    def report_failure(self, message: str) -> None:
        """Tell the peers that this pod cannot continue, and why."""
        self._broadcast(f"failed {message}")

    def close(self) -> None:
        """Rank 0 first waits until its peers know that all have succeeded: its network ends with the pod."""
        if self._closed.is_set() and self._group.rank == 0:
            for thread in self._receivers:
                thread.join(CLOSE_SECONDS)
        self._closed.set()
        for connection in self._connections.values():
            connection.close()

    def _receive(self, rank: int, connection: Connection) -> None:
        while True:
            kind, _, message = connection.read(TIMEOUT_SECONDS).partition(" ")
            if kind == "succeeded":
                self._record_success(rank)
            elif kind == "all_succeeded":
                self._finish()
            elif kind != "heartbeat":
                self._lose_peer(rank, message or f"trainer {rank} ({self._group.addresses[rank]}) is lost")
                return

    def _record_success(self, rank: int) -> None:
        with self._lock:
            self._succeeded.add(rank)
            all_succeeded = len(self._succeeded) == len(self._group.addresses)
        if all_succeeded:
            self._broadcast("all_succeeded")
            self._finish()

    def _finish(self) -> None:
        self._closed.set()
        self._emit(AllSucceeded())

    def _lose_peer(self, rank: int, message: str) -> None:
        if self._closed.is_set():
            return
        # Forward before emitting: this pod exits as soon as it handles the event.
        if self._group.rank == 0:
            self._broadcast(f"failed {message}", exclude=rank)
        self._emit(PeerLost(message))

    def _send_heartbeats(self) -> None:
        while not self._closed.wait(HEARTBEAT_SECONDS):
            self._broadcast("heartbeat")

    def _broadcast(self, text: str, exclude: int = -1) -> None:
        with self._lock:
            for rank, connection in self._connections.items():
                if rank != exclude:
                    connection.send(text)


# The child processes of a pod: their output goes to a log file and to standard output.
GRACE_SECONDS = 10.0
MAX_CHUNK_BYTES = 1 << 16
EXIT_CANNOT_START = 127


class Command(NamedTuple):
    argv: list[str]
    environ: dict[str, str]


class Process:
    """One child. It stays in the launcher's process group, so that a signal to the group reaches it."""

    def __init__(self, command: Command, directory: Path, log_file: Path, on_exit: Callable[[int], None]) -> None:
        try:
            self._child = subprocess.Popen(
                command.argv,
                env=command.environ,
                cwd=str(directory),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        except OSError as error:
            raise LaunchError(f"cannot start {command.argv[0]}: {error.strerror}", EXIT_CANNOT_START) from None
        self._copier = threading.Thread(target=self._copy_output, args=(log_file,), daemon=True)
        self._copier.start()
        threading.Thread(target=self._wait, args=(on_exit,), daemon=True).start()

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._child.send_signal(number)

    def wait_or_kill(self, deadline: float) -> None:
        """Wait for the exit until the deadline, then kill the process."""
        try:
            self._child.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._copier.join(1)

    def _copy_output(self, log_file: Path) -> None:
        assert self._child.stdout
        lines, file = self._child.stdout, _open_log(log_file)
        for line in iter(lambda: lines.readline(MAX_CHUNK_BYTES), b""):
            # If standard output is closed, keep reading: the child would block on a full pipe.
            with contextlib.suppress(OSError):
                sys.stdout.buffer.write(line)
                sys.stdout.flush()
            file = _write_log(file, line, log_file)
        if file:
            file.close()

    def _wait(self, on_exit: Callable[[int], None]) -> None:
        status = self._child.wait()
        # A grandchild may keep the pipe open indefinitely.
        self._copier.join(5)
        on_exit(status if status >= 0 else 128 - status)


def stop(processes: Sequence[Process]) -> None:
    """Terminate all processes, and kill those that are still running after the grace period."""
    for process in processes:
        process.signal(signal.SIGTERM)
    deadline = time.monotonic() + GRACE_SECONDS
    for process in processes:
        process.wait_or_kill(deadline)


def _open_log(path: Path) -> IO[bytes] | None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("ab", buffering=0)
    except OSError as error:
        log(f"{path}: cannot write ({error.strerror}); logging only to standard output")
        return None


def _write_log(file: IO[bytes] | None, line: bytes, path: Path) -> IO[bytes] | None:
    """Returns None once the file cannot be written; training continues without it."""
    try:
        if file:
            file.write(line)
        return file
    except OSError as error:
        log(f"{path}: cannot write any more ({error.strerror}); logging only to standard output")
        return None


# The pod's working directory: the files of TRAIN_CONFIG_DIR, and its part of the data in ./data.


@contextlib.contextmanager
def workspace(
    settings: Settings, trainer: int | None, before_each_file: Callable[[], None] | None = None
) -> Iterator[Path]:
    """A copy inside the container, removed on exit. Without a trainer id no data is copied: a server reads none.

    `before_each_file` may raise to cancel the copy.
    """
    try:
        directory = Path(tempfile.mkdtemp(prefix=f"{settings.job}-"))
    except OSError as error:
        raise LaunchError(f"{tempfile.gettempdir()}: cannot create a working directory: {error}") from None
    try:
        copier = Copier(before_each_file or _do_nothing)
        for entry in _entries(settings.config):
            if trainer is None or entry.name != "data":
                copier.copy(entry, directory / entry.name)
        if trainer is not None:
            _copy_data(settings, trainer, directory / "data", copier)
        yield directory
    finally:
        shutil.rmtree(str(directory), ignore_errors=True)


class Copier:
    """Copies files and directories, and calls a function before each file."""

    def __init__(self, before_each_file: Callable[[], None]) -> None:
        self._before_each_file = before_each_file

    def copy(self, source: Path, target: Path) -> None:
        try:
            if source.is_dir():
                shutil.copytree(str(source), str(target), copy_function=self._copy_file)
            else:
                self._copy_file(str(source), str(target))
        except shutil.Error as error:
            raise LaunchError(f"{source}: cannot copy to {target.parent}: {error.args[0][0][2]}") from None
        except OSError as error:
            raise LaunchError(f"{source}: cannot copy to {target.parent}: {error}") from None

    def _copy_file(self, source: str, target: str) -> None:
        self._before_each_file()
        shutil.copy2(source, target)


def _copy_data(settings: Settings, trainer: int, target: Path, copier: Copier) -> None:
    source = settings.data_dir(trainer)
    if not source.is_dir():
        found = sorted((entry.name for entry in _entries(settings.root) if entry.name.isdecimal()), key=int)
        raise LaunchError(
            f"{source}: no data for trainer {trainer}; found parts {comma_separated(found)}. Split the data into one "
            f"part per trainer (SPLIT_COUNT={settings.trainers})"
        )
    copier.copy(source, target)
    files = [path for path in target.rglob("*") if path.is_file()]
    log(f"copied {len(files)} files, {sum(path.stat().st_size for path in files)} bytes, from {source}")


def _entries(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError as error:
        raise LaunchError(f"{directory}: cannot read: {error.strerror}") from None


def _do_nothing() -> None:
    pass


# Command lines for the Paddle of the documents (2016): `paddle pserver` and `paddle train`.
COMMENT = "paddle_process_by_paddle"
MAX_SCRIPT_BYTES = 1 << 20


def find_legacy_paddle(path: str | None) -> str:
    """The `paddle` command that supports `pserver`; the command of the same name in current wheels does not."""
    found = shutil.which("paddle", path=path)
    if not found:
        return ""
    try:
        with Path(found).open("rb") as script:
            return found if b"pserver" in script.read(MAX_SCRIPT_BYTES) else ""
    except OSError:
        return ""


def legacy_ports(settings: Settings) -> range:
    """The ports of the pod's server."""
    return range(settings.port, settings.port + settings.ports + settings.sparse_ports)


def legacy_commands(
    paddle: str, settings: Settings, group: Group, environ: Mapping[str, str]
) -> tuple[Command, Command]:
    """The commands of the server and the trainer."""
    inherited = dict(environ)
    return (
        Command([paddle, "pserver", *server_flags(settings)], inherited),
        Command([paddle, "train", *trainer_flags(settings, group)], inherited),
    )


def server_flags(settings: Settings) -> list[str]:
    return [
        f"--nics={settings.nic}",
        f"--port={settings.port}",
        f"--ports_num={settings.ports}",
        f"--ports_num_for_sparse={settings.sparse_ports}",
        f"--num_gradient_servers={settings.trainers}",
        f"--comment={COMMENT}",
    ]


def trainer_flags(settings: Settings, group: Group) -> list[str]:
    """In the order of the document's log, which lacks --num_gradient_servers: that flag comes last."""
    network = [
        f"--nics={settings.nic}",
        f"--port={settings.port}",
        f"--ports_num={settings.ports}",
        f"--comment={COMMENT}",
        f"--pservers={','.join(group.addresses)}",
    ]
    given = join_flags(settings.trainer_args)
    names = {flag.partition("=")[0] for flag in given}
    sparse = [f"--ports_num_for_sparse={settings.sparse_ports}"]
    threads = [f"--trainer_count={settings.threads}"]
    return [
        *network,
        *([] if "--ports_num_for_sparse" in names else sparse),
        *given,
        *([] if "--trainer_count" in names else threads),
        f"--trainer_id={group.rank}",
        f"--save_dir={settings.output}",
        f"--num_gradient_servers={settings.trainers}",
    ]


def join_flags(arguments: Sequence[str]) -> list[str]:
    """Write `--key value` as `--key=value`; leave everything else unchanged."""
    flags: list[str] = []
    for argument in arguments:
        if flags and not argument.startswith("--") and flags[-1].startswith("--") and "=" not in flags[-1]:
            flags[-1] += f"={argument}"
        else:
            flags.append(argument)
    return flags


# The same roles for current Paddle: one program, train.py, which reads its role from the environment.
PROGRAM = "train.py"
GLOO_OVER_HTTP = "3"
TRAINER_PORT_OFFSET, GLOO_PORT_OFFSET = 1, 2
"""Relative to the server's port."""


def require_program(settings: Settings) -> None:
    if not (settings.config / PROGRAM).is_file():
        found = sorted(path.name for path in settings.config.iterdir())
        raise LaunchError(
            f"{settings.config}: no {PROGRAM}, which current Paddle runs as server and trainer (found "
            f"{comma_separated(found)}); add it, or use an image with the `paddle` command of 2016"
        )


def fleet_ports(settings: Settings, group: Group) -> list[int]:
    """The ports this pod listens on: its server's, and gloo's in the pod of rank 0."""
    return [settings.port, settings.port + GLOO_PORT_OFFSET] if group.rank == 0 else [settings.port]


def fleet_commands(settings: Settings, group: Group, environ: Mapping[str, str]) -> tuple[Command, Command]:
    """The commands of the server and the trainer."""
    argv = program_argv(settings)
    common = dict(environ, **program_environment(settings), **group_environment(settings, group))
    trainer_port = settings.port + TRAINER_PORT_OFFSET
    server = role_environment(group, "PSERVER", settings.port)
    trainer = dict(
        role_environment(group, "TRAINER", trainer_port),
        PADDLE_CURRENT_ENDPOINT=group.endpoints(trainer_port)[group.rank],
    )
    return Command(argv, dict(common, **server)), Command(argv, dict(common, **trainer))


def program_argv(settings: Settings) -> list[str]:
    return [sys.executable or "python3", PROGRAM, *settings.trainer_args]


def program_environment(settings: Settings) -> dict[str, str]:
    """The variables that any training program gets, whatever its role."""
    return {"DATA_DIR": "data", "OUTPUT_DIR": str(settings.output), "PYTHONUNBUFFERED": "1"}


def group_environment(settings: Settings, group: Group) -> dict[str, str]:
    """The variables with the same value in all processes of a group."""
    return {
        "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(group.endpoints(settings.port)),
        "PADDLE_TRAINER_ENDPOINTS": ",".join(group.endpoints(settings.port + TRAINER_PORT_OFFSET)),
        "PADDLE_TRAINERS": ",".join(group.addresses),
        "PADDLE_TRAINERS_NUM": str(len(group.addresses)),
        "TRAINER_PORTS_NUM": "1",
        "PADDLE_WITH_GLOO": "1",
        "PADDLE_GLOO_RENDEZVOUS": GLOO_OVER_HTTP,
        "PADDLE_GLOO_HTTP_ENDPOINT": group.endpoints(settings.port + GLOO_PORT_OFFSET)[0],
        "SYS_JOB_ID": f"{settings.job}-{group.digest}",
    }


def role_environment(group: Group, role: str, port: int) -> dict[str, str]:
    return {
        "POD_IP": format_host(group.own),
        "PADDLE_PORT": str(port),
        "PADDLE_TRAINER_ID": str(group.rank),
        "TRAINING_ROLE": role,
        "PADDLE_TRAINING_ROLE": role,
    }


# Runs the processes of a pod from start to exit, and decides the pod's exit code.
FORWARDED_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def exit_on_signal() -> None:
    """Until a process is started, a signal ends the launcher; PID 1 of a container has no default handlers."""

    def handle(number: int, _frame: FrameType | None) -> None:
        raise LaunchError(f"received {signal.Signals(number).name} before training started", 128 + number)

    for number in STOP_SIGNALS:
        signal.signal(number, handle)


def queue_signals(events: SimpleQueue[Any]) -> None:
    """From now on a signal is an event like any other."""
    for number in FORWARDED_SIGNALS:
        signal.signal(number, lambda received, _frame: events.put(SignalReceived(received)))


def check_peers(events: SimpleQueue[Any]) -> None:
    """Raise if a peer was lost before training started."""
    with contextlib.suppress(Empty):
        event = events.get_nowait()
        if isinstance(event, PeerLost):
            raise LaunchError(_peer_lost_message(event.message), EXIT_PEER_LOST)


class Supervisor:
    """Runs the server and the trainer of this pod and handles each event."""

    def __init__(self, settings: Settings, group: Group, heartbeat: Heartbeat, events: SimpleQueue[Any]) -> None:
        self._log_dir = settings.log_dir(group.rank)
        self._name = f"trainer {group.rank} ({group.own})"
        self._heartbeat = heartbeat
        self._events = events
        self._processes: list[Process] = []
        self._running = 0
        self._stop_signal = 0
        """The signal that asked this pod to stop, or 0."""

    def run(self, server: Command, trainer: Command, directory: Path) -> int:
        """The exit code of the pod."""
        try:
            self._start(server, directory, "server.log", ServerExited)
            self._start(trainer, directory, "train.log", TrainerExited)
            while True:
                exit_code = self._handle(self._events.get())
                if exit_code is not None:
                    return exit_code
        finally:
            stop(self._processes)

    def _start(self, command: Command, directory: Path, log_name: str, event: Any) -> None:
        put = self._events.put
        self._processes.append(Process(command, directory, self._log_dir / log_name, lambda code: put(event(code))))
        self._running += 1

    def _handle(self, event: Any) -> int | None:
        """The exit code once it is known."""
        if isinstance(event, (TrainerExited, ServerExited)):
            self._running -= 1
        if isinstance(event, SignalReceived):
            return self._handle_signal(event.number)
        if self._stop_signal:
            return None if self._running else 128 + self._stop_signal
        if isinstance(event, TrainerExited):
            return self._handle_trainer_exit(event.exit_code)
        if isinstance(event, ServerExited):
            message = f"the server of {self._name} exited with code {event.exit_code}"
            return self._fail(message, event.exit_code or 1)
        if isinstance(event, PeerLost):
            log(_peer_lost_message(event.message))
            return EXIT_PEER_LOST
        return 0 if isinstance(event, AllSucceeded) else None

    def _handle_trainer_exit(self, exit_code: int) -> int | None:
        if exit_code:
            return self._fail(f"{self._name} failed with exit code {exit_code}", exit_code)
        log(f"{self._name} succeeded; its server keeps running until all trainers have")
        self._heartbeat.report_success()
        return None

    def _handle_signal(self, number: int) -> int | None:
        """Forward the signal. The sender of a stop signal enforces its own deadline; a second one stops at once."""
        for process in self._processes:
            process.signal(number)
        if number not in STOP_SIGNALS:
            return None
        if self._stop_signal:
            return 128 + number
        self._stop_signal = number
        return self._fail(f"{self._name} received {signal.Signals(number).name}", None)

    def _fail(self, message: str, exit_code: int | None) -> int | None:
        log(message)
        self._heartbeat.report_failure(message)
        return exit_code


def run_single_role(command: Command, directory: Path, log_file: Path, events: SimpleQueue[Any]) -> int:
    """Run the one process of a PaddleJob's pod; the operator handles its failures."""
    process = Process(command, directory, log_file, lambda code: events.put(TrainerExited(code)))
    stop_signal = 0
    while True:
        event = events.get()
        if isinstance(event, TrainerExited):
            return 128 + stop_signal if stop_signal else event.exit_code
        if isinstance(event, SignalReceived):
            process.signal(event.number)
            stop_signal = event.number if event.number in STOP_SIGNALS else stop_signal


def _peer_lost_message(message: str) -> str:
    return f"{message}; training cannot continue without it; exiting so that a new group can start"


# The entry point: from the environment of a pod to its exit code.
RENDEZVOUS_RETRY_SECONDS = 0.5
QUIET_SECONDS = 10.0


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> int:
    try:
        return launch(sys.argv[1:] if arguments is None else arguments, os.environ if environ is None else environ)
    except LaunchError as error:
        log(str(error))
        return error.exit_code
    except AlreadySucceeded:
        log("the other pods of this job have succeeded; nothing left to train")
        return 0
    except OSError as error:
        log(f"cannot continue: {error}")
        return EXIT_BAD_SETUP


def launch(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    settings = read_settings(environ, arguments)
    require_config(settings)
    exit_on_signal()
    if environ.get("PADDLE_PSERVERS_IP_PORT_LIST") and environ.get("TRAINING_ROLE"):
        return _launch_single_role(settings, environ)
    paddle = find_legacy_paddle(environ.get("PATH"))
    if not paddle:
        require_program(settings)
    log(f"job {settings.job}: waiting for {settings.trainers} pods")
    group, connections = GroupFormation(choose_discovery(environ, settings), settings, bool(paddle)).form()
    log(f"trainer {group.rank} of {len(group.addresses)} at {group.own}; the group is {','.join(group.addresses)}")
    if not paddle and ":" in group.own:
        log("warning: the pods have IPv6 addresses only, which parameter servers of Paddle 2.6 do not support")
    events: SimpleQueue[Any] = SimpleQueue()
    heartbeat = Heartbeat(group, connections, events.put)
    try:
        server, trainer = _commands(paddle, settings, group, environ)
        with workspace(settings, group.rank, lambda: check_peers(events)) as directory:
            queue_signals(events)
            return Supervisor(settings, group, heartbeat, events).run(server, trainer, directory)
    except LaunchError as error:
        heartbeat.report_failure(f"trainer {group.rank} ({group.own}) cannot start: {error}".replace("\n", " "))
        raise
    finally:
        heartbeat.close()


def _commands(paddle: str, settings: Settings, group: Group, environ: Mapping[str, str]) -> tuple[Command, Command]:
    if paddle:
        return legacy_commands(paddle, settings, group, environ)
    return fleet_commands(settings, group, environ)


class GroupFormation:
    """Repeats discovery and rendezvous until all pods agree on the group."""

    def __init__(self, discovery: Discovery, settings: Settings, legacy: bool) -> None:
        self._discovery = discovery
        self._settings = settings
        self._legacy = legacy
        self._last_logged = ""

    def form(self) -> tuple[Group, dict[int, Connection]]:
        started = time.monotonic()
        deadline = started + self._settings.wait_seconds
        while True:
            group = self._discovery.discover(deadline)
            try:
                require_free_ports(group.own, self._ports(group))
                return group, rendezvous(group, self._settings.rendezvous_port, deadline)
            except RendezvousFailed as error:
                self._check_deadline(str(error), time.monotonic() - started)
            time.sleep(RENDEZVOUS_RETRY_SECONDS)

    def _ports(self, group: Group) -> range | list[int]:
        return legacy_ports(self._settings) if self._legacy else fleet_ports(self._settings, group)

    def _check_deadline(self, message: str, elapsed: float) -> None:
        """Raise after the time limit; log a new message, but not in the first seconds, when retries are normal."""
        if elapsed >= self._settings.wait_seconds:
            raise LaunchError(f"the pods did not form a group within {self._settings.wait_seconds} s: {message}")
        if elapsed >= QUIET_SECONDS and message != self._last_logged:
            log(f"{message}; retrying")
            self._last_logged = message


def _launch_single_role(settings: Settings, environ: Mapping[str, str]) -> int:
    """In a pod of a PaddleJob the operator has assigned the role: copy the files and run the program."""
    require_program(settings)
    is_trainer = environ["TRAINING_ROLE"] == "TRAINER"
    index = int(environ.get("PADDLE_TRAINER_ID") or 0)
    log_file = settings.log_dir(index) / ("train.log" if is_trainer else "server.log")
    events: SimpleQueue[Any] = SimpleQueue()
    with workspace(settings, index if is_trainer else None) as directory:
        queue_signals(events)
        command = Command(program_argv(settings), dict(environ, **program_environment(settings)))
        return run_single_role(command, directory, log_file, events)


if __name__ == "__main__":
    sys.exit(main())
