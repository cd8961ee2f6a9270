#!/usr/bin/env python3
"""Starts a parameter server and a trainer in a pod of a Kubernetes Job.

Generated from paddlejob.launch by `make generate`; do not edit. Needs Python 3.8 or newer, nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import ipaddress
import json
import os
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
from queue import SimpleQueue
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
    known = _trainers_known(environ)
    found = Settings(
        job=job,
        root=Path(path) / job,
        namespace=environ.get("JOB_NAMESPACE") or _own_namespace(),
        config_dir=config_dir,
        nic=environ.get("CONF_PADDLE_NIC") or "eth0",
        port=_number(environ, "CONF_PADDLE_PORT", 7164, 1, faults),
        ports=_number(environ, "CONF_PADDLE_PORTS_NUM", 2, 1, faults),
        sparse_ports=_number(environ, "CONF_PADDLE_PORTS_NUM_SPARSE", 2, 0, faults),
        trainers=_number(environ, "CONF_PADDLE_GRADIENT_NUM", known, 1, faults),
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
    if text.isdigit() and int(text) >= least:
        return int(text)
    faults.append(f"{name}: is {environ.get(name) or 'not set'}; set it to a whole number, {least} or more")
    return least


def _trainers_known(environ: Mapping[str, str]) -> int:
    """From the engine that hands the peers over, or from the operator of a PaddleJob; else 0."""
    peers = [peer for peer in environ.get("PADDLEJOB_PEERS", "").split(",") if peer]
    return len(peers) or int(environ.get("PADDLE_TRAINERS_NUM") or 0)


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


# The pods of one Job, from the API server, with the pod's own service account.
ANSWER_SECONDS = 30
WATCH_SECONDS = 60
RETRY_SECONDS = 1.0


class Forbidden(Exception):
    """The service account may not list or watch pods."""


class Unavailable(Exception):
    """No answer, a broken one, or one that says to come again."""


class Pod(NamedTuple):
    name: str
    address: str
    phase: str
    owner: str
    leaving: bool


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

    def changes(self, deadline: float) -> Iterator[list[Pod]]:
        """All pods now, and again after each change, until the deadline."""
        complained = False
        while time.monotonic() < deadline:
            try:
                found, version = self._list()
                yield list(found.values())
                yield from self._follow(found, version, deadline)
            except Unavailable as reason:
                if not complained:
                    say(f"the API server at {self._server.host} gives no answer ({reason}); trying again")
                complained = True
                time.sleep(RETRY_SECONDS)

    def _list(self) -> tuple[dict[str, Pod], str]:
        connection, response = self._ask(self._selector, ANSWER_SECONDS)
        try:
            answer = json.loads(response.read())
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise Unavailable(str(error)) from None
        finally:
            connection.close()
        found = {pod["metadata"]["name"]: _pod(pod) for pod in answer["items"]}
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
        connection = self._server.connect()
        connection.timeout = seconds
        # Read each time: the kubelet replaces a token before it expires.
        headers = {"Authorization": f"Bearer {self._server.token.read_text().strip()}", "Accept": "application/json"}
        try:
            connection.request("GET", f"{self._path}?{urlencode(query)}", headers=headers)
            response = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Unavailable(str(error)) from None
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
    raise Unavailable(f"{status} {words}")


def _message(response: Any) -> str:
    try:
        return str(json.loads(response.read())["message"])
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
        return str(response.reason)


def _note(found: dict[str, Pod], event: dict[str, Any]) -> None:
    pod = _pod(event["object"])
    if event["type"] == "DELETED":
        found.pop(pod.name, None)
    else:
        found[pod.name] = pod


def _pod(document: dict[str, Any]) -> Pod:
    metadata, status = document["metadata"], document.get("status") or {}
    owner = next((one["uid"] for one in metadata.get("ownerReferences") or [] if one.get("controller")), "")
    return Pod(
        name=metadata["name"],
        address=status.get("podIP") or "",
        phase=status.get("phase") or "Pending",
        owner=owner,
        leaving="deletionTimestamp" in metadata,
    )


# Three ways to find the other pods: they are handed over, have names of their own, or the API server knows them.
LOOK_AGAIN_SECONDS = 1.0


class TrainingIsOver(Exception):
    """Another pod of the job has succeeded, which none does before all have ended."""


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
            self._group = group_of(addresses, {own})
        else:
            self._group = Group(tuple(addresses), int(environ.get("PADDLE_TRAINER_ID") or 0))

    def look(self, deadline: float) -> Group:
        return self._group


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


class ByApi:
    """The API server lists the pods of the job."""

    def __init__(self, server: ApiServer, environ: Mapping[str, str], settings: Settings) -> None:
        self._pods = JobPods(server, settings.namespace, settings.job)
        self._trainers = settings.trainers
        self._hostname = environ.get("HOSTNAME") or socket.gethostname()
        self._own = {environ.get("POD_IP") or _address_towards(server)}
        self._said = ""

    def look(self, deadline: float) -> Group:
        pods: list[Pod] = []
        for seen in self._pods.changes(deadline):
            pods = self._of_this_job(seen)
            running = [pod for pod in pods if pod.phase == "Running" and pod.address and not pod.leaving]
            if len(running) == self._trainers:
                return group_of([pod.address for pod in running], self._own)
            if any(pod.phase == "Succeeded" for pod in pods):
                raise TrainingIsOver
            self._say(f"{len(running)} of {self._trainers} pods run; waiting for the others")
        raise LaunchError(self._missing(pods))

    def _of_this_job(self, pods: list[Pod]) -> list[Pod]:
        """Without those that an earlier Job of the same name has left."""
        mine = [pod for pod in pods if pod.name == self._hostname or pod.address in self._own]
        owners = {pod.owner for pod in mine if not pod.leaving}
        return [pod for pod in pods if pod.owner in owners] if owners else pods

    def _say(self, line: str) -> None:
        if line != self._said:
            say(line)
        self._said = line

    def _missing(self, pods: list[Pod]) -> str:
        seen = [f"{pod.name} ({'leaving' if pod.leaving else pod.phase})" for pod in pods]
        return (
            f"waited too long for {self._trainers} running pods of the job; there are: {listed(seen)}. Set "
            "CONF_PADDLE_GRADIENT_NUM to the Job's parallelism; `kubectl describe pod` says why one does not run; "
            "JOB_WAIT_SECONDS allows more time"
        )


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
    return (
        f"the API server does not let this pod list the job's pods: {words}. Permit it with\n"
        f"  kubectl -n {namespace} create role paddle-job-pods --verb=list,watch --resource=pods\n"
        f"  kubectl -n {namespace} create rolebinding paddle-job-pods --role=paddle-job-pods "
        f"--serviceaccount={namespace}:default\n"
        "or use `completionMode: Indexed` with a headless Service, which needs no permission"
    )


def _address_of(name: str) -> str:
    try:
        return str(socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError:
        return ""


def _address_towards(server: ApiServer) -> str:
    """The address that this pod has on the way to the API server. Nothing is sent."""
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((server.host, server.port))
        except OSError:
            return ""
        return str(probe.getsockname()[0])


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
HELLO_SECONDS = 5.0
LONGEST_LINE = 4096


class NotMet(Exception):
    """The group did not come together; look again at who is there."""


class Line:
    """A connection that carries lines of text."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reader = connection.makefile("r", encoding="utf-8", errors="replace", newline="\n")

    def send(self, text: str) -> None:
        with suppress(OSError):
            self._connection.sendall(f"{text[:LONGEST_LINE]}\n".encode())

    def read(self, seconds: float | None) -> str:
        """The next line; empty when the other side is gone or says nothing for so long."""
        try:
            self._connection.settimeout(seconds)
            return self._reader.readline(2 * LONGEST_LINE).rstrip("\n")
        except (OSError, ValueError):
            return ""

    def close(self) -> None:
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


def meet(group: Group, port: int, deadline: float) -> dict[int, Line]:
    """Lines to the others by their rank: the first pod has one to each, the others have one to the first."""
    until = min(deadline, time.monotonic() + WINDOW_SECONDS)
    if len(group.addresses) == 1:
        return {}
    return _gather(group, port, until) if group.rank == 0 else _join(group, port, deadline)


def _gather(group: Group, port: int, until: float) -> dict[int, Line]:
    lines: dict[int, Line] = {}
    try:
        with _listener(group.own, port) as listener:
            while len(lines) < len(group.addresses) - 1:
                listener.settimeout(max(0.01, until - time.monotonic()))
                _greet(Line(listener.accept()[0]), group, lines)
    except OSError as error:
        for line in lines.values():
            line.close()
        missing = [address for rank, address in enumerate(group.addresses) if rank and rank not in lines]
        raise NotMet(f"no word from {', '.join(missing)} at port {port} ({error})") from None
    for line in lines.values():
        line.send("go")
    return lines


def _greet(line: Line, group: Group, lines: dict[int, Line]) -> None:
    words = line.read(HELLO_SECONDS).split()
    if len(words) != 3 or words[:2] != ["hello", group.digest] or not words[2].isdigit():
        line.close()
        return
    rank = int(words[2])
    if rank in lines:
        lines[rank].close()
    lines[rank] = line


def _join(group: Group, port: int, deadline: float) -> dict[int, Line]:
    first = group.addresses[0]
    try:
        connection = socket.create_connection((first, port), timeout=HELLO_SECONDS)
    except OSError as error:
        raise NotMet(f"{first} is not reached at port {port} ({error})") from None
    line = Line(connection)
    line.send(f"hello {group.digest} {group.rank}")
    if line.read(max(0.01, deadline - time.monotonic())) != "go":
        line.close()
        raise NotMet(f"{first} sees other pods than this one does")
    return {0: line}


def _listener(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


# Keeps the launchers of a group in touch: who has ended well, who is gone.
#
# The first pod hears from all and passes it on. A connection that breaks, or is silent for too long, is a pod that is
# gone: its server is gone with it, and without that no trainer can go on.
ALIVE_SECONDS = 5.0
SILENCE_SECONDS = 60.0


class Link:
    def __init__(self, group: Group, lines: dict[int, Line], tell: Callable[[Any], None]) -> None:
        self._group = group
        self._lines = lines
        self._tell = tell
        self._lock = threading.Lock()
        self._ended: set[int] = set()
        self._closed = threading.Event()
        for rank, line in lines.items():
            threading.Thread(target=self._listen, args=(rank, line), daemon=True).start()
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
        self._closed.set()
        for line in self._lines.values():
            line.close()

    def _listen(self, rank: int, line: Line) -> None:
        while not self._closed.is_set():
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
        self._tell(PeerLost(words))
        if self._group.rank == 0:
            self._send_all(f"lost {words}", but=rank)

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

    def stop(self) -> None:
        """Ask it to end, and make it after a while."""
        self._child.terminate()
        try:
            self._child.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._copier.join(1)

    def _copy(self, log: Path) -> None:
        assert self._child.stdout
        file = _opened(log)
        for line in iter(self._child.stdout.readline, b""):
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
def workspace(settings: Settings, part: int | None) -> Iterator[Path]:
    """A copy inside the container, removed afterwards. Without a part, no data is copied: a server reads none."""
    directory = Path(tempfile.mkdtemp(prefix=f"{settings.job}-"))
    try:
        for entry in sorted(settings.config.iterdir()):
            _copy(entry, directory / entry.name)
        if part is not None:
            shutil.rmtree(str(directory / "data"), ignore_errors=True)
            _copy_part(settings, part, directory / "data")
        yield directory
    finally:
        shutil.rmtree(str(directory), ignore_errors=True)


def _copy_part(settings: Settings, part: int, target: Path) -> None:
    source = settings.part(part)
    if not source.is_dir():
        there = sorted((one.name for one in settings.root.iterdir() if (one / "data").is_dir()), key=_as_number)
        raise LaunchError(
            f"{source}: trainer {part} has no data; there are parts {listed(there)}. Split the data into as many "
            f"parts as there are trainers (SPLIT_COUNT={settings.trainers})"
        )
    _copy(source, target)
    files = [path for path in target.rglob("*") if path.is_file()]
    say(f"copied {len(files)} files, {sum(path.stat().st_size for path in files)} bytes, from {source}")


def _copy(source: Path, target: Path) -> None:
    try:
        if source.is_dir():
            shutil.copytree(str(source), str(target))
        else:
            shutil.copy2(str(source), str(target))
    except (OSError, shutil.Error) as error:
        raise LaunchError(f"{source}: cannot be copied to {target.parent}: {error}") from None


def _as_number(name: str) -> tuple[int, str]:
    return (int(name), "") if name.isdigit() else (-1, name)


# Command lines for the Paddle of the documents: `paddle pserver` and `paddle train`.
COMMENT = "paddle_process_by_paddle"
SCRIPT_SIZE = 1 << 20


def find_paddle(path: str | None) -> str:
    """The command `paddle` that knows `pserver`; today's wheel brings another one of that name, which does not."""
    found = shutil.which("paddle", path=path)
    if not found:
        return ""
    with Path(found).open("rb") as script:
        return found if b"pserver" in script.read(SCRIPT_SIZE) else ""


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


def refuse_missing_program(settings: Settings) -> None:
    if not (settings.config / PROGRAM).is_file():
        there = sorted(one.name for one in settings.config.iterdir())
        raise LaunchError(
            f"{settings.config}: has no {PROGRAM}, which today's Paddle runs as server and as trainer (there is "
            f"{listed(there)}), and the `paddle` command of 2016 is not in this image either"
        )


def new_commands(settings: Settings, group: Group, environ: Mapping[str, str]) -> tuple[Command, Command]:
    """The server's and the trainer's."""
    words = program(settings)
    common = dict(environ, **outside(settings), **shared(settings, group))
    trainer_port = settings.port + 1
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
        "PADDLE_TRAINER_ENDPOINTS": ",".join(group.endpoints(settings.port + 1)),
        "PADDLE_TRAINERS": ",".join(group.addresses),
        "PADDLE_TRAINERS_NUM": str(len(group.addresses)),
        "TRAINER_PORTS_NUM": "1",
        "PADDLE_WITH_GLOO": "1",
        "PADDLE_GLOO_RENDEZVOUS": GLOO_OVER_HTTP,
        "PADDLE_GLOO_HTTP_ENDPOINT": group.endpoints(settings.port + 2)[0],
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


class Pair:
    """The server and the trainer of this pod, and what is done about each event."""

    def __init__(self, settings: Settings, group: Group, link: Link, events: SimpleQueue[Any]) -> None:
        self._logs = settings.logs(group.rank)
        self._me = f"trainer {group.rank} ({group.own})"
        self._link = link
        self._events = events
        self._processes: list[Process] = []

    def run(self, server: Command, trainer: Command, directory: Path) -> int:
        """The trainer's status, or why there is none."""
        with self._stopped_at_the_end():
            self._start(server, directory, "server.log", ServerEnded)
            self._start(trainer, directory, "train.log", TrainerEnded)
            while True:
                status = self._after(self._events.get())
                if status is not None:
                    return status

    def _start(self, command: Command, directory: Path, log: str, ended: Any) -> None:
        tell = self._events.put
        self._processes.append(Process(command, directory, self._logs / log, lambda status: tell(ended(status))))

    @contextlib.contextmanager
    def _stopped_at_the_end(self) -> Iterator[None]:
        try:
            yield
        finally:
            for process in reversed(self._processes):
                process.stop()

    def _after(self, event: Any) -> int | None:
        """The exit status once it is known."""
        if isinstance(event, TrainerEnded):
            return self._trainer_ended(event.status)
        if isinstance(event, ServerEnded):
            return self._fail(f"the server of {self._me} ended with status {event.status}", event.status or 1)
        if isinstance(event, PeerLost):
            say(f"{event.words}: training cannot go on without it; ending, so that a new group can start")
            return PEER_LOST
        if isinstance(event, Signalled):
            return self._signalled(event.number)
        return 0 if isinstance(event, AllEnded) else None

    def _trainer_ended(self, status: int) -> int | None:
        if status:
            return self._fail(f"{self._me} failed with status {status}", status)
        say(f"{self._me} has ended; its server stays until all have")
        self._link.ended_well()
        return None

    def _signalled(self, number: int) -> int | None:
        for process in self._processes:
            process.signal(number)
        if number not in ENDING:
            return None
        return self._fail(f"{self._me} was told to stop ({signal.Signals(number).name})", 128 + number)

    def _fail(self, words: str, status: int) -> int:
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


# From the environment of a pod to the exit status of its trainer.
MEET_AGAIN_SECONDS = 0.5


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> int:
    try:
        return launch(sys.argv[1:] if arguments is None else arguments, os.environ if environ is None else environ)
    except LaunchError as error:
        say(str(error))
        return error.status
    except TrainingIsOver:
        say("the other pods of this job have succeeded: there is nothing left to train")
        return 0


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
    group, lines = _come_together(finder(environ, settings), settings)
    say(f"trainer {group.rank} of {len(group.addresses)} at {group.own}; the group is {','.join(group.addresses)}")
    events: SimpleQueue[Any] = SimpleQueue()
    catch_signals(events)
    link = Link(group, lines, events.put)
    try:
        server, trainer = _commands(paddle, settings, group, environ)
        with workspace(settings, group.rank) as directory:
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


def _come_together(find: Finder, settings: Settings) -> tuple[Group, dict[int, Line]]:
    """Look who is there and meet them, again until all see the same group."""
    deadline = time.monotonic() + settings.wait_seconds
    while True:
        group = find.look(deadline)
        try:
            return group, meet(group, settings.meeting_port, deadline)
        except NotMet as reason:
            if time.monotonic() >= deadline:
                raise LaunchError(
                    f"the pods did not come together within {settings.wait_seconds} s: {reason}; port "
                    f"{settings.meeting_port} must be open between them"
                ) from None
        time.sleep(MEET_AGAIN_SECONDS)


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
