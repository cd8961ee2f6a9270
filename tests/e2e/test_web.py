"""`pdj web` for a cluster with real nodes: pods that really train, seen and changed in a browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from testbed.cluster import Cluster
from tests.support.cluster_pdj import ClusterPdj
from tests.support.on_cluster import QUICK, Job
from tests.support.pdj import Pdj
from tests.support.web import CHROMIUM, keep, page_of, serving

pytestmark = pytest.mark.full
PATIENCE = 240_000
NAME = "watched"


def document(shared: Path) -> dict[str, Any]:
    environment = {"OUTPUT_DIR": "/shared", "STEPS": "3000", "SAVE_EVERY": "10", "STEP_SECONDS": "0.2"}
    container = {
        "name": "paddle",
        "image": "paddlejob/checkpoint:v1",
        "env": [{"name": name, "value": value} for name, value in environment.items()],
        "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
    }
    volumes = [{"name": "shared", "hostPath": {"path": str(shared)}}]
    template = {"spec": {"containers": [container], "volumes": volumes, **QUICK}}
    return {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": NAME, "namespace": "default"},
        "spec": {"worker": {"replicas": 2, "template": template}},
    }


@pytest.fixture
def page(operator: Cluster, tmp_path: Path) -> Iterator[Page]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium; install Debian's package `chromium`")
    expect.set_options(timeout=PATIENCE)
    pdj = Pdj(tmp_path)
    pdj.environment |= ClusterPdj(operator, tmp_path).environment  # type: ignore[arg-type]
    with sync_playwright() as playwright, serving(pdj, "--cluster", "-n", "default") as server:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        with page_of(browser, server) as opened:
            opened.set_default_timeout(PATIENCE)
            yield opened
        browser.close()


def test_a_job_on_real_nodes_is_watched_through_a_lost_pod_suspended_resumed_and_deleted(
    operator: Cluster, page: Page, tmp_path: Path
):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    row = page.locator(f'tr[data-job="{NAME}"]')
    badge = page.locator(".title .badge")
    job = Job(operator, "default", NAME)
    operator.kubectl("create", "-f", "-", input=json.dumps(document(shared)))
    expect(row).to_have_attribute("data-phase", "Running")
    expect(row.locator(".cell-progress")).to_contain_text("/3000")
    row.locator("a").click()
    expect(page.locator('[data-metric="loss"] path.curve')).to_be_visible()
    nodes = {pod["spec"]["nodeName"] for pod in job.pods().values()}
    assert any(node in page.locator('[data-replica="worker-0"]').inner_text() for node in nodes)

    operator.kubectl("-n", "default", "delete", "pod", f"{NAME}-worker-1", "--wait=false")
    expect(page.locator('[data-attempt="1"] .reason')).to_contain_text(f"{NAME}-worker-1")
    expect(page.locator('[data-attempt="2"]')).to_be_visible()
    expect(badge).to_have_attribute("data-phase", "Running")
    keep(page, "nodes-job", tmp_path)

    page.keyboard.press("l")
    page.get_by_label("Search").fill("step=[0-9]+/3000")
    expect(page.locator("mark").first).to_contain_text("/3000")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")

    page.locator('[data-action="suspend"]').click()
    page.locator('[data-confirm="suspend"]').click()
    expect(badge).to_have_attribute("data-phase", "Suspended")
    page.locator('[data-action="resume"]').click()
    page.locator('[data-confirm="resume"]').click()
    expect(badge).to_have_attribute("data-phase", "Running")

    page.get_by_role("link", name="Machine").click()
    cluster = page.locator('[data-machine="cluster"]')
    for node in nodes:
        expect(cluster.locator(f'[data-name="{node}"]')).to_contain_text("Ready")
    keep(page, "nodes", tmp_path)
    page.go_back()
    page.locator('[data-action="delete"]').click()
    page.locator('[data-confirm="delete"]').click()
    expect(row).to_have_count(0)
