"""A page that stays open: what the user does on it survives updates, and the page survives what happens to its job."""

from __future__ import annotations

import os
import signal

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.pdj import Pdj
from tests.support.web import PATIENCE, Server, page_of, serving

expect.set_options(timeout=PATIENCE)
TRAINS = """
import os, time
step = 1
while not os.path.exists("enough"):
    print(f"step {step}/100000 loss={1 / step:.5f}", flush=True)
    step += 1
    time.sleep(0.05)
"""
BAR = """
import os, time
print("begin", flush=True)
step = 1
while not os.path.exists("enough"):
    print(f"\\r{step}/100000", end="", flush=True)
    step += 1
    time.sleep(0.05)
"""


def start(pdj: Pdj, program: str = TRAINS, name: str = "light") -> None:
    (pdj.folder / "enough").unlink(missing_ok=True)
    (pdj.folder / "train.py").write_text(program)
    done = pdj("run", "--detach", pdj.write(name, command=["python", "train.py"]))
    assert done.returncode == 0, done.stderr


def end(pdj: Pdj, name: str = "light") -> None:
    (pdj.folder / "enough").touch()
    pdj.until(name, phase="Completed")


def open_job(page: Page, name: str = "light") -> None:
    page.locator(f'tr[data-job="{name}"] a').click()
    expect(page.locator("h1")).to_have_text(name)


def until_updated(page: Page) -> None:
    """Until the page has drawn the progress of the job twice more."""
    for _ in range(2):
        shown = page.locator(".big-progress .num").inner_text()
        expect(page.locator(".big-progress .num")).not_to_have_text(shown)


def test_the_focus_stays_where_a_user_of_the_keyboard_has_put_it(pdj: Pdj, page: Page):
    start(pdj)
    row = page.locator('tr[data-job="light"]')
    row.focus()
    shown = row.locator(".cell-progress").inner_text()
    expect(row.locator(".cell-progress")).not_to_have_text(shown)
    expect(row).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".big-progress .num")).to_be_visible()
    page.locator('[data-action="suspend"]').focus()
    until_updated(page)
    expect(page.locator('[data-action="suspend"]')).to_be_focused()
    page.locator('[data-replica="worker-0"] a').focus()
    until_updated(page)
    expect(page.locator('[data-replica="worker-0"] a')).to_be_focused()
    end(pdj)


@pytest.mark.full
def test_the_page_of_a_job_that_is_deleted_says_so_and_shows_the_next_one_of_its_name(pdj: Pdj, page: Page):
    start(pdj)
    open_job(page)
    expect(page.locator('[data-replica="worker-0"]')).to_be_visible()
    assert pdj("delete", "light").returncode == 0
    expect(page.locator(".notice")).to_contain_text("job light not found")
    expect(page.locator('[data-replica="worker-0"]')).to_have_count(0)
    start(pdj)
    expect(page.locator('[data-replica="worker-0"]')).to_be_visible()
    expect(page.locator(".title .badge")).to_have_attribute("data-phase", "Running")
    end(pdj)


@pytest.mark.full
def test_a_page_of_a_server_that_was_started_again_asks_for_the_new_url(pdj: Pdj, browser: Browser):
    with serving(pdj) as first, page_of(browser, first) as page:
        expect(page.locator(".empty")).to_be_visible()
        os.kill(first.process.pid, signal.SIGINT)
        expect(page.locator("#banner")).to_have_text("Connection to pdj web lost; retrying.")
        with serving(pdj, "--port", str(first.port)) as second:
            expect(page.locator("#banner")).to_contain_text("Run `pdj web --url` and open the URL that it prints.")
            page.context.new_page().goto(second.url)
            expect(page.locator("#banner")).to_be_hidden()


@pytest.mark.full
def test_a_progress_bar_is_seen_while_it_moves(pdj: Pdj, page: Page):
    start(pdj, BAR)
    open_job(page)
    page.keyboard.press("l")
    lines = page.locator(".line")
    expect(lines).to_have_count(2)
    shown = lines.nth(1).inner_text()
    expect(lines.nth(1)).not_to_have_text(shown)
    expect(lines).to_have_count(2)
    end(pdj)


def test_labels_that_only_a_screen_reader_reads_are_chinese_too(quiet_server: Server, browser: Browser):
    with page_of(browser, quiet_server, locale="zh-CN") as page:
        expect(page.locator("tr[data-job]")).to_be_visible()
        labels = page.locator("[aria-label]").evaluate_all("all => all.map(one => one.getAttribute('aria-label'))")
        assert labels and [label for label in labels if label.isascii()] == []
