"""Jobs of a cluster in a browser: a real API server and a real operator, a kubelet that a test controls."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Collection
from pathlib import Path

import pytest
from playwright.async_api import Page, async_playwright, expect

from testbed.controlplane import ControlPlane
from tests.support.cluster_pdj import START, ClusterPdj
from tests.support.log_server import LogServer
from tests.support.operator_stage import OperatorStage
from tests.support.proxy import Proxy, kubeconfig_through, server_port
from tests.support.web import CHROMIUM, PATIENCE

pytestmark = pytest.mark.full

expect.set_options(timeout=PATIENCE)


@pytest.fixture
async def proxy(installed: ControlPlane) -> AsyncIterator[Proxy]:
    made = Proxy(server_port(installed.kubeconfig))
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def page(installed: ControlPlane, proxy: Proxy, namespace: str, tmp_path: Path) -> AsyncIterator[Page]:
    """The page of `pdj web --cluster` for one namespace, behind a proxy that the test can close."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium; install Debian's package `chromium`")
    kubeconfig = kubeconfig_through(installed.kubeconfig, proxy, tmp_path / "kubeconfig")
    environment = ClusterPdj(installed, tmp_path, kubeconfig).environment
    command = [*START, "web", "--cluster", "-n", namespace, "--no-browser", "--port", "0"]
    process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=asyncio.subprocess.PIPE)
    assert process.stdout
    url = re.search(r"http://\S+", (await process.stdout.readline()).decode())
    assert url
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = await browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-US")
        context.set_default_timeout(PATIENCE)
        opened = await context.new_page()
        problems: list[str] = []
        opened.on("pageerror", lambda error: problems.append(str(error)))
        await opened.goto(url[0])
        yield opened
        await browser.close()
    os.kill(process.pid, signal.SIGINT)
    assert await process.wait() == 0
    assert problems == []


def bind(plane: ControlPlane, namespace: str, *pods: str) -> None:
    for pod in pods:
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": {"name": namespace}}
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/binding"
        plane.kubectl("create", "--raw", path, "-f", "-", input=json.dumps(binding))


async def created(stage: OperatorStage, *pods: str, other_than: Collection[str] = ()) -> set[str]:
    """The uids of the pods, once all of them exist and none of the others does."""
    ends = time.monotonic() + 60
    while not {*pods} <= (found := await stage.pods()).keys() or {*other_than} & {*found.values()}:
        assert time.monotonic() < ends, found
        await asyncio.sleep(0.1)
    return {*found.values()}


async def keep(page: Page, name: str, folder: Path) -> None:
    target = Path(os.environ.get("PDJ_SCREENSHOTS") or folder) / f"{name}.png"
    await page.screenshot(path=str(target), full_page=True)


async def test_a_job_of_a_cluster_is_watched_through_a_failure_and_suspended(
    page: Page, stage: OperatorStage, installed: ControlPlane, logs: LogServer, namespace: str, tmp_path: Path
):
    pods = ["story-worker-0", "story-worker-1"]
    row = page.locator('tr[data-job="story"]')
    stage.kubelet.hold |= {*pods}
    await stage.submit(workers=2)
    await expect(row).to_have_attribute("data-phase", "Pending")
    uids = await created(stage, *pods)
    bind(installed, namespace, *pods)
    stage.kubelet.hold.clear()
    await expect(row).to_have_attribute("data-phase", "Running")

    await row.locator("a").click()
    for step in range(1, 5):
        logs.write("story-worker-0", f"step {step}/100 loss={1 / step}")
    curve = page.locator('[data-metric="loss"] path.curve')
    await expect(curve).to_be_visible()
    before = len(await curve.get_attribute("d") or "")
    for step in range(5, 20):
        logs.write("story-worker-0", f"step {step}/100 loss={1 / step}")
    ends = time.monotonic() + 60
    while len(await curve.get_attribute("d") or "") <= before:
        assert time.monotonic() < ends, "the curve does not grow"
        await asyncio.sleep(0.2)
    await expect(page.locator('[data-replica="worker-0"]')).to_contain_text(namespace)

    await page.keyboard.press("l")
    await expect(page.locator(".line").filter(has_text="step 19/100")).to_be_visible()
    await page.get_by_label("Search").fill("step 7/")
    await expect(page.locator(".line")).to_have_count(1)
    await page.keyboard.press("Escape")
    await page.keyboard.press("Escape")

    stage.kubelet.hold |= {*pods}
    await stage.exit("story-worker-1", 3, "no more data")
    await expect(page.locator('[data-attempt="1"] .reason')).to_contain_text("story-worker-1")
    await created(stage, *pods, other_than=uids)
    stage.kubelet.hold.clear()
    await expect(page.locator('[data-attempt="2"]')).to_be_visible()
    await keep(page, "cluster-job", tmp_path)
    await expect(page.locator(".title .badge")).to_have_attribute("data-phase", "Running")

    await page.locator('[data-action="suspend"]').click()
    await expect(page.locator("dialog .command")).to_have_text(f"pdj suspend story --cluster -n {namespace}")
    await page.locator('[data-confirm="suspend"]').click()
    await expect(page.locator(".title .badge")).to_have_attribute("data-phase", "Suspended")
    await page.locator('[data-action="resume"]').click()
    await page.locator('[data-confirm="resume"]').click()
    await expect(page.locator(".title .badge")).to_have_attribute("data-phase", "Running")
    for pod in pods:
        await stage.exit(pod, 0)
    await expect(page.locator(".title .badge")).to_have_attribute("data-phase", "Completed")


async def test_a_cluster_that_goes_away_is_shown_as_such_and_recovers(
    page: Page, proxy: Proxy, stage: OperatorStage, tmp_path: Path
):
    row = page.locator('tr[data-job="story"]')
    await stage.submit(workers=1)
    await expect(row).to_have_attribute("data-phase", "Running")
    await proxy.close()
    await expect(page.locator(".notice.warning")).to_contain_text("Shown as last seen")
    await expect(row).to_be_visible()
    await keep(page, "cluster-away", tmp_path)
    await stage.exit("story-worker-0", 0)
    await stage.until(phase="Completed")
    await proxy.open()
    await expect(row).to_have_attribute("data-phase", "Completed")
    await expect(page.locator(".notice.warning")).to_have_count(0)
    await page.goto(page.url.partition("#")[0] + "#/machine")
    await expect(page.locator('[data-machine="cluster"]')).to_be_visible()
