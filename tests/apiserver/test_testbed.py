"""The test control plane itself: if these tests fail, the others of this tier prove nothing."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.controlplane import ControlPlane
from tests.support.processes import is_alive

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "sleeper"},
    "spec": {"containers": [{"name": "main", "image": "busybox"}]},
}


def eventually(condition: Callable[[], bool], patience: float = 60) -> bool:
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.2)
    return False


def test_a_pod_is_accepted_in_a_fresh_namespace(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.kubectl("create", "-n", namespace, "-f", "-", input=json.dumps(POD))
    phase = control_plane.kubectl("get", "pod", "sleeper", "-n", namespace, "-o", "jsonpath={.status.phase}").stdout
    assert phase == "Pending"


def test_the_server_reports_its_version(control_plane: ControlPlane) -> None:
    versions = json.loads(control_plane.kubectl("version", "-o", "json").stdout)
    assert versions["serverVersion"]["gitVersion"] == versions["clientVersion"]["gitVersion"]
    assert versions["serverVersion"]["minor"] in versions["serverVersion"]["gitVersion"]


def test_objects_survive_a_restart_and_a_crash(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.kubectl("create", "configmap", "memo", "-n", namespace, "--from-literal=text=kept")
    control_plane.restart_apiserver()
    control_plane.kill_apiserver()
    assert not control_plane.ready()
    control_plane.start_apiserver()
    memo = control_plane.kubectl("get", "configmap", "memo", "-n", namespace, "-o", "jsonpath={.data.text}").stdout
    assert memo == "kept"


def test_a_write_hangs_while_etcd_is_suspended(control_plane: ControlPlane, namespace: str) -> None:
    write = ["create", "configmap", "slow", "-n", namespace, "--request-timeout=2s"]
    control_plane.pause_etcd()
    try:
        assert control_plane.kubectl(*write, check=False).returncode != 0
    finally:
        control_plane.resume_etcd()
    assert eventually(control_plane.ready)
    assert control_plane.kubectl("get", "configmaps", "-n", namespace).returncode == 0


def test_objects_are_garbage_collected_with_their_owner(control_plane: ControlPlane, namespace: str) -> None:
    def kubectl(*arguments: str, **more: str) -> str:
        return control_plane.kubectl("-n", namespace, *arguments, **more).stdout  # type: ignore[arg-type]

    kubectl("create", "configmap", "owner")
    uid = kubectl("get", "configmap", "owner", "-o", "jsonpath={.metadata.uid}")
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
    owned = {**POD, "metadata": {"name": "owned", "ownerReferences": [owner]}}
    kubectl("create", "-f", "-", input=json.dumps(owned))
    kubectl("delete", "configmap", "owner")
    assert eventually(lambda: not kubectl("get", "pods", "-o", "name"))


def test_a_service_account_has_only_the_permissions_of_its_role(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.kubectl("create", "serviceaccount", "reader", "-n", namespace)
    control_plane.kubectl("create", "role", "reader", "-n", namespace, "--verb=list", "--resource=pods")
    control_plane.kubectl(
        "create", "rolebinding", "reader", "-n", namespace, "--role=reader", f"--serviceaccount={namespace}:reader"
    )
    as_reader = f"--kubeconfig={control_plane.kubeconfig_for(namespace, 'reader')}"
    assert control_plane.kubectl("get", "pods", as_reader).returncode == 0
    rejected = control_plane.kubectl("get", "secrets", as_reader, check=False)
    assert "forbidden" in rejected.stderr


def test_a_pod_runs_on_a_fake_node_and_can_be_deleted(kwok_cluster: ControlPlane, kwok_namespace: str) -> None:
    kwok_cluster.kubectl("create", "-n", kwok_namespace, "-f", "-", input=json.dumps(POD))
    kwok_cluster.kubectl("wait", "-n", kwok_namespace, "pod/sleeper", "--for=condition=Ready", "--timeout=60s")
    kwok_cluster.kubectl("delete", "-n", kwok_namespace, "pod", "sleeper", "--timeout=60s")
    assert kwok_cluster.kubectl("get", "pods", "-n", kwok_namespace, "-o", "name").stdout == ""


@pytest.mark.usefixtures("control_plane")
def test_nothing_is_left_after_stop() -> None:
    with ControlPlane(controllers=False) as plane:
        pids = [process.pid for process in plane.processes.values()]
        assert len(pids) == 2
        assert all(is_alive(pid) for pid in pids)
    assert not any(is_alive(pid) for pid in pids)
    assert not plane.directory.exists()


@pytest.mark.usefixtures("control_plane")
def test_nothing_is_left_when_the_test_run_itself_is_killed(tmp_path: Path) -> None:
    program = (
        "from testbed.controlplane import ControlPlane\n"
        "import time\n"
        "plane = ControlPlane(controllers=False)\n"
        "plane.processes['etcd'].start()\n"
        "print(plane.processes['etcd'].pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as run:
        assert run.stdout is not None
        pid = int(run.stdout.readline())
        assert is_alive(pid)
        run.kill()
    assert eventually(lambda: not is_alive(pid), patience=60)
