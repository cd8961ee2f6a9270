"""Discovers the other pods of the Job through the API server."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from paddlejob.launch.group import Group, build_group
from paddlejob.launch.output import LaunchError, comma_separated, log
from paddlejob.launch.pod import Pod
from paddlejob.launch.pods_api import ApiServer, JobPods
from paddlejob.launch.settings import Settings


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
