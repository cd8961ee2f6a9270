"""The chart on a real cluster: the operator runs, `helm test` trains a job, and metrics need a token."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from testbed.build.binaries import binaries
from testbed.cluster import Cluster
from tests.support.on_cluster import eventually

pytestmark = pytest.mark.full

CHART = Path(__file__).parent.parent.parent / "deploy/chart"
DEPLOYMENT = "deployment/paddle-controller-manager"
Helm = Callable[..., str]
SCRAPE = """
import ssl, sys, urllib.error, urllib.request
token = open("/var/run/secrets/kubernetes.io/serviceaccount/token").read() if sys.argv[1] == "token" else ""
trusted = ssl.create_default_context(cafile="/etc/paddlejob/metrics/tls.crt")
trusted.check_hostname = False
headers = {"Authorization": f"Bearer {token}"} if token else {}
try:
    request = urllib.request.Request("https://127.0.0.1:8080/metrics", headers=headers)
    print(urllib.request.urlopen(request, context=trusted).read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
"""


@pytest.fixture
def alone(images: Cluster) -> Iterator[Cluster]:
    """The cluster while no other operator runs: two would undo each other's work."""
    images.kubectl("apply", "--server-side", "-f", str(CHART / "crds/crd.yaml"))
    others = images.kubectl("-n", "paddle-system", "get", DEPLOYMENT, check=False).returncode == 0
    if others:
        images.kubectl("-n", "paddle-system", "scale", DEPLOYMENT, "--replicas=0")
        images.kubectl("-n", "paddle-system", "wait", "pod", "--all", "--for=delete", "--timeout=60s")
    yield images
    if others:
        images.kubectl("-n", "paddle-system", "scale", DEPLOYMENT, "--replicas=1")
        images.kubectl("-n", "paddle-system", "rollout", "status", DEPLOYMENT, "--timeout=180s")


@pytest.fixture
def helm(alone: Cluster, cluster_namespace: str) -> Iterator[Helm]:
    def run(*arguments: str | Path) -> str:
        command = [binaries("helm")["helm"], "-n", cluster_namespace, *arguments]
        done = subprocess.run(command, env=alone.environment(), capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    yield run
    run("uninstall", "paddlejob", "--ignore-not-found")


def test_the_chart_installs_an_operator_that_trains_a_job_and_guards_its_metrics(
    alone: Cluster, helm: Helm, cluster_namespace: str
):
    settings = {"namespace": cluster_namespace, "createNamespace": "false", "watch": cluster_namespace}
    settings["monitoring.auth"] = "true"
    options = [f"--set={name}={value}" for name, value in settings.items()]
    helm("install", "paddlejob", CHART, "--skip-crds", *options, "--wait", "--timeout=180s")
    assert "job paddlejob-test in namespace" in helm("test", "paddlejob", "--logs", "--timeout=180s")
    assert "paddlejob-test" not in alone.kubectl("-n", cluster_namespace, "get", "pdj").stdout, "it is deleted again"

    def scraped(how: str) -> str:
        return alone.kubectl("-n", cluster_namespace, "exec", DEPLOYMENT, "--", "python3", "-c", SCRAPE, how).stdout

    assert scraped("nothing").startswith("401 ")
    assert "may not get /metrics" in scraped("token")
    secret = ("get", "secret", "paddle-controller-manager-metrics", "-o", "jsonpath={.data.tls\\.crt}")
    before = alone.kubectl("-n", cluster_namespace, *secret).stdout
    helm("upgrade", "paddlejob", CHART, *options, "--set=monitoring.jobMetrics=true", "--wait", "--timeout=180s")
    assert alone.kubectl("-n", cluster_namespace, *secret).stdout == before, "an upgrade keeps the certificate"
    account = f"{cluster_namespace}:paddle-controller-manager"
    reader = (f"--clusterrole=paddlejob-metrics-reader-{cluster_namespace}", f"--serviceaccount={account}")
    alone.kubectl("create", "clusterrolebinding", cluster_namespace, *reader)
    try:
        # The new pod reports jobs once it has taken over the lease of the old one.
        eventually("the leader reports jobs", lambda: 'paddlejob_jobs{phase="Completed"} 0.0' in scraped("token"))
    finally:
        alone.kubectl("delete", "clusterrolebinding", cluster_namespace)
