"""Discovering the job's pods through a real API server, under RBAC, with a service account's token and TLS."""

from __future__ import annotations

import base64
import json
import threading
import time
from pathlib import Path

import pytest
import yaml

from paddlejob.launch.api_discovery import ApiDiscovery
from paddlejob.launch.discovery import ApiOrDnsDiscovery
from paddlejob.launch.group import Group
from paddlejob.launch.output import LaunchError
from paddlejob.launch.pods_api import ApiServer, api_server
from paddlejob.launch.settings import read_settings
from testbed.controlplane import ControlPlane
from tests.unit.launch.documents import ENVIRON

EXAMPLES = Path(__file__).resolve().parents[2] / "deploy" / "examples" / "batch-job"
JOB = "paddle-cluster-job"


class Job:
    """The documents' Job on an API server without nodes: a test is the kubelet."""

    def __init__(self, plane: ControlPlane, namespace: str, directory: Path) -> None:
        self.plane = plane
        self.namespace = namespace
        self.server = self._account(directory)
        self.kubectl("create", "-f", str(EXAMPLES / "paddle-cluster-job.yaml"))

    def kubectl(self, *args: str) -> str:
        return self.plane.kubectl("-n", self.namespace, *args).stdout

    def permit(self) -> None:
        role = (EXAMPLES / "role.yaml").read_text().replace("namespace: default", f"namespace: {self.namespace}")
        self.plane.kubectl("-n", self.namespace, "apply", "-f", "-", input=role)

    def pods(self, count: int = 3) -> list[str]:
        """As the Job's controller has made them."""
        deadline = time.monotonic() + 60
        while True:
            names = self.kubectl("get", "pods", "-l", f"job-name={JOB}", "-o", "name").split()
            if len(names) >= count:
                return sorted(names)
            assert time.monotonic() < deadline, names
            time.sleep(0.2)

    def runs(self, pod: str, address: str) -> None:
        status = {"status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}}
        self.kubectl("patch", pod, "--subresource=status", "--type=merge", "-p", json.dumps(status))

    def discovery(self, address: str, indexed: bool = False) -> ApiOrDnsDiscovery:
        environ = {**ENVIRON, "JOB_NAMESPACE": self.namespace, "POD_IP": address}
        if indexed:
            environ |= {"JOB_COMPLETION_INDEX": "0"}
        return ApiOrDnsDiscovery(self.server, environ, read_settings(environ, []))

    def _account(self, directory: Path) -> ApiServer:
        """The files that a kubelet mounts into each pod."""
        cluster = yaml.safe_load(self.plane.kubeconfig.read_text())["clusters"][0]["cluster"]
        (directory / "ca.crt").write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
        (directory / "token").write_text(self.kubectl("create", "token", "default"))
        host, port = cluster["server"].rpartition("/")[2].split(":")
        found = api_server({"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}, directory)
        assert found
        return found


@pytest.fixture
def job(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Job:
    return Job(control_plane, namespace, tmp_path)


def test_with_the_examples_role_pods_watch_until_all_run(job: Job):
    job.permit()
    first, second, third = job.pods()
    job.runs(first, "10.0.0.10")
    job.runs(second, "10.0.0.9")
    found: list[Group] = []
    discovering = threading.Thread(
        target=lambda: found.append(job.discovery("10.0.0.9").discover(time.monotonic() + 60))
    )
    discovering.start()
    discovering.join(1)
    assert discovering.is_alive(), "two of three pods run"
    job.runs(third, "10.0.0.11")
    discovering.join(30)
    assert found == [Group(("10.0.0.9", "10.0.0.10", "10.0.0.11"), 0)]


def test_other_pods_of_the_namespace_do_not_count(job: Job):
    job.permit()
    job.kubectl("run", "bystander", "--image=x")
    job.runs("pod/bystander", "10.0.0.1")
    for number, pod in enumerate(job.pods()):
        job.runs(pod, f"10.0.0.{number + 20}")
    assert job.discovery("10.0.0.21").discover(time.monotonic() + 30).addresses == (
        "10.0.0.20",
        "10.0.0.21",
        "10.0.0.22",
    )


def test_a_pod_that_failed_is_replaced_in_the_group_by_its_successor(job: Job):
    job.permit()
    first, *others = job.pods()
    for number, pod in enumerate([first, *others]):
        job.runs(pod, f"10.0.0.{number + 20}")
    job.kubectl("delete", first, "--grace-period=0", "--force")
    successor = next(pod for pod in job.pods() if pod not in (first, *others))
    job.runs(successor, "10.0.0.30")
    assert job.discovery("10.0.0.21").discover(time.monotonic() + 30).addresses == (
        "10.0.0.21",
        "10.0.0.22",
        "10.0.0.30",
    )


def test_after_the_time_limit_pods_that_are_not_running_are_named_with_kubernetes_own_reasons(job: Job):
    job.permit()
    first, second, third = job.pods()
    job.runs(first, "10.0.0.9")
    message = "0/3 nodes are available: 3 Insufficient cpu."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    patch = json.dumps({"status": {"conditions": [condition]}})
    job.kubectl("patch", second, "--subresource=status", "--type=strategic", "-p", patch)
    with pytest.raises(LaunchError) as error:
        job.discovery("10.0.0.9").discover(time.monotonic() + 1)
    assert "1 of 3 pods of the job are running" in str(error.value)
    assert f"{second.rpartition('/')[2]} (Pending: Unschedulable: {message})" in str(error.value)
    assert f"{third.rpartition('/')[2]} (Pending)" in str(error.value)


def test_a_name_that_is_not_the_jobs_is_reported_at_once(job: Job):
    job.permit()
    job.pods()
    environ = {**ENVIRON, "JOB_NAMESPACE": job.namespace, "JOB_NAME": "other"}
    with pytest.raises(LaunchError, match="has the label job-name=other, not even this one"):
        ApiDiscovery(job.server, environ, read_settings(environ, [])).discover(time.monotonic() + 600)


def test_without_a_role_the_error_has_the_commands_that_grant_it(job: Job):
    with pytest.raises(LaunchError) as error:
        job.discovery("10.0.0.9").discover(time.monotonic() + 30)
    message = str(error.value)
    assert 'cannot list resource "pods"' in message
    for line in message.splitlines():
        if line.strip().startswith("kubectl"):
            job.plane.kubectl(*line.split()[1:])
    for number, pod in enumerate(job.pods()):
        job.runs(pod, f"10.0.0.{number + 9}")
    assert job.discovery("10.0.0.9").discover(time.monotonic() + 30).rank == 0, "the printed commands are enough"


def test_without_a_role_an_indexed_job_uses_dns(job: Job, monkeypatch: pytest.MonkeyPatch):
    names = {f"{JOB}-{index}.{JOB}": f"10.0.0.{30 - index}" for index in range(3)}
    monkeypatch.setattr("paddlejob.launch.discovery.look_up", names.__getitem__)
    found = job.discovery("10.0.0.30", indexed=True).discover(time.monotonic() + 30)
    assert found == Group(("10.0.0.30", "10.0.0.29", "10.0.0.28"), 0)


def test_a_server_with_the_wrong_authority_is_not_trusted(job: Job, tmp_path: Path):
    job.permit()
    other = tmp_path / "other"
    other.mkdir()
    made = job.plane.kubectl(
        "config", "view", "--raw", "--minify", "-o", "jsonpath={.users[0].user.client-certificate-data}"
    )
    (other / "ca.crt").write_bytes(base64.b64decode(made.stdout))
    server = job.server._replace(authority=other / "ca.crt")
    environ = {**ENVIRON, "JOB_NAMESPACE": job.namespace, "POD_IP": "10.0.0.9"}
    with pytest.raises(LaunchError, match=r"is not responding: .*CERTIFICATE_VERIFY_FAILED"):
        ApiDiscovery(server, environ, read_settings(environ, [])).discover(time.monotonic() + 1)
