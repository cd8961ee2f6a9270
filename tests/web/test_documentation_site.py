"""The documentation site in a real browser: both languages, search, and nothing from other hosts."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.web import PATIENCE, keep
from tools.docs import site

pytestmark = pytest.mark.full


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("site") / "docs"
    assert site.build(folder) == 0
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@contextmanager
def opened(browser: Browser, url: str) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    foreign: list[str] = []
    host = urlsplit(url).netloc
    page.on("request", lambda request: foreign.append(request.url) if is_foreign(request.url, host) else None)
    page.goto(url)
    yield page
    context.close()
    assert foreign == [], "requests to other hosts"


def is_foreign(url: str, host: str) -> bool:
    return urlsplit(url).scheme in ("http", "https") and urlsplit(url).netloc != host


def search(page: Page, text: str) -> None:
    page.keyboard.press("/")
    page.get_by_role("combobox", name="Search").fill(text)


def test_a_reader_switches_the_language_and_stays_on_the_page(browser: Browser, address: str, tmp_path: Path):
    with opened(browser, f"{address}/howto/elastic/#ranks") as page:
        expect(page.locator("h1")).to_contain_text("Train with the workers that fit")
        keep(page, "docs-en", tmp_path)
        page.wait_for_load_state("networkidle")  # the theme's scripts would now follow the link in their own way
        assert page.locator("a.pj-language").get_attribute("target") == "_self", "which keeps them from doing so"
        page.get_by_role("link", name="简体中文").click()
        expect(page.locator("h1")).to_contain_text("弹性训练")
        assert urlsplit(page.url).path == "/zh/howto/elastic/"
        expect(page.locator("h2#ranks")).to_contain_text("Rank")
        keep(page, "docs-zh", tmp_path)
        page.get_by_role("link", name="English").click()
        page.wait_for_url("**/howto/elastic/")
        expect(page.locator("h1")).to_contain_text("Train with the workers that fit")


@pytest.mark.parametrize(("start", "text"), [("/", "checkpoint"), ("/zh/", "断点续训"), ("/zh/", "checkpoint")])
def test_a_reader_finds_pages_by_search(browser: Browser, address: str, start: str, text: str, tmp_path: Path):
    with opened(browser, address + start) as page:
        search(page, text)
        results = page.get_by_role("option")
        results.filter(has_text=text).first.wait_for()
        keep(page, f"docs-search-{start.strip('/') or 'en'}-{text}", tmp_path)
        results.first.click()
        page.wait_for_url(lambda url: urlsplit(url).path not in ("/", "/zh/"))
        assert urlsplit(page.url).path.startswith(start)
        expect(page.locator("article")).to_contain_text(text, ignore_case=True)


def test_pictures_are_shown(browser: Browser, address: str):
    with opened(browser, f"{address}/zh/explanation/lifecycle/") as page:
        for picture in page.locator("article img").all():
            picture.scroll_into_view_if_needed()
            assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 0
