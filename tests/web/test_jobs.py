"""Jobs of this machine, watched in a browser while they run."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.fake_gpus import fake_driver, new_uuid
from tests.support.pdj import Pdj, wait
from tests.support.web import PATIENCE, Server, keep, page_of, serving

expect.set_options(timeout=PATIENCE)
TRAINS = """
import os, sys, time
first = int(sys.argv[1]) if len(sys.argv) > 1 else 1
step = first
while not os.path.exists("enough"):
    print(f"\\x1b[32mINFO\\x1b[0m step {step}/100000 loss={1 / step:.5f} needle-{step}", flush=True)
    step += 1
    time.sleep(0.05)
print("the end", flush=True)
"""


def row(page: Page, name: str):  # type: ignore[no-untyped-def]
    return page.locator(f'tr[data-job="{name}"]')


def start(pdj: Pdj, name: str = "light", **options: object) -> None:
    (pdj.folder / "train.py").write_text(TRAINS)
    done = pdj("run", "--detach", pdj.write(name, command=["python", "train.py"], **options))
    assert done.returncode == 0, done.stderr


def end(pdj: Pdj) -> None:
    (pdj.folder / "enough").touch()


def open_job(page: Page, name: str = "light") -> None:
    row(page, name).locator("a").click()
    expect(page.locator("h1")).to_have_text(name)


@pytest.mark.full
def test_a_job_is_seen_waiting_running_and_completed_without_reloading(pdj: Pdj, page: Page, tmp_path: Path):
    page.evaluate("window.loaded = 'once'")
    cpus = {"resources": {"requests": {"cpu": str(len(os.sched_getaffinity(0)))}}}
    start(pdj, "first", container=cpus)
    expect(row(page, "first")).to_have_attribute("data-phase", "Running")
    start(pdj, "second", container=cpus)
    expect(row(page, "second")).to_have_attribute("data-phase", "Pending")
    expect(row(page, "second")).to_contain_text("insufficient cpu")
    keep(page, "jobs", tmp_path)
    assert pdj("delete", "first").returncode == 0
    expect(row(page, "first")).to_have_count(0)
    expect(row(page, "second")).to_have_attribute("data-phase", "Running")
    expect(row(page, "second").locator(".cell-progress")).to_contain_text("/100000")
    end(pdj)
    expect(row(page, "second")).to_have_attribute("data-phase", "Completed")
    assert page.evaluate("window.loaded") == "once"


def test_the_curve_grows_while_the_job_trains(pdj: Pdj, page: Page, tmp_path: Path):
    start(pdj)
    open_job(page)
    curve = page.locator('[data-metric="loss"] path.curve')
    expect(curve).to_be_visible()
    before = curve.get_attribute("d") or ""
    wait(lambda: len(curve.get_attribute("d") or "") > len(before) + 200, lambda: "the curve to grow")
    page.locator('[data-metric="loss"] .plot').hover()
    expect(page.locator('[data-metric="loss"] .tip')).to_contain_text(re.compile(r"step \d+"))
    keep(page, "job", tmp_path)
    end(pdj)
    expect(page.locator(".title .badge")).to_have_attribute("data-phase", "Completed")


@pytest.mark.full
def test_a_killed_worker_shows_a_second_attempt_and_why(pdj: Pdj, page: Page, tmp_path: Path):
    start(pdj, workers=2)
    open_job(page)
    expect(page.locator('[data-replica="worker-1"]')).to_contain_text("pid")
    (victim,) = [pod.pid for pod in pdj.folder_of("light").pods() if pod.index == 1]
    os.kill(victim, signal.SIGKILL)
    expect(page.locator('[data-attempt="2"]')).to_be_visible()
    expect(page.locator('[data-attempt="1"] .reason')).to_contain_text("light-worker-1")
    expect(page.locator('[data-metric="loss"] path.curve')).to_have_count(2)
    keep(page, "second-attempt", tmp_path)
    end(pdj)
    expect(page.locator(".title .badge")).to_have_attribute("data-phase", "Completed")


@pytest.mark.full
def test_logs_are_followed_searched_and_coloured(pdj: Pdj, page: Page, tmp_path: Path):
    start(pdj, workers=2)
    open_job(page)
    page.keyboard.press("l")
    lines = page.locator(".line")
    expect(
        lines.filter(has_text="needle-30 ").or_(lines.filter(has_text=re.compile("needle-30$"))).first
    ).to_be_visible()
    expect(page.locator(".from").first).to_have_text(re.compile("worker-[01]"))
    expect(page.locator(".ansi-2").first).to_have_text("INFO")
    page.get_by_label("Search").fill("NEEDLE-17$")
    expect(page.locator(".note")).to_have_text("No line matches.")
    page.get_by_label("Search").fill("needle-17$")
    expect(lines).to_have_count(2)
    expect(page.locator("mark").first).to_have_text("needle-17")
    keep(page, "search", tmp_path)
    page.get_by_label("Replica").select_option("worker-1")
    expect(lines).to_have_count(1)
    page.get_by_label("Search").fill("")
    expect(lines.nth(40)).to_be_visible()
    with page.expect_download() as download:
        page.get_by_text("Download").click()
    assert "needle-1\n" in Path(download.value.path()).read_text()
    page.get_by_label("Search").fill("[Tt]he end")
    expect(page.locator(".note")).to_have_text("No line matches.")
    end(pdj)
    expect(page.locator("mark")).to_have_text("the end")
    page.get_by_label("Search").fill("")
    expect(page.locator(".note")).to_have_text("The job has ended.")


@pytest.mark.full
def test_suspend_and_resume_by_clicking(pdj: Pdj, page: Page, tmp_path: Path):
    start(pdj)
    open_job(page)
    page.locator('[data-action="suspend"]').click()
    expect(page.locator("dialog .command")).to_have_text("pdj suspend light")
    keep(page, "confirm", tmp_path)
    page.locator('[data-confirm="suspend"]').click()
    expect(page.locator(".title .badge")).to_have_attribute("data-phase", "Suspended")
    page.locator('[data-action="resume"]').click()
    page.locator('[data-confirm="resume"]').click()
    expect(page.locator(".title .badge")).to_have_attribute("data-phase", "Running")
    page.locator('[data-action="delete"]').click()
    page.get_by_role("button", name="Cancel").click()
    assert pdj.folder_of("light").path.exists()
    page.locator('[data-action="delete"]').click()
    page.locator('[data-confirm="delete"]').click()
    expect(page.locator("p.empty")).to_contain_text("No jobs yet")
    wait(lambda: not pdj.folder_of("light").path.exists(), lambda: "the job to be deleted")


@pytest.mark.full
def test_a_job_that_has_ended_runs_again_by_clicking(pdj: Pdj, page: Page, tmp_path: Path):
    start(pdj)
    open_job(page)
    expect(page.locator(".title .badge")).to_have_attribute("data-phase", "Running")
    end(pdj)
    expect(page.locator(".title .badge")).to_have_attribute("data-phase", "Completed")
    before = pdj.folder_of("light").job()
    (pdj.folder / "enough").unlink()
    page.locator('[data-action="rerun"]').click()
    expect(page.locator("dialog .command")).to_have_text("pdj rerun light")
    keep(page, "rerun", tmp_path)
    page.locator('[data-confirm="rerun"]').click()
    expect(page.locator(".title .badge")).to_have_attribute("data-phase", "Running")
    after = pdj.folder_of("light").job()
    assert before and after and before.metadata.uid != after.metadata.uid
    end(pdj)
    expect(page.locator(".title .badge")).to_have_attribute("data-phase", "Completed")


@pytest.mark.full
def test_runs_are_laid_over_each_other_and_a_job_shows_its_file_and_plan(pdj: Pdj, page: Page, tmp_path: Path):
    for name in ("first", "second", "third"):
        start(pdj, name)
        expect(row(page, name).locator(".cell-loss .spark")).to_be_visible()
    keep(page, "sparklines", tmp_path)
    open_job(page, "first")
    curves = page.locator('[data-metric="loss"] path.curve')
    for number, name in enumerate(("second", "third"), 2):
        page.get_by_label("Compare with").select_option(label=name)
        expect(curves).to_have_count(number)
    expect(page.locator('[data-metric="loss"] .legend')).to_contain_text("third")
    keep(page, "overlay", tmp_path)
    page.locator(".chip").first.click()
    expect(curves).to_have_count(2)
    page.locator("#file summary").click()
    expect(page.locator("#file pre")).to_contain_text("kind: PaddleJob")
    page.locator("#plan summary").click()
    expect(page.locator("#plan pre")).to_contain_text("PADDLE_TRAINER_ID")
    keep(page, "plan", tmp_path)
    end(pdj)
    for name in ("first", "second", "third"):
        pdj.until(name, phase="Completed")


@pytest.mark.full
def test_the_machine_shows_how_busy_a_gpu_is_and_which_replica_holds_it(pdj: Pdj, browser: Browser, tmp_path: Path):
    held, free = new_uuid(), new_uuid()
    (tmp_path / "driver").mkdir()
    pdj.environment |= fake_driver(tmp_path / "driver", f"{held}|H100|37 {free}|H100|50")
    pdj.environment.pop("CUDA_VISIBLE_DEVICES", None)
    start(pdj, container={"resources": {"limits": {"nvidia.com/gpu": 1, "cpu": "500m"}}})
    pdj.until("light", phase="Running")
    with serving(pdj) as server, page_of(browser, server) as page:
        page.get_by_role("link", name="Machine").click()
        machine = page.locator('[data-machine="local"]')
        expect(machine.locator('[data-resource="cpu"]')).to_contain_text("light 0.5")
        expect(machine.locator('[data-name="0"]')).to_contain_text("light · light-worker-0")
        expect(machine.locator('[data-name="0"]')).to_contain_text("37%")
        expect(machine.locator('[data-name="1"]')).to_contain_text("free")
        keep(page, "machine", tmp_path)
        page.get_by_role("link", name="Jobs", exact=True).click()
        open_job(page)
        expect(page.locator('[data-replica="worker-0"]')).to_contain_text("37%")
    end(pdj)
    pdj.until("light", phase="Completed")


@pytest.mark.full
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_speaks_chinese_and_fits_a_phone_in_light_and_dark(
    pdj: Pdj, server: Server, browser: Browser, tmp_path: Path, scheme: str, width: int
):
    start(pdj)
    viewport = {"width": width, "height": 844}
    with page_of(browser, server, locale="zh-CN", color_scheme=scheme, viewport=viewport) as page:
        expect(row(page, "light")).to_contain_text("运行中")
        for name, step in (("jobs", None), ("job", "a"), ("logs", "l")):
            if step == "a":
                open_job(page)
                expect(page.locator("path.curve").first).to_be_visible()
            elif step:
                page.keyboard.press(step)
                expect(page.locator(".line").first).to_be_visible()
            keep(page, f"{name}-zh-{scheme}-{width}", tmp_path)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (background == "rgb(255, 255, 255)") == (scheme == "light")
        page.locator("#language").click()
        expect(page.locator("header")).to_contain_text("Jobs")
        page.reload()
        expect(page.locator("header")).to_contain_text("Jobs")
    end(pdj)
    pdj.until("light", phase="Completed")


@pytest.mark.full
def test_a_job_is_found_and_opened_by_keyboard(pdj: Pdj, page: Page):
    start(pdj, "alpha")
    start(pdj, "beta")
    expect(row(page, "beta")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("alp")
    expect(row(page, "beta")).to_be_hidden()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("alpha")
    page.keyboard.press("Escape")
    expect(row(page, "alpha")).to_be_visible()
    end(pdj)
    pdj.until("beta", phase="Completed")
