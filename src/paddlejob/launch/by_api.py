"""Finds the other pods of the Job by asking the API server."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from paddlejob.launch.group import Group, group_of
from paddlejob.launch.pod import Pod
from paddlejob.launch.pods_api import ApiServer, JobPods
from paddlejob.launch.settings import Settings
from paddlejob.launch.words import LaunchError, listed, say


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
