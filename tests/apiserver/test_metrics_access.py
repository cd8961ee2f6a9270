"""Metrics for those whom the API server knows and permits, with the real reviews of tokens and access."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.controlplane import ControlPlane
from tests.support.operator_fixtures import ACCOUNT
from tests.support.operator_process import OperatorProcess

SCRAPER = "scraper"
BINDING = "metrics-access-test"


@pytest.fixture
def guarded(
    installed: ControlPlane, operator_kubeconfig: Path, namespace: str, tmp_path: Path
) -> Iterator[OperatorProcess]:
    """An operator whose metrics need a token, for an empty namespace."""
    installed.kubectl("create", "serviceaccount", SCRAPER, "-n", namespace)
    options = (f"--namespace={namespace}", "--metrics-auth")
    with OperatorProcess(operator_kubeconfig, tmp_path / "log", *options) as process:
        process.until_ready()
        yield process
    installed.kubectl("delete", "clusterrolebinding", BINDING, f"{BINDING}-reader", "--ignore-not-found")
    installed.kubectl("delete", "clusterrole", BINDING, "--ignore-not-found")


def scraped(operator: OperatorProcess, token: str = "") -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"http://127.0.0.1:{operator.metrics_port}/metrics", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def until(operator: OperatorProcess, token: str, code: int) -> str:
    """The API server takes a moment to know a new binding."""
    ends = time.monotonic() + 60
    while True:
        found, text = scraped(operator, token)
        if found == code:
            return text
        assert time.monotonic() < ends, f"{found}, not {code}: {text}"
        time.sleep(0.2)


def test_a_scraper_needs_a_token_and_the_permission_to_get_metrics(
    installed: ControlPlane, guarded: OperatorProcess, namespace: str
):
    token = installed.kubectl("create", "token", SCRAPER, "-n", namespace).stdout.strip()
    assert scraped(guarded)[0] == 401
    code, text = scraped(guarded, token)
    assert code == 503
    assert "bind the operator's service account to the ClusterRole system:auth-delegator" in text
    account = ":".join(ACCOUNT)
    delegate = ("--clusterrole=system:auth-delegator", f"--serviceaccount={account}")
    installed.kubectl("create", "clusterrolebinding", BINDING, *delegate)
    text = until(guarded, token, 403)
    assert f"system:serviceaccount:{namespace}:{SCRAPER} may not get /metrics" in text
    assert scraped(guarded, f"{token[:-4]}AAAA")[0] == 401, "a token that was tampered with"
    installed.kubectl("create", "clusterrole", BINDING, "--verb=get", "--non-resource-url=/metrics")
    reader = (f"--clusterrole={BINDING}", f"--serviceaccount={namespace}:{SCRAPER}")
    installed.kubectl("create", "clusterrolebinding", f"{BINDING}-reader", *reader)
    assert "paddlejob_leader 1.0" in until(guarded, token, 200)
    assert guarded.get("/readyz") == "ok", "the probes need no token"
