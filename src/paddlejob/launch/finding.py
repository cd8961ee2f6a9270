"""Three ways to find the other pods: they are handed over, have names of their own, or the API server knows them."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from paddlejob.launch.by_api import ByApi
from paddlejob.launch.group import Group, group_of
from paddlejob.launch.pods_api import ApiServer, Forbidden, api_server
from paddlejob.launch.settings import Settings
from paddlejob.launch.words import LaunchError, listed, say

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
