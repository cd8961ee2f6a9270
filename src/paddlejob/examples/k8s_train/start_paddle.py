#!/usr/bin/env python3
"""Starts a parameter server and a trainer in a pod of a Kubernetes Job.

Generated from paddlejob.launch by `make generate`; do not edit. Needs Python 3.8 or newer, nothing else.
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

# What the launcher says, and how it ends when it cannot go on.
BAD_SETUP = 2
PEER_LOST = 75
"""The exit status of a pod that ends only because another one did: nothing is wrong with itself, it may try again."""


class LaunchError(Exception):
    """Ends the launcher with these words and this exit status."""

    def __init__(self, words: str, status: int = BAD_SETUP) -> None:
        super().__init__(words)
        self.status = status


def say(line: str) -> None:
    """Where nobody reads any more, training goes on all the same."""
    with contextlib.suppress(OSError):
        print(f"start_paddle: {line}", flush=True)


def listed(names: list[str]) -> str:
    return ", ".join(names) if names else "nothing"


# What the Job's environment and the command line ask for. All that is wrong is said at once.
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
WAIT_SECONDS = 600
PORTS_TODAY = 4
"""Today's Paddle needs three ports from CONF_PADDLE_PORT on: server, trainer and gloo. The documents open four."""


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
    passed_on: tuple[str, ...]
    """Arguments for the trainer, as they were given."""

    @property
    def config(self) -> Path:
        return self.root / self.config_dir

    @property
    def output(self) -> Path:
        return self.root / "output"

    @property
    def meeting_port(self) -> int:
        """Where the pods of a group keep in touch: the first port behind those of the servers."""
        return self.port + max(self.ports + self.sparse_ports, PORTS_TODAY)

    def part(self, trainer: int) -> Path:
        return self.root / str(trainer) / "data"

    def logs(self, trainer: int) -> Path:
        return self.output / f"node_{trainer}"


def read_settings(environ: Mapping[str, str], arguments: Sequence[str]) -> Settings:
    faults: list[str] = []
    job, path, config_dir = (_text(environ, name, faults) for name in ("JOB_NAME", "JOB_PATH", "TRAIN_CONFIG_DIR"))
    found = Settings(
        job=job,
        root=Path(path) / job,
        namespace=environ.get("JOB_NAMESPACE") or _own_namespace(),
        config_dir=config_dir,
        nic=environ.get("CONF_PADDLE_NIC") or "eth0",
        port=_number(environ, "CONF_PADDLE_PORT", 7164, 1, faults),
        ports=_number(environ, "CONF_PADDLE_PORTS_NUM", 2, 1, faults),
        sparse_ports=_number(environ, "CONF_PADDLE_PORTS_NUM_SPARSE", 2, 0, faults),
        trainers=_number(environ, "CONF_PADDLE_GRADIENT_NUM", _trainers_known(environ), 1, faults),
        threads=_number(environ, "TRAINER_COUNT", 1, 1, faults),
        wait_seconds=_number(environ, "JOB_WAIT_SECONDS", WAIT_SECONDS, 1, faults),
        passed_on=tuple(arguments),
    )
    if not faults and found.meeting_port > 65535:
        faults.append(f"CONF_PADDLE_PORT: is {found.port}, and the ports from there on pass 65535; use a lower one")
    if faults:
        raise LaunchError("; ".join(faults))
    return found


def refuse_missing_config(settings: Settings) -> None:
    """Say what is there where TRAIN_CONFIG_DIR is not, or where the whole volume is not."""
    if settings.config.is_dir():
        return
    if not settings.root.is_dir():
        raise LaunchError(
            f"{settings.root}: is not there; JOB_PATH should be where the shared volume is mounted, and "
            "JOB_NAME a directory on it with the data, made by the data job"
        )
    there = sorted(one.name for one in settings.root.iterdir() if one.is_dir())
    programs = [name for name in there if not name.isdigit() and name != "output"]
    raise LaunchError(
        f"TRAIN_CONFIG_DIR: is {settings.config_dir}, which is not in {settings.root}; there is {listed(programs)}"
    )


def _text(environ: Mapping[str, str], name: str, faults: list[str]) -> str:
    value = environ.get(name, "")
    if not value:
        faults.append(f"{name}: is not set; set it in the Job's env")
    return value


def _number(environ: Mapping[str, str], name: str, default: int, least: int, faults: list[str]) -> int:
    text = environ.get(name) or str(default)
    if text.isdecimal() and int(text) >= least:
        return int(text)
    faults.append(f"{name}: is {environ.get(name) or 'not set'}; set it to a whole number, {least} or more")
    return least


def _trainers_known(environ: Mapping[str, str]) -> int:
    """From the engine that hands the peers over, or from the operator of a PaddleJob; else 0."""
    peers = [peer for peer in environ.get("PADDLEJOB_PEERS", "").split(",") if peer]
    told = environ.get("PADDLE_TRAINERS_NUM", "")
    return len(peers) or (int(told) if told.isdecimal() else 0)


def _own_namespace() -> str:
    mounted = SERVICE_ACCOUNT / "namespace"
    return mounted.read_text().strip() if os.access(mounted, os.R_OK) else "default"


# The pods that train together, in the order of their trainer ids.


class Group(NamedTuple):
    addresses: tuple[str, ...]
    rank: int
    """This pod's place in the list: its trainer id."""

    @property
    def own(self) -> str:
        return self.addresses[self.rank]

    @property
    def digest(self) -> str:
        """The same for all who see the same group."""
        return hashlib.sha256(",".join(self.addresses).encode()).hexdigest()[:16]

    def endpoints(self, port: int) -> list[str]:
        return [f"{host(address)}:{port}" for address in self.addresses]


def host(address: str) -> str:
    """An address as it stands before a port."""
    return f"[{address}]" if ":" in address else address


def by_number(addresses: Iterable[str]) -> list[str]:
    """Sorted as numbers: 10.0.0.9 comes before 10.0.0.10, and IPv4 before IPv6."""
    return sorted(addresses, key=lambda text: (ipaddress.ip_address(text).version, int(ipaddress.ip_address(text))))


def group_of(addresses: Iterable[str], own: Collection[str]) -> Group:
    """The group in which this pod is the one with an address out of `own`."""
    ordered = by_number(addresses)
    mine = [rank for rank, address in enumerate(ordered) if address in own]
    if len(mine) != 1:
        raise LaunchError(
            f"none of this pod's addresses ({listed(sorted(own))}) stands once among the job's ({listed(ordered)}); "
            "set POD_IP from the field status.podIP in the Job's env"
        )
    return Group(tuple(ordered), mine[0])


# A pod as the API server describes it, cut down to what its peers need to know.


class Pod(NamedTuple):
    name: str
    addresses: tuple[str, ...]
    """The first is that of the cluster's main kind."""
    phase: str
    owner: str
    leaving: bool
    why: str = ""
    """Why it does not run, as far as Kubernetes says."""

    @property
    def runs(self) -> bool:
        return self.phase == "Running" and bool(self.addresses) and not self.leaving

    @property
    def may_run(self) -> bool:
        return self.phase in ("Running", "Pending") and not self.leaving


def read_pod(document: dict[str, Any]) -> Pod:
    metadata, status = document["metadata"], document.get("status") or {}
    addresses = [one["ip"] for one in status.get("podIPs") or [] if one.get("ip")]
    if not addresses and status.get("podIP"):
        addresses = [status["podIP"]]
    owner = next((one["uid"] for one in metadata.get("ownerReferences") or [] if one.get("controller")), "")
    return Pod(
        name=metadata["name"],
        addresses=tuple(addresses),
        phase=status.get("phase") or "Pending",
        owner=owner,
        leaving="deletionTimestamp" in metadata,
        why=_why(status),
    )


def _why(status: dict[str, Any]) -> str:
    """In Kubernetes' own words: not scheduled, a container that waits or has failed, an eviction."""
    for condition in status.get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return _words(condition)
    for container in (status.get("initContainerStatuses") or []) + (status.get("containerStatuses") or []):
        state = container.get("state") or {}
        if state.get("waiting"):
            return _words(state["waiting"])
        if (state.get("terminated") or {}).get("exitCode"):
            return f"exit status {state['terminated']['exitCode']}"
    return _words(status)


def _words(part: dict[str, Any]) -> str:
    return ": ".join(part[key] for key in ("reason", "message") if part.get(key))


# The pods of one Job, from the API server, with the pod's own service account.
ANSWER_SECONDS = 30
WATCH_SECONDS = 60
RETRY_SECONDS = 1.0


class Forbidden(Exception):
    """The service account may not list or watch pods."""


class Unavailable(Exception):
    """No answer, a broken one, or one that says to come again."""


class TooOld(Exception):
    """A watch cannot go on from where the last list was: list again."""


class ApiServer(NamedTuple):
    host: str
    port: int
    token: Path
    authority: Path

    def connect(self) -> http.client.HTTPConnection:
        context = ssl.create_default_context(cafile=str(self.authority))
        return http.client.HTTPSConnection(self.host, self.port, timeout=ANSWER_SECONDS, context=context)


def api_server(environ: Mapping[str, str], account: Path = SERVICE_ACCOUNT) -> ApiServer | None:
    """Where the pod's environment says it is; None in a pod that has no service account."""
    address, token = environ.get("KUBERNETES_SERVICE_HOST"), account / "token"
    if not address or not token.exists():
        return None
    port = int(environ.get("KUBERNETES_SERVICE_PORT") or 443)
    return ApiServer(address, port, token, account / "ca.crt")


class JobPods:
    """The pods with the label job-name, and what becomes of them."""

    def __init__(self, server: ApiServer, namespace: str, job: str) -> None:
        self._server = server
        self._path = f"/api/v1/namespaces/{quote(namespace)}/pods"
        self._selector = {"labelSelector": f"job-name={job}"}
        self.trouble = ""
        """Why the API server could not be asked the last time; empty when it could."""

    def changes(self, deadline: float) -> Iterator[list[Pod]]:
        """All pods now, and again after each change, until the deadline."""
        while time.monotonic() < deadline:
            try:
                found, version = self._list()
                self.trouble = ""
                yield list(found.values())
                with contextlib.suppress(TooOld):
                    yield from self._follow(found, version, deadline)
            except Unavailable as reason:
                if not self.trouble:
                    say(f"the API server at {self._server.host} gives no answer ({reason}); trying again")
                self.trouble = str(reason)
            # After a watch too, which something on the way may end at once each time.
            time.sleep(min(RETRY_SECONDS, max(0.0, deadline - time.monotonic())))

    def _list(self) -> tuple[dict[str, Pod], str]:
        connection, response = self._ask(self._selector, ANSWER_SECONDS)
        try:
            answer = json.loads(response.read())
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise Unavailable(str(error)) from None
        finally:
            connection.close()
        found = {pod["metadata"]["name"]: read_pod(pod) for pod in answer.get("items") or []}
        return found, answer["metadata"]["resourceVersion"]

    def _follow(self, found: dict[str, Pod], version: str, deadline: float) -> Iterator[list[Pod]]:
        seconds = max(1, min(WATCH_SECONDS, int(deadline - time.monotonic())))
        query = dict(self._selector, watch="1", resourceVersion=version, timeoutSeconds=str(seconds))
        connection, response = self._ask(query, seconds + ANSWER_SECONDS)
        try:
            for line in iter(response.readline, b""):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                _note(found, event)
                yield list(found.values())
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise Unavailable(str(error)) from None
        finally:
            connection.close()

    def _ask(self, query: Mapping[str, str], seconds: float) -> tuple[http.client.HTTPConnection, Any]:
        try:
            # Both are read each time: the kubelet replaces a token before it expires.
            token, connection = self._server.token.read_text().strip(), self._server.connect()
        except OSError as error:
            raise Unavailable(f"the files of the service account cannot be read: {error}") from None
        connection.timeout = seconds
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        try:
            connection.request("GET", f"{self._path}?{urlencode(query)}", headers=headers)
            response = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Unavailable(str(error) or type(error).__name__) from None
        if response.status != 200:
            words = _message(response)
            connection.close()
            _refuse(response.status, words)
        return connection, response


def _refuse(status: int, words: str) -> None:
    if status == 403:
        raise Forbidden(words)
    if status == 401:
        raise LaunchError(f"the API server does not accept this pod's token: {words}")
    if status == 410:
        raise TooOld
    raise Unavailable(f"{status} {words}")


def _message(response: Any) -> str:
    try:
        return str(json.loads(response.read())["message"])
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
        return str(response.reason)


def _note(found: dict[str, Pod], event: dict[str, Any]) -> None:
    pod = read_pod(event["object"])
    if event["type"] == "DELETED":
        found.pop(pod.name, None)
    else:
        found[pod.name] = pod


# Finds the other pods of the Job by asking the API server.


class TrainingIsOver(Exception):
    """Another pod of the job has succeeded, which none does before all have ended."""


class ByApi:
    """The API server lists the pods of the job."""

    def __init__(self, server: ApiServer, environ: Mapping[str, str], settings: Settings) -> None:
        self._pods = JobPods(server, settings.namespace, settings.job)
        self._settings = settings
        self._hostname = environ.get("HOSTNAME") or socket.gethostname()
        self._own = {environ.get("POD_IP") or _address_towards(server)}
        self._said = ""

    def look(self, deadline: float) -> Group:
        pods: list[Pod] = []
        for seen in self._pods.changes(deadline):
            self._refuse_no_pods(seen)
            pods = self._of_this_job(seen)
            running = [pod for pod in pods if pod.runs]
            if len(running) == self._settings.trainers:
                return self._group(running)
            if any(pod.phase == "Succeeded" for pod in pods):
                raise TrainingIsOver
            self._say(f"{len(running)} of {self._settings.trainers} pods run; waiting for the others")
        raise LaunchError(self._missing(pods))

    def _refuse_no_pods(self, pods: list[Pod]) -> None:
        if not pods:
            raise LaunchError(
                f"no pod in namespace {self._settings.namespace} has the label job-name={self._settings.job}, not even "
                "this one; JOB_NAME must be the Job's metadata.name, and JOB_NAMESPACE its namespace"
            )

    def _of_this_job(self, pods: list[Pod]) -> list[Pod]:
        """Without those that an earlier Job of the same name has left."""
        owners = {pod.owner for pod in pods if self._is_mine(pod) and not pod.leaving}
        return [pod for pod in pods if pod.owner in owners] if owners else pods

    def _is_mine(self, pod: Pod) -> bool:
        """By name where it has one of its own: its address towards the API server may be of another kind."""
        return pod.name == self._hostname or bool(self._own & set(pod.addresses))

    def _group(self, pods: list[Pod]) -> Group:
        addresses = _of_one_kind(pods)
        own = {addresses[place] for place, pod in enumerate(pods) if self._is_mine(pod)}
        return group_of(addresses, own or self._own)

    def _say(self, line: str) -> None:
        if line != self._said:
            say(line)
        self._said = line

    def _missing(self, pods: list[Pod]) -> str:
        if self._pods.trouble:
            return f"the API server gives no answer: {self._pods.trouble}"
        wanted, there = self._settings.trainers, sum(pod.may_run for pod in pods)
        running = sum(pod.runs for pod in pods)
        words = f"{running} of {wanted} pods of the job run after {self._settings.wait_seconds} s"
        waiting = [_state(pod) for pod in pods if not pod.runs]
        if waiting:
            words += f"; not so {listed(waiting)}"
        if there != wanted:
            words += f". The Job has {there} pods: set CONF_PADDLE_GRADIENT_NUM to its parallelism"
        return f"{words}. JOB_WAIT_SECONDS allows more time"


def _of_one_kind(pods: list[Pod]) -> list[str]:
    """Where every pod has an IPv4 address, that: Paddle takes an endpoint apart at its first colon."""
    old = [next((address for address in pod.addresses if ":" not in address), "") for pod in pods]
    return old if all(old) else [pod.addresses[0] for pod in pods]


def _state(pod: Pod) -> str:
    phase = "leaving" if pod.leaving else pod.phase
    return f"{pod.name} ({phase}: {pod.why})" if pod.why else f"{pod.name} ({phase})"


def _address_towards(server: ApiServer) -> str:
    """The address that this pod has on the way to the API server. Nothing is sent."""
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((server.host, server.port))
        except OSError:
            return ""
        return str(probe.getsockname()[0])


# Three ways to find the other pods: they are handed over, have names of their own, or the API server knows them.
LOOK_AGAIN_SECONDS = 1.0


class Finder(Protocol):
    def look(self, deadline: float) -> Group:
        """The group as it is now; waits for all to be there, and raises LaunchError at the deadline."""


class HandedOver:
    """The engine that started this process says who the others are: there is no API server to ask."""

    def __init__(self, environ: Mapping[str, str], trainers: int) -> None:
        addresses = [peer for peer in handed_over(environ).split(",") if peer]
        if len(addresses) != trainers:
            raise LaunchError(
                f"CONF_PADDLE_GRADIENT_NUM: is {trainers}, but the job has {len(addresses)} pods; make them the same"
            )
        own = environ.get("PADDLEJOB_POD_IP") or environ.get("POD_IP", "")
        if environ.get("PADDLEJOB_PEERS"):
            self._group = _sorted_group(addresses, own)
        else:
            self._group = Group(tuple(addresses), int(environ.get("PADDLE_TRAINER_ID") or 0))

    def look(self, deadline: float) -> Group:
        return self._group


def _sorted_group(addresses: list[str], own: str) -> Group:
    try:
        return group_of(addresses, {own})
    except ValueError as error:
        raise LaunchError(f"PADDLEJOB_PEERS: {error}; it is a list of addresses, with commas between") from None


def handed_over(environ: Mapping[str, str]) -> str:
    """By the engine for a Job's pods, or by the operator for the workers of a PaddleJob."""
    return environ.get("PADDLEJOB_PEERS") or environ.get("PADDLE_TRAINERS", "")


class ByName:
    """Pods of an Indexed Job with a headless Service: `<job>-<index>.<service>`. The index is the trainer id."""

    def __init__(self, environ: Mapping[str, str], settings: Settings, resolve: Callable[[str], str] | None = None):
        self._index = int(environ["JOB_COMPLETION_INDEX"])
        ending = f"-{self._index}"
        hostname = environ.get("HOSTNAME", "")
        job = hostname[: -len(ending)] if hostname.endswith(ending) else settings.job
        service = environ.get("JOB_SERVICE") or job
        self._names = [f"{job}-{index}.{service}" for index in range(settings.trainers)]
        self._resolve = resolve or _address_of
        if self._index >= settings.trainers:
            raise LaunchError(
                f"this pod has index {self._index}, but CONF_PADDLE_GRADIENT_NUM is {settings.trainers}; "
                "set it to the Job's parallelism"
            )

    def look(self, deadline: float) -> Group:
        while True:
            found = {name: self._resolve(name) for name in self._names}
            missing = [name for name, address in found.items() if not address]
            if not missing:
                return Group(tuple(found.values()), self._index)
            if time.monotonic() >= deadline:
                raise LaunchError(
                    f"no address for {listed(missing)}; is there a headless Service of that name that selects the "
                    "Job's pods, and does the pod template name it as `subdomain`?"
                )
            time.sleep(LOOK_AGAIN_SECONDS)


class ByApiOrName:
    """Asks the API server; where that is not permitted, an Indexed Job's pods find each other by name."""

    def __init__(self, server: ApiServer, environ: Mapping[str, str], settings: Settings) -> None:
        self._finder: Finder = ByApi(server, environ, settings)
        self._environ = environ
        self._settings = settings

    def look(self, deadline: float) -> Group:
        try:
            return self._finder.look(deadline)
        except Forbidden as error:
            if not self._environ.get("JOB_COMPLETION_INDEX"):
                raise LaunchError(not_permitted(self._settings.namespace, str(error))) from None
            say("the pods may not be listed; finding them by name")
            self._finder = ByName(self._environ, self._settings)
            return self._finder.look(deadline)


def finder(environ: Mapping[str, str], settings: Settings) -> Finder:
    if handed_over(environ):
        return HandedOver(environ, settings.trainers)
    indexed = environ.get("JOB_COMPLETION_INDEX")
    if indexed and environ.get("JOB_SERVICE"):
        return ByName(environ, settings)
    server = api_server(environ)
    if server:
        return ByApiOrName(server, environ, settings)
    if indexed:
        return ByName(environ, settings)
    raise LaunchError(
        "this is not a pod of a Job (no service account, no JOB_COMPLETION_INDEX, no PADDLEJOB_PEERS); submit it with "
        "kubectl, or run its file with `pdj run`"
    )


def not_permitted(namespace: str, words: str) -> str:
    found = re.search(r"system:serviceaccount:([^:\"]+):([^:\"]+)", words)
    account = f"{found[1]}:{found[2]}" if found else f"{namespace}:default"
    return (
        f"the API server does not let this pod list the job's pods: {words}. Permit it with\n"
        f"  kubectl -n {namespace} create role paddle-job-pods --verb=list,watch --resource=pods\n"
        f"  kubectl -n {namespace} create rolebinding paddle-job-pods --role=paddle-job-pods "
        f"--serviceaccount={account}\n"
        "or use `completionMode: Indexed` with a headless Service, which needs no permission"
    )


def _address_of(name: str) -> str:
    try:
        return str(socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError:
        return ""


# What can happen while a group trains. All of it arrives in one queue.


class TrainerEnded(NamedTuple):
    status: int


class ServerEnded(NamedTuple):
    status: int


class PeerLost(NamedTuple):
    words: str


class AllEnded(NamedTuple):
    """Every trainer of the group has ended well."""


class Signalled(NamedTuple):
    number: int


# How the pods of a group meet before they start, so that all of them mean the same group.
#
# The first pod listens; the others say hello with what they take the group to be, and wait for its word to go. A pod
# that still sees a peer that is about to go meets nobody, looks again, and finds the peer's successor.
WINDOW_SECONDS = 10.0
CONNECT_SECONDS = 5.0
HELLO_SECONDS = 1.0
LONGEST_LINE = 4096


class NotMet(Exception):
    """The group did not come together; look again at who is there."""


class Line:
    """A connection that carries lines of text."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(CONNECT_SECONDS)
        self.connection = connection
        self._reader = connection.makefile("r", encoding="utf-8", errors="replace", newline="\n")

    def send(self, text: str) -> None:
        with suppress(OSError):
            self.connection.sendall(f"{text[:LONGEST_LINE]}\n".encode())

    def read(self, seconds: float | None) -> str:
        """The next line; empty when the other side is gone or says nothing for so long."""
        try:
            self.connection.settimeout(seconds)
            return self._reader.readline(2 * LONGEST_LINE).rstrip("\n")
        except (OSError, ValueError):
            return ""

    def close(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        self.connection.close()


class Door:
    """The first pod's side of the meeting: who has come, and who of them belongs to the group."""

    def __init__(self, group: Group, listener: socket.socket) -> None:
        self.lines: dict[int, Line] = {}
        self._group = group
        self._listener = listener
        listener.listen(128)
        listener.setblocking(False)
        self._ears = selectors.DefaultSelector()
        self._ears.register(listener, selectors.EVENT_READ)

    @property
    def missing(self) -> list[str]:
        ranks = range(1, len(self._group.addresses))
        return [self._group.addresses[rank] for rank in ranks if rank not in self.lines]

    def wait(self, until: float) -> bool:
        """True when all have come, and none of them has gone again meanwhile."""
        while True:
            complete = not self.missing
            heard = self._ears.select(0 if complete else max(0.0, until - time.monotonic()))
            if not heard and (complete or time.monotonic() >= until):
                return complete
            for key, _ in heard:
                if key.data:
                    self._hear(key.data)
                else:
                    self._open()

    def close(self) -> None:
        """Send away all who are not of the group."""
        for key in list(self._ears.get_map().values()):
            if key.data and key.data not in self.lines.values():
                key.data.close()
        self._ears.close()

    def _open(self) -> None:
        with suppress(OSError):
            line = Line(self._listener.accept()[0])
            self._ears.register(line.connection, selectors.EVENT_READ, line)

    def _hear(self, line: Line) -> None:
        """One who has come says hello. One who has said so already says nothing more: he is gone."""
        known = [rank for rank, one in self.lines.items() if one is line]
        rank = 0 if known else self._greeted(line.read(HELLO_SECONDS))
        for again in known or [rank]:
            if again in self.lines:
                self._drop(self.lines.pop(again))
        if rank:
            self.lines[rank] = line
        elif not known:
            self._drop(line)

    def _greeted(self, hello: str) -> int:
        """The rank of one who sees the same group; 0, which is this pod's own, for all others."""
        words = hello.split()
        if len(words) != 3 or words[:2] != ["hello", self._group.digest] or not words[2].isdecimal():
            return 0
        return int(words[2]) if int(words[2]) < len(self._group.addresses) else 0

    def _drop(self, line: Line) -> None:
        self._ears.unregister(line.connection)
        line.close()


def meet(group: Group, port: int, deadline: float) -> dict[int, Line]:
    """Lines to the others by their rank: the first pod has one to each, the others have one to the first."""
    if len(group.addresses) == 1:
        return {}
    until = min(deadline, time.monotonic() + WINDOW_SECONDS)
    return _gather(group, port, until) if group.rank == 0 else _join(group, port, until)


def refuse_taken_ports(address: str, ports: Iterable[int]) -> None:
    """A server that cannot have its port would take the whole group down with it."""
    taken = [str(port) for port in ports if _is_taken(address, port)]
    if taken:
        raise NotMet(
            f"port {', '.join(taken)} of this pod ({address}) is taken by another process; end that, or set "
            "CONF_PADDLE_PORT to another number"
        )


def _gather(group: Group, port: int, until: float) -> dict[int, Line]:
    try:
        listener = _bound(group.own, port)
    except OSError as error:
        raise NotMet(f"this pod cannot listen at {group.own}, port {port} ({error.strerror or error})") from None
    with listener:
        door = Door(group, listener)
        try:
            complete = door.wait(until)
        finally:
            door.close()
    for line in door.lines.values():
        if complete:
            line.send("go")
        else:
            line.close()
    if not complete:
        raise NotMet(f"no word from {', '.join(door.missing)} at port {port}, which must be open between the pods")
    return door.lines


def _join(group: Group, port: int, until: float) -> dict[int, Line]:
    first = group.addresses[0]
    try:
        connection = socket.create_connection((first, port), timeout=CONNECT_SECONDS)
    except OSError as error:
        raise NotMet(
            f"{first} is not reached at port {port}, which must be open between the pods ({error.strerror or error})"
        ) from None
    line = Line(connection)
    line.send(f"hello {group.digest} {group.rank}")
    # Longer than the first pod can take: it must not be let go when this one has just left.
    if line.read(max(0.0, until - time.monotonic()) + CONNECT_SECONDS) != "go":
        line.close()
        raise NotMet(f"{first} sees other pods than this one does, or waits for some as well")
    return {0: line}


def _bound(address: str, port: int) -> socket.socket:
    family, _, _, _, place = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(place)
    except OSError:
        made.close()
        raise
    return made


def _is_taken(address: str, port: int) -> bool:
    try:
        _bound(address, port).close()
    except OSError as error:
        return error.errno == errno.EADDRINUSE
    return False


# Keeps the launchers of a group in touch: who has ended well, who is gone.
#
# The first pod hears from all and passes it on. A connection that breaks, or is silent for too long, is a pod that is
# gone: its server is gone with it, and without that no trainer can go on.
ALIVE_SECONDS = 5.0
SILENCE_SECONDS = 60.0
GOODBYE_SECONDS = 5.0


class Link:
    def __init__(self, group: Group, lines: dict[int, Line], tell: Callable[[Any], None]) -> None:
        self._group = group
        self._lines = lines
        self._tell = tell
        self._lock = threading.Lock()
        self._ended: set[int] = set()
        self._closed = threading.Event()
        self._listeners = [threading.Thread(target=self._listen, args=each, daemon=True) for each in lines.items()]
        for thread in self._listeners:
            thread.start()
        threading.Thread(target=self._keep_alive, daemon=True).start()

    def ended_well(self) -> None:
        """This pod's trainer has ended with status 0."""
        if self._group.rank == 0:
            self._note_end(0)
        else:
            self._send_all("ended")

    def give_up(self, words: str) -> None:
        """Tell the others that this pod cannot go on, and why."""
        self._send_all(f"lost {words}")

    def close(self) -> None:
        """The first pod stays until the others have heard that all is over: its network goes when it does."""
        if self._closed.is_set() and self._group.rank == 0:
            for thread in self._listeners:
                thread.join(GOODBYE_SECONDS)
        self._closed.set()
        for line in self._lines.values():
            line.close()

    def _listen(self, rank: int, line: Line) -> None:
        while True:
            word, _, rest = line.read(SILENCE_SECONDS).partition(" ")
            if word == "ended":
                self._note_end(rank)
            elif word == "over":
                self._finish()
            elif word != "alive":
                self._lose(rank, rest or f"trainer {rank} ({self._group.addresses[rank]}) is gone")
                return

    def _note_end(self, rank: int) -> None:
        with self._lock:
            self._ended.add(rank)
            all_ended = len(self._ended) == len(self._group.addresses)
        if all_ended:
            self._send_all("over")
            self._finish()

    def _finish(self) -> None:
        self._closed.set()
        self._tell(AllEnded())

    def _lose(self, rank: int, words: str) -> None:
        if self._closed.is_set():
            return
        # Before this pod hears of it: it ends at once.
        if self._group.rank == 0:
            self._send_all(f"lost {words}", but=rank)
        self._tell(PeerLost(words))

    def _keep_alive(self) -> None:
        while not self._closed.wait(ALIVE_SECONDS):
            self._send_all("alive")

    def _send_all(self, text: str, but: int = -1) -> None:
        with self._lock:
            for rank, line in self._lines.items():
                if rank != but:
                    line.send(text)


# The server and the trainer of a pod: what they write goes to a log file and to standard output.
GRACE_SECONDS = 10.0
LONGEST_PIECE = 1 << 16
CANNOT_START = 127


class Command(NamedTuple):
    words: list[str]
    environ: dict[str, str]


class Process:
    """One child. It stays in the launcher's process group, so that whoever ends the group ends all of it."""

    def __init__(self, command: Command, directory: Path, log: Path, ended: Callable[[int], None]) -> None:
        try:
            self._child = subprocess.Popen(
                command.words,
                env=command.environ,
                cwd=str(directory),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        except OSError as error:
            raise LaunchError(f"{command.words[0]} does not start: {error.strerror}", CANNOT_START) from None
        self._copier = threading.Thread(target=self._copy, args=(log,), daemon=True)
        self._copier.start()
        threading.Thread(target=self._wait, args=(ended,), daemon=True).start()

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._child.send_signal(number)

    def end_by(self, moment: float) -> None:
        """Wait for its end until then, and make it end if it has not."""
        try:
            self._child.wait(max(0.0, moment - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._copier.join(1)

    def _copy(self, log: Path) -> None:
        assert self._child.stdout
        lines, file = self._child.stdout, _opened(log)
        for line in iter(lambda: lines.readline(LONGEST_PIECE), b""):
            # A reader of standard output that is gone must not stop the child, which would wait for ever.
            with contextlib.suppress(OSError):
                sys.stdout.buffer.write(line)
                sys.stdout.flush()
            file = _written(file, line, log)
        if file:
            file.close()

    def _wait(self, ended: Callable[[int], None]) -> None:
        status = self._child.wait()
        # A grandchild may keep the pipe open for ever.
        self._copier.join(5)
        ended(status if status >= 0 else 128 - status)


def stop(processes: Sequence[Process]) -> None:
    """Ask all of them to end, and make them after a while."""
    for process in processes:
        process.signal(signal.SIGTERM)
    moment = time.monotonic() + GRACE_SECONDS
    for process in processes:
        process.end_by(moment)


def _opened(log: Path) -> IO[bytes] | None:
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        return log.open("ab", buffering=0)
    except OSError as error:
        say(f"{log}: cannot be written ({error.strerror}); its lines are only here")
        return None


def _written(file: IO[bytes] | None, line: bytes, log: Path) -> IO[bytes] | None:
    """Training does not end because its log cannot be written."""
    try:
        if file:
            file.write(line)
        return file
    except OSError as error:
        say(f"{log}: cannot be written any more ({error.strerror}); its lines are only here")
        return None


# The directory that a pod trains in: the files of TRAIN_CONFIG_DIR, and its part of the data at ./data.


@contextlib.contextmanager
def workspace(settings: Settings, part: int | None, before_each: Callable[[], None] | None = None) -> Iterator[Path]:
    """A copy inside the container, removed afterwards. Without a part, no data is copied: a server reads none.

    What is to be called before each file may raise, where it makes no sense to go on copying.
    """
    try:
        directory = Path(tempfile.mkdtemp(prefix=f"{settings.job}-"))
    except OSError as error:
        raise LaunchError(f"{tempfile.gettempdir()}: no directory to train in can be made there: {error}") from None
    try:
        copy = Copy(before_each or _nothing)
        for entry in _entries(settings.config):
            if part is None or entry.name != "data":
                copy(entry, directory / entry.name)
        if part is not None:
            _copy_part(settings, part, directory / "data", copy)
        yield directory
    finally:
        shutil.rmtree(str(directory), ignore_errors=True)


class Copy:
    def __init__(self, before_each: Callable[[], None]) -> None:
        self._before_each = before_each

    def __call__(self, source: Path, target: Path) -> None:
        try:
            if source.is_dir():
                shutil.copytree(str(source), str(target), copy_function=self._file)
            else:
                self._file(str(source), str(target))
        except shutil.Error as error:
            raise LaunchError(f"{source}: cannot be copied to {target.parent}: {error.args[0][0][2]}") from None
        except OSError as error:
            raise LaunchError(f"{source}: cannot be copied to {target.parent}: {error}") from None

    def _file(self, source: str, target: str) -> None:
        self._before_each()
        shutil.copy2(source, target)


def _copy_part(settings: Settings, part: int, target: Path, copy: Copy) -> None:
    source = settings.part(part)
    if not source.is_dir():
        there = sorted((one.name for one in _entries(settings.root) if one.name.isdecimal()), key=int)
        raise LaunchError(
            f"{source}: trainer {part} has no data; there are parts {listed(there)}. Split the data into as many "
            f"parts as there are trainers (SPLIT_COUNT={settings.trainers})"
        )
    copy(source, target)
    files = [path for path in target.rglob("*") if path.is_file()]
    say(f"copied {len(files)} files, {sum(path.stat().st_size for path in files)} bytes, from {source}")


def _entries(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError as error:
        raise LaunchError(f"{directory}: cannot be read: {error.strerror}") from None


def _nothing() -> None:
    pass


# Command lines for the Paddle of the documents: `paddle pserver` and `paddle train`.
COMMENT = "paddle_process_by_paddle"
SCRIPT_SIZE = 1 << 20


def find_paddle(path: str | None) -> str:
    """The command `paddle` that knows `pserver`; today's wheel brings another one of that name, which does not."""
    found = shutil.which("paddle", path=path)
    if not found:
        return ""
    try:
        with Path(found).open("rb") as script:
            return found if b"pserver" in script.read(SCRIPT_SIZE) else ""
    except OSError:
        return ""


def old_ports(settings: Settings) -> range:
    """Those of its server."""
    return range(settings.port, settings.port + settings.ports + settings.sparse_ports)


def old_commands(paddle: str, settings: Settings, group: Group, environ: Mapping[str, str]) -> tuple[Command, Command]:
    """The server's and the trainer's."""
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
    """In the order of the document's log, which lacks --num_gradient_servers: that comes last."""
    ours = [
        f"--nics={settings.nic}",
        f"--port={settings.port}",
        f"--ports_num={settings.ports}",
        f"--comment={COMMENT}",
        f"--pservers={','.join(group.addresses)}",
    ]
    passed_on = joined(settings.passed_on)
    given = {flag.partition("=")[0] for flag in passed_on}
    sparse = [f"--ports_num_for_sparse={settings.sparse_ports}"]
    count = [f"--trainer_count={settings.threads}"]
    last = [
        f"--trainer_id={group.rank}",
        f"--save_dir={settings.output}",
        f"--num_gradient_servers={settings.trainers}",
    ]
    return [
        *ours,
        *([] if "--ports_num_for_sparse" in given else sparse),
        *passed_on,
        *([] if "--trainer_count" in given else count),
        *last,
    ]


def joined(arguments: Sequence[str]) -> list[str]:
    """`--key value` as `--key=value`; all else as it is."""
    flags: list[str] = []
    for argument in arguments:
        if flags and not argument.startswith("--") and flags[-1].startswith("--") and "=" not in flags[-1]:
            flags[-1] += f"={argument}"
        else:
            flags.append(argument)
    return flags


# The same roles for today's Paddle: one program, train.py, that takes its role from the environment.
PROGRAM = "train.py"
GLOO_OVER_HTTP = "3"
TRAINER, GLOO = 1, 2
"""How far their ports are behind the server's."""


def refuse_missing_program(settings: Settings) -> None:
    if not (settings.config / PROGRAM).is_file():
        there = sorted(one.name for one in settings.config.iterdir())
        raise LaunchError(
            f"{settings.config}: has no {PROGRAM}, which today's Paddle runs as server and as trainer (there is "
            f"{listed(there)}), and the `paddle` command of 2016 is not in this image either"
        )


def new_ports(settings: Settings, group: Group) -> list[int]:
    """Those that are listened at in this pod: the first server also lets the trainers meet, by gloo."""
    return [settings.port, settings.port + GLOO] if group.rank == 0 else [settings.port]


def new_commands(settings: Settings, group: Group, environ: Mapping[str, str]) -> tuple[Command, Command]:
    """The server's and the trainer's."""
    words = program(settings)
    common = dict(environ, **outside(settings), **shared(settings, group))
    trainer_port = settings.port + TRAINER
    server = role(group, "PSERVER", settings.port)
    trainer = dict(
        role(group, "TRAINER", trainer_port), PADDLE_CURRENT_ENDPOINT=group.endpoints(trainer_port)[group.rank]
    )
    return Command(words, dict(common, **server)), Command(words, dict(common, **trainer))


def program(settings: Settings) -> list[str]:
    return [sys.executable or "python3", PROGRAM, *settings.passed_on]


def outside(settings: Settings) -> dict[str, str]:
    """What the program needs to know of the pod."""
    return {"DATA_DIR": "data", "OUTPUT_DIR": str(settings.output), "PYTHONUNBUFFERED": "1"}


def shared(settings: Settings, group: Group) -> dict[str, str]:
    """Variables with the same value in all processes of a group."""
    return {
        "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(group.endpoints(settings.port)),
        "PADDLE_TRAINER_ENDPOINTS": ",".join(group.endpoints(settings.port + TRAINER)),
        "PADDLE_TRAINERS": ",".join(group.addresses),
        "PADDLE_TRAINERS_NUM": str(len(group.addresses)),
        "TRAINER_PORTS_NUM": "1",
        "PADDLE_WITH_GLOO": "1",
        "PADDLE_GLOO_RENDEZVOUS": GLOO_OVER_HTTP,
        "PADDLE_GLOO_HTTP_ENDPOINT": group.endpoints(settings.port + GLOO)[0],
        "SYS_JOB_ID": f"{settings.job}-{group.digest}",
    }


def role(group: Group, name: str, port: int) -> dict[str, str]:
    return {
        "POD_IP": host(group.own),
        "PADDLE_PORT": str(port),
        "PADDLE_TRAINER_ID": str(group.rank),
        "TRAINING_ROLE": name,
        "PADDLE_TRAINING_ROLE": name,
    }


# Training from the first process to the last, and the exit status it ends with.
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def end_on_signal() -> None:
    """While nothing is started yet, a signal ends the launcher wherever it is. Process 1 of a container needs this."""

    def end(number: int, _frame: FrameType | None) -> None:
        raise LaunchError(f"told to stop ({signal.Signals(number).name}) before training", 128 + number)

    for number in ENDING:
        signal.signal(number, end)


def catch_signals(events: SimpleQueue[Any]) -> None:
    """From here on a signal is an event like the others."""
    for number in FORWARDED:
        signal.signal(number, lambda caught, _frame: events.put(Signalled(caught)))


def stay_together(events: SimpleQueue[Any]) -> None:
    """Raise if the group has fallen apart before it trains."""
    with contextlib.suppress(Empty):
        event = events.get_nowait()
        if isinstance(event, PeerLost):
            raise LaunchError(_cannot_go_on(event.words), PEER_LOST)


class Pair:
    """The server and the trainer of this pod, and what is done about each event."""

    def __init__(self, settings: Settings, group: Group, link: Link, events: SimpleQueue[Any]) -> None:
        self._logs = settings.logs(group.rank)
        self._me = f"trainer {group.rank} ({group.own})"
        self._link = link
        self._events = events
        self._processes: list[Process] = []
        self._running = 0
        self._told = 0
        """The signal that asks this pod to end."""

    def run(self, server: Command, trainer: Command, directory: Path) -> int:
        """The trainer's status, or why there is none."""
        try:
            self._start(server, directory, "server.log", ServerEnded)
            self._start(trainer, directory, "train.log", TrainerEnded)
            while True:
                status = self._after(self._events.get())
                if status is not None:
                    return status
        finally:
            stop(self._processes)

    def _start(self, command: Command, directory: Path, log: str, ended: Any) -> None:
        tell = self._events.put
        self._processes.append(Process(command, directory, self._logs / log, lambda status: tell(ended(status))))
        self._running += 1

    def _after(self, event: Any) -> int | None:
        """The exit status once it is known."""
        if isinstance(event, (TrainerEnded, ServerEnded)):
            self._running -= 1
        if isinstance(event, Signalled):
            return self._signalled(event.number)
        if self._told:
            return None if self._running else 128 + self._told
        if isinstance(event, TrainerEnded):
            return self._trainer_ended(event.status)
        if isinstance(event, ServerEnded):
            return self._fail(f"the server of {self._me} ended with status {event.status}", event.status or 1)
        if isinstance(event, PeerLost):
            say(_cannot_go_on(event.words))
            return PEER_LOST
        return 0 if isinstance(event, AllEnded) else None

    def _trainer_ended(self, status: int) -> int | None:
        if status:
            return self._fail(f"{self._me} failed with status {status}", status)
        say(f"{self._me} has ended; its server stays until all have")
        self._link.ended_well()
        return None

    def _signalled(self, number: int) -> int | None:
        """Passed on. Who asks the pod to end has a clock of his own, and who asks twice is in a hurry."""
        for process in self._processes:
            process.signal(number)
        if number not in ENDING:
            return None
        if self._told:
            return 128 + number
        self._told = number
        return self._fail(f"{self._me} was told to stop ({signal.Signals(number).name})", None)

    def _fail(self, words: str, status: int | None) -> int | None:
        say(words)
        self._link.give_up(words)
        return status


def run_alone(command: Command, directory: Path, log: Path, events: SimpleQueue[Any]) -> int:
    """One process that an operator looks after."""
    process = Process(command, directory, log, lambda status: events.put(TrainerEnded(status)))
    told = 0
    while True:
        event = events.get()
        if isinstance(event, TrainerEnded):
            return 128 + told if told else event.status
        if isinstance(event, Signalled):
            process.signal(event.number)
            told = event.number if event.number in ENDING else told


def _cannot_go_on(words: str) -> str:
    return f"{words}: training cannot go on without it; ending, so that a new group can start"


# From the environment of a pod to the exit status of its trainer.
MEET_AGAIN_SECONDS = 0.5
SILENT_SECONDS = 10.0


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> int:
    try:
        return launch(sys.argv[1:] if arguments is None else arguments, os.environ if environ is None else environ)
    except LaunchError as error:
        say(str(error))
        return error.status
    except TrainingIsOver:
        say("the other pods of this job have succeeded: there is nothing left to train")
        return 0
    except OSError as error:
        say(f"cannot go on: {error}")
        return BAD_SETUP


def launch(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    settings = read_settings(environ, arguments)
    refuse_missing_config(settings)
    end_on_signal()
    if environ.get("PADDLE_PSERVERS_IP_PORT_LIST") and environ.get("TRAINING_ROLE"):
        return _one_role(settings, environ)
    paddle = find_paddle(environ.get("PATH"))
    if not paddle:
        refuse_missing_program(settings)
    say(f"job {settings.job}: waiting for {settings.trainers} pods")
    group, lines = Gathering(finder(environ, settings), settings, bool(paddle)).come_together()
    say(f"trainer {group.rank} of {len(group.addresses)} at {group.own}; the group is {','.join(group.addresses)}")
    if not paddle and ":" in group.own:
        say("warning: these are IPv6 addresses, which Paddle 2.6 cannot use with parameter servers")
    events: SimpleQueue[Any] = SimpleQueue()
    link = Link(group, lines, events.put)
    try:
        server, trainer = _commands(paddle, settings, group, environ)
        with workspace(settings, group.rank, lambda: stay_together(events)) as directory:
            catch_signals(events)
            return Pair(settings, group, link, events).run(server, trainer, directory)
    except LaunchError as error:
        link.give_up(f"trainer {group.rank} ({group.own}) cannot start: {error}".replace("\n", " "))
        raise
    finally:
        link.close()


def _commands(paddle: str, settings: Settings, group: Group, environ: Mapping[str, str]) -> tuple[Command, Command]:
    if paddle:
        return old_commands(paddle, settings, group, environ)
    return new_commands(settings, group, environ)


class Gathering:
    """Looks who is there and meets them, again until all see the same group."""

    def __init__(self, find: Finder, settings: Settings, old_paddle: bool) -> None:
        self._find = find
        self._settings = settings
        self._old_paddle = old_paddle
        self._said = ""

    def come_together(self) -> tuple[Group, dict[int, Line]]:
        began = time.monotonic()
        deadline = began + self._settings.wait_seconds
        while True:
            group = self._find.look(deadline)
            try:
                refuse_taken_ports(group.own, self._ports(group))
                return group, meet(group, self._settings.meeting_port, deadline)
            except NotMet as reason:
                self._again(str(reason), time.monotonic() - began)
            time.sleep(MEET_AGAIN_SECONDS)

    def _ports(self, group: Group) -> range | list[int]:
        return old_ports(self._settings) if self._old_paddle else new_ports(self._settings, group)

    def _again(self, reason: str, seconds: float) -> None:
        """Not at once: that the others are not there yet is no news."""
        if seconds >= self._settings.wait_seconds:
            raise LaunchError(f"the pods did not come together within {self._settings.wait_seconds} s: {reason}")
        if seconds >= SILENT_SECONDS and reason != self._said:
            say(f"{reason}; trying again")
            self._said = reason


def _one_role(settings: Settings, environ: Mapping[str, str]) -> int:
    """In a pod of a PaddleJob the operator has said who is who: bring the files, run the program."""
    refuse_missing_program(settings)
    trainer = environ["TRAINING_ROLE"] == "TRAINER"
    index = int(environ.get("PADDLE_TRAINER_ID") or 0)
    log = settings.logs(index) / ("train.log" if trainer else "server.log")
    events: SimpleQueue[Any] = SimpleQueue()
    with workspace(settings, index if trainer else None) as directory:
        catch_signals(events)
        return run_alone(Command(program(settings), dict(environ, **outside(settings))), directory, log, events)


if __name__ == "__main__":
    sys.exit(main())
